/// A prefill worker with KV of its own among stand-ins: whatever it has the shards pull waits for
/// the test's word.
#pragma once

#include "actors/lane/lane.hpp"
#include "actors/protocol/prefills.hpp"
#include "actors/protocol/pulls.hpp"
#include "tests/actors/stand_ins.hpp"

namespace lamella::actors::test {

struct source_book {
  std::vector<kv_offer> offered;
  std::map<uint64_t, owed<kv_moved>> offering; ///< by number, not answered
  uint32_t cancels = 0;
};

inline auto stand_in_source(std::shared_ptr<source_book> book) {
  return [book](kv_source_actor::pointer self) -> kv_source_actor::behavior_type {
    return {
        [book, self](const kv_offer& x) -> caf::result<kv_moved> {
          book->offered.push_back(x);
          auto promise = self->make_response_promise<kv_moved>();
          book->offering.emplace(x.number, owed<kv_moved>{promise, self});
          return promise;
        },
        [book](kv_pull_cancel) { ++book->cancels; },
    };
  };
}

struct options {
  uint32_t chunk = 8, slots = 64, serialize_below = 10, shards = 2;
  bool whole_requests = false, parity = false, caches_prefixes = true;
};

struct world : stage {
  std::shared_ptr<replica_book> replica = std::make_shared<replica_book>();
  std::shared_ptr<shard_book> own = std::make_shared<shard_book>();
  std::shared_ptr<source_book> source = std::make_shared<source_book>();
  std::vector<std::shared_ptr<shard_book>> shards;
  std::shared_ptr<net::metrics> counted = std::make_shared<net::metrics>(net::metrics::settings{});
  std::shared_ptr<allocator_book> slots = std::make_shared<allocator_book>();
  std::shared_ptr<client_book> client = std::make_shared<client_book>();
  decode_client_actor listener = spawn(stand_in_client(client));
  prefill_worker_actor worker;

  explicit world(options o = {}) {
    lane_config c;
    auto& prompts = c.prompts.emplace();
    c.target.stream = stream_id{0};
    c.target.metrics = counted;
    c.target.allocator = spawn(stand_in_allocator(slots));
    c.target.replicas = {spawn(stand_in_replica(replica))};
    c.target.shards = {spawn(stand_in_shard(own))};
    prompts.chunk_tokens = o.chunk;
    prompts.own.emplace();
    prompts.own->source = spawn(stand_in_source(source));
    for (uint32_t i = 0; i < o.shards; ++i) {
      shards.push_back(std::make_shared<shard_book>());
      prompts.own->shards.push_back(spawn(stand_in_shard(shards.back())));
    }
    prompts.own->layout.cells = o.whole_requests ? std::vector<scheduler::kv_cell>(o.shards, {1, 0})
                                                 : std::vector<scheduler::kv_cell>{{o.shards, 0}};
    prompts.own->slots = o.slots;
    prompts.own->serialize_below = o.serialize_below;
    prompts.own->caches_prefixes = o.caches_prefixes;
    if (o.parity) prompts.own->layout = prompts.own->layout.with_parity({0});
    worker = spawn(lane, std::move(c));
    settle();
  }
  ~world() { end_all(); }

  std::shared_ptr<reply<prefilled>> offer(prefill x) {
    x.client = listener;
    auto answer = ask<prefilled>(worker, std::move(x));
    settle();
    return answer;
  }
  void compute(uint64_t iteration) {
    REQUIRE(replica->waits_for(iteration));
    replica->answer(iteration);
    settle();
  }
  /// Whether the series is on the page with that value.
  bool counts(const std::string& series, int value) const {
    return counted->scrape().body.find("\n" + series + " " + std::to_string(value) + "\n")
           != std::string::npos;
  }
  /// Pulls under way, by number.
  std::vector<uint64_t> under_way() const {
    std::vector<uint64_t> result;
    for (const auto& [number, owes] : source->offering) result.push_back(number);
    return result;
  }
  shard_book& puller(uint64_t number) {
    for (const auto& x : shards)
      if (x->pulling.contains(number)) return *x;
    throw std::logic_error("no such pull");
  }
  /// One side of a pull has ended.
  void offered(uint64_t number, uint64_t digest = 5) {
    source->offering.extract(number).mapped().deliver(kv_moved{number, digest, 100});
    settle();
  }
  void pulled(uint64_t number, uint64_t digest = 5) {
    puller(number).pulling.extract(number).mapped().deliver(kv_moved{number, digest, 100});
    settle();
  }
  void both(uint64_t number) {
    offered(number);
    pulled(number);
  }
  void fail_offer(uint64_t number, ec why = ec::aborted) {
    source->offering.extract(number).mapped().deliver(caf::make_error(why));
    settle();
  }
  void fail_pull(uint64_t number, ec why = ec::aborted) {
    puller(number).pulling.extract(number).mapped().deliver(caf::make_error(why));
    settle();
  }
};

using numbers = std::vector<uint64_t>;
using runs = std::vector<slot_run>;

} // namespace lamella::actors::test
