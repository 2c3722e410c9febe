/// An attention pool with parity on virtual time: real shards, allocator and keeper on devices that
/// work a step at a time.
#pragma once

#include "actors/device/attention_shard.hpp"
#include "actors/device/gpu_executor.hpp"
#include "actors/device/shard_pull.hpp"
#include "actors/kv/kv_allocator.hpp"
#include "actors/kv/parity_keeper.hpp"
#include "actors/protocol/kv.hpp"
#include "actors/protocol/parity.hpp"
#include "actors/shared/parity_whole.hpp"
#include "tests/actors/device/stepped_device.hpp"
#include "tests/actors/stand_ins.hpp"

namespace lamella::actors::test {

struct parity_pool : stage {
  static constexpr uint32_t shards_count = 3, layers = 2, slots = 96, heads = 1, dim = 8;
  static constexpr uint64_t row_bytes = 2 * heads * dim * 2, slot_bytes = layers * row_bytes;

  stepped_engine engine;
  std::vector<std::shared_ptr<gpu::device>> devices;
  std::vector<std::shared_ptr<gpu::kv_cache>> caches; ///< of the shards, then the parity's
  std::shared_ptr<net::fabric> links;
  std::vector<gpu_executor_actor> executors;
  std::vector<attention_shard_actor> members;
  std::shared_ptr<net::metrics> metrics = std::make_shared<net::metrics>(net::metrics::settings{});
  std::shared_ptr<digest_book> digests = std::make_shared<digest_book>(1000);
  kv_allocator_actor allocator;
  caf::actor keeper;
  std::vector<caf::error> ended; ///< of the keeper
  std::vector<uint64_t> whole;   ///< epochs in which it has told that the parity is complete
  uint64_t epoch = 0;
  tests::splitmix random{7};

  parity_pool() {
    links = std::make_shared<net::fabric>(
        [](uint32_t) { return size_t{64} << 10; },
        [this](uint32_t seat) -> gpu::device& { return *devices[seat]; },
        [this](uint32_t seat) -> gpu::device& { return *devices[seat]; });
    for (uint32_t i = 0; i <= shards_count; ++i) {
      devices.push_back(engine.make_device("attention-" + std::to_string(i)));
      caches.push_back(std::make_shared<gpu::kv_cache>(*devices[i], layers, slots, heads, dim,
                                                       gpu::half_type::f16));
    }
    kv_allocator_config c;
    c.tables = tables(true);
    c.metrics = metrics;
    allocator = spawn(kv_allocator, std::move(c));
  }
  ~parity_pool() {
    end_all();
    engine.queues.clear();
  }

  static kv_tables tables(bool with_parity) {
    return {{{{"attention-0", "attention-1", "attention-2"}, slots, "attention-3", with_parity}}};
  }

  /// The next epoch: its shards, and what the allocator hears of it.
  void open(bool parity_is_new, bool rebuilt = false, bool with_parity = true) {
    ++epoch;
    members.clear();
    executors.clear();
    for (uint32_t i = 0; i <= shards_count; ++i) {
      shard_config c;
      c.seat = i;
      c.parity = i == shards_count;
      c.device = devices[i];
      c.cache = caches[i];
      c.member_links = [all = links, i](const net::link_key& key) {
        return key.replica == i ? all->replica_end(key) : all->shard_end(key);
      };
      executors.push_back(spawn(gpu_executor, devices[i], failed_work::ends_executor));
      members.push_back(spawn(attention_shard, std::move(c), executors.back()));
    }
    if (!with_parity) members.pop_back();
    caf::anon_send(allocator,
                   kv_adopt{epoch,
                            members,
                            {epoch == 1 ? std::vector<uint32_t>{0} : std::vector<uint32_t>{},
                             tables_if(rebuilt), tables_if(parity_is_new), tables(with_parity)}});
    settle();
  }

  void keep(uint64_t scrub_bytes_per_second, uint32_t percent = 100) {
    parity_keeper_config c;
    c.epoch = epoch;
    for (uint32_t i = 0; i < members.size(); ++i) c.members.push_back({i, members[i]});
    c.allocator = allocator;
    c.membership = spawn([this](caf::event_based_actor*) -> caf::behavior {
      return {[this](parity_whole_atom, uint64_t of, uint32_t cell) {
        CHECK(cell == 0);
        whole.push_back(of);
      }};
    });
    c.pin = seq(1'000'000);
    c.slot_bytes = slot_bytes;
    c.scrub_bytes_per_second = scrub_bytes_per_second;
    c.rebuild_percent = percent;
    c.metrics = metrics;
    c.digests = digests;
    keeper = spawn(parity_keeper, std::move(c));
    keeper->attach_functor([this](const caf::error& why) { ended.push_back(why); });
  }

  /// The holder has so many slots, the first `filled` of them for good.
  std::vector<slot_run> hold(uint64_t holder, uint32_t count, uint32_t filled) {
    auto first = ask<kv_grant>(allocator, kv_reserve{{{seq(holder), count}}, 0, false, epoch});
    settle();
    REQUIRE_FALSE(first->error);
    say(holder, filled);
    return first->value.holdings.front().runs;
  }
  void say(uint64_t holder, uint32_t filled) {
    ask<kv_grant>(
        allocator,
        kv_reserve{{{seq(holder), 0, {}, 0, reserve_mode::extend, filled}}, 0, false, epoch});
    settle();
  }
  /// It comes back in a new epoch; whether what it had is still there.
  bool go_on(uint64_t holder, uint32_t count, uint32_t filled) {
    auto again = ask<kv_grant>(
        allocator,
        kv_reserve{{{seq(holder), count, {}, 0, reserve_mode::resume, filled}}, 0, false, epoch});
    settle();
    REQUIRE_FALSE(again->error);
    return again->value.holdings.front().kept;
  }
  void release(uint64_t holder) {
    caf::anon_send(allocator, kv_release{{seq(holder)}, epoch});
    settle();
  }

  /// Its first positions are pulled from a prefill worker, or are there now.
  void pulled(uint64_t holder, const std::vector<slot_run>& runs, bool complete) {
    caf::anon_send(allocator, kv_pulled{epoch, seq(holder), runs, complete});
    settle();
  }

  std::byte* row(uint32_t member, uint32_t layer, uint32_t slot) {
    return caches[member]->layer(layer).rows + slot * row_bytes;
  }
  /// As an iteration does: rows for the shards and, unless it is left out, their XOR.
  void write(const std::vector<slot_run>& runs, bool parity = true) {
    for (const auto& run : runs)
      for (auto slot = run.first; slot < run.first + run.length; ++slot)
        for (uint32_t layer = 0; layer < layers; ++layer)
          for (uint64_t i = 0; i < row_bytes; ++i) {
            auto sum = std::byte{0};
            for (uint32_t s = 0; s < shards_count; ++s)
              sum ^= row(s, layer, slot)[i] = static_cast<std::byte>(random.below(256));
            if (parity) row(shards_count, layer, slot)[i] = sum;
          }
  }
  /// Slots of the runs whose parity is not the XOR of the shards' rows.
  uint32_t unlike(const std::vector<slot_run>& runs) {
    uint32_t wrong = 0;
    for (const auto& run : runs)
      for (auto slot = run.first; slot < run.first + run.length; ++slot) {
        bool well = true;
        for (uint32_t layer = 0; layer < layers; ++layer)
          for (uint64_t i = 0; i < row_bytes; ++i) {
            auto sum = std::byte{0};
            for (uint32_t s = 0; s <= shards_count; ++s) sum ^= row(s, layer, slot)[i];
            well &= sum == std::byte{0};
          }
        wrong += well ? 0 : 1;
      }
    return wrong;
  }
  void flip(uint32_t member, uint32_t slot) { row(member, 1, slot)[5] ^= std::byte{0x10}; }

  uint32_t with_parity() {
    auto answer = ask<kv_usage>(allocator, status_atom_v);
    settle();
    return answer->value.parity;
  }
  uint32_t used() {
    auto answer = ask<kv_usage>(allocator, status_atom_v);
    settle();
    return answer->value.used.front();
  }
  /// What a lost shard would be rebuilt in.
  uint32_t inventory() {
    auto answer = ask<kv_inventory>(allocator, kv_inventory_ask{});
    settle();
    return scheduler::length_of(answer->value.runs);
  }
  double metric(const std::string& name) const {
    const auto page = metrics->scrape().body;
    const auto at = page.find("\n" + name + " ");
    REQUIRE(at != std::string::npos);
    return std::stod(page.substr(at + name.size() + 2));
  }

  /// Everything that can happen without time passing.
  void work() {
    do settle();
    while (engine.step() || sched.has_job());
  }
  void pass(caf::timespan total) {
    for (caf::timespan t{0}; t < total; t += std::chrono::milliseconds{10}) {
      sched.advance_time(std::chrono::milliseconds{10});
      work();
    }
  }
};

} // namespace lamella::actors::test
