/// A pool whose allocator has a prefix cache.
#pragma once

#include "actors/kv/kv_allocator.hpp"
#include "actors/protocol/kv.hpp"
#include "actors/protocol/parity.hpp"
#include "tests/actors/stand_ins.hpp"

#include <numeric>

namespace lamella::actors::test {

using namespace std::chrono_literals;
using text = std::vector<token_id>;

inline text counting(token_id first, size_t count) {
  text x(count);
  std::iota(x.begin(), x.end(), first);
  return x;
}

inline text operator+(text a, const text& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

/// An allocator with a prefix cache, and what requests, batches and the scheduler tell it.
struct cached_pool : stage {
  std::vector<attention_shard_actor> shards;
  kv_allocator_actor allocator;
  uint64_t epoch = 0;

  std::shared_ptr<shard_book> shard = std::make_shared<shard_book>();

  explicit cached_pool(uint32_t slots = 100, uint32_t tables = 1, bool parity = false,
                       caf::timespan prefix_time = 60s) {
    kv_allocator_config c;
    for (uint32_t i = 0; i < tables; ++i)
      c.tables.list.push_back({{"attention-" + std::to_string(i)}, slots});
    if (parity) c.tables.list = {{{"attention-0", "attention-1"}, slots, "attention-2", true}};
    c.prefix_time = prefix_time;
    for (int i = 0; i < (parity ? 3 : 2); ++i) shards.push_back(spawn(stand_in_shard(shard)));
    allocator = spawn(kv_allocator, std::move(c));
    adopt({0, 1});
  }
  ~cached_pool() { end_all(); }

  void adopt(std::vector<uint32_t> lost, bool rebuilt = false, bool parity_is_new = false) {
    caf::anon_send(
        allocator,
        kv_adopt{++epoch, shards, {std::move(lost), tables_if(rebuilt), tables_if(parity_is_new)}});
    settle();
  }
  /// As the scheduler does for a prompt; nothing when it is refused.
  std::optional<kv_holding> begin(uint64_t request, const text& tokens, uint32_t window = 4,
                                  uint64_t scope = 0, reserve_mode mode = reserve_mode::fresh,
                                  uint32_t keep_free = 0) {
    const auto count = static_cast<uint32_t>(tokens.size());
    kv_need need{seq(request), count + window, {}, 0, mode};
    if (mode == reserve_mode::resume) need.filled = count - 1;
    need.text = {scope, tokens};
    auto answer = ask<kv_grant>(allocator, kv_reserve{{need}, keep_free, false, epoch});
    settle();
    if (answer->error) return std::nullopt;
    return answer->value.holdings.front();
  }
  void filled(uint64_t request, const text& tokens) {
    caf::anon_send(allocator, kv_filled{seq(request), epoch, static_cast<uint32_t>(tokens.size())});
    settle();
  }
  /// As a batch does: it wrote `more` behind the first `position` tokens.
  void release(uint64_t request, uint32_t position = 0, const text& more = {}) {
    caf::anon_send(allocator, kv_release{{seq(request)}, epoch, {{position, more}}});
    settle();
  }
  /// A request from its prompt to the last token; how many tokens it found.
  uint32_t run(uint64_t request, const text& prompt, const text& answer = {}) {
    const auto held = begin(request, prompt, static_cast<uint32_t>(answer.size()));
    REQUIRE(held);
    filled(request, prompt);
    release(request, static_cast<uint32_t>(prompt.size()), answer);
    return held->cached;
  }
  kv_usage usage() {
    auto answer = ask<kv_usage>(allocator, status_atom_v);
    settle();
    const auto& x = answer->value;
    const auto slots = std::accumulate(x.slots.begin(), x.slots.end(), uint64_t{0});
    const auto used = std::accumulate(x.used.begin(), x.used.end(), uint64_t{0});
    CHECK(x.free + used + x.cached == slots);
    CHECK(x.references == x.held);
    return x;
  }
  uint32_t cached() { return usage().cached; }
};

} // namespace lamella::actors::test
