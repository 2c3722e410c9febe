/// A pool whose KV moves to the tables of a next epoch.
#pragma once

#include "actors/protocol/kv.hpp"
#include "actors/protocol/moves.hpp"
#include "scheduler/slot_pool.hpp"
#include "tests/actors/kv/cached_pool.hpp"

namespace lamella::actors::test {

using runs = std::vector<slot_run>;

/// The allocator, and what MOVER and the next epoch tell it.
struct moving_pool : cached_pool {
  explicit moving_pool(uint32_t slots = 100, uint32_t tables = 1, caf::timespan prefix_time = 0s)
      : cached_pool{slots, tables, false, prefix_time} {}

  bool level(uint32_t tables, uint32_t slots) {
    auto answer =
        ask<kv_move_plan>(allocator, kv_move_begin{epoch, std::vector(tables, slots), true});
    settle();
    return answer->came && !answer->error;
  }
  kv_balance balance() {
    auto answer = ask<kv_balance>(allocator, kv_balance_ask{epoch});
    settle();
    return answer->value;
  }
  /// Whether there is room.
  bool prepare(uint32_t tables, uint32_t slots) {
    auto answer =
        ask<kv_move_plan>(allocator, kv_move_begin{epoch, std::vector<uint32_t>(tables, slots)});
    settle();
    return answer->came && !answer->error;
  }
  kv_move_piece next(uint32_t slots = 1000) {
    auto answer = ask<kv_move_piece>(allocator, kv_move_ask{epoch, slots});
    settle();
    REQUIRE(answer->came);
    return answer->value;
  }
  void done() {
    ask<bool>(allocator, kv_move_done{epoch});
    settle();
  }
  /// Copies all that is committed; how many slots.
  uint32_t copy_all() {
    uint32_t count = 0;
    for (auto x = next(5); !x.from.empty(); x = next(5)) {
      CHECK(scheduler::length_of(x.from) == scheduler::length_of(x.to));
      count += scheduler::length_of(x.from);
      done();
    }
    return count;
  }
  void take_over(uint32_t tables, uint32_t slots) {
    kv_adopt x{++epoch, shards, {}};
    for (uint32_t i = 0; i < tables; ++i)
      x.takes.tables.list.push_back({{"attention-" + std::to_string(i)}, slots});
    x.planned = x.takes.moved = true;
    caf::anon_send(allocator, x);
    settle();
  }
  std::optional<kv_holding> resume(uint64_t request, const text& tokens) {
    return begin(request, tokens, 4, 0, reserve_mode::resume);
  }
};

} // namespace lamella::actors::test
