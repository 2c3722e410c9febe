/// A batch and stand-ins of all it speaks with.
#pragma once

#include "actors/lane/lane.hpp"
#include "actors/protocol/batches.hpp"
#include "actors/protocol/iterations.hpp"
#include "gpu/runners/slice_runner.hpp"
#include "tests/actors/stand_ins.hpp"

namespace lamella::actors::test {
struct batch_world : stage {
  std::shared_ptr<replica_book> replica = std::make_shared<replica_book>();
  std::shared_ptr<shard_book> shard = std::make_shared<shard_book>();
  std::shared_ptr<allocator_book> kv = std::make_shared<allocator_book>();
  std::shared_ptr<scheduler_book> scheduler = std::make_shared<scheduler_book>();
  std::shared_ptr<client_book> client = std::make_shared<client_book>();
  lane_config config;
  decode_client_actor listener;
  lane_actor batch_;

  explicit batch_world(uint32_t rebuild_percent = 100, bool gathers = false,
                       void (*more)(lane_config&) = nullptr) {
    auto& c = config;
    auto& tokens = c.tokens.emplace();
    tokens.batch.gathers = gathers;
    tokens.batch.rebuild_percent = rebuild_percent;
    tokens.batch.growth.window = 16;
    c.target.stream = stream_id{0};
    c.target.replicas = {spawn(stand_in_replica(replica))};
    c.target.shards = {spawn(stand_in_shard(shard)), spawn(stand_in_shard(shard))};
    c.target.allocator = spawn(stand_in_allocator(kv));
    c.scheduler = spawn(stand_in_scheduler(scheduler));
    if (more != nullptr) more(c);
    listener = spawn(stand_in_client(client));
    batch_ = spawn(lane, c);
    settle();
  }

  batch_join joining(uint64_t request, uint32_t max_tokens = 1000, uint32_t capacity = 900) {
    batch_join x;
    x.sequence = seq(request);
    x.client = listener;
    x.runs = {{static_cast<uint32_t>(request) * 1000, capacity}};
    x.position = 10;
    x.last = 77;
    x.generated = 1;
    x.max_tokens = max_tokens;
    x.wanted.seed = request;
    x.ignore_end = true;
    return x;
  }
  void join(batch_join x) {
    caf::anon_send(batch_, std::move(x));
    settle();
  }
  void leave(uint64_t request) {
    caf::anon_send(batch_, batch_leave{seq(request)});
    settle();
  }
  void answer(uint64_t iteration) {
    REQUIRE(replica->waits_for(iteration));
    replica->answer(iteration);
    settle();
  }
  /// Answers what is asked until nothing is, at most `rounds` times.
  void play(int rounds) {
    for (; rounds > 0 && !replica->asked.empty(); --rounds)
      answer(replica->asked.begin()->first.second);
  }
  const iteration_launch& launched(uint64_t iteration) { return replica->launch_of(iteration); }
  size_t tokens(uint64_t request) { return client->tokens[seq(request)].size(); }
};

} // namespace lamella::actors::test
