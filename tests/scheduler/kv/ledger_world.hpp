/// Sequences that live on a KV ledger, and what their slots contain.
#pragma once

#include "scheduler/kv/kv_adopt.hpp"
#include "scheduler/kv/kv_grants.hpp"
#include "scheduler/kv/kv_move_tables.hpp"
#include "scheduler/kv/kv_moving.hpp"
#include "scheduler/kv/kv_prefixes.hpp"
#include "scheduler/kv/kv_sweep.hpp"
#include "tests/random.hpp"

#include <doctest/doctest.h>

#include <algorithm>

namespace lamella::scheduler::test {

using tests::splitmix;
using text = std::vector<model::token_id>;

/// One number per slot of each table: of the text whose last position the slot has. 0: nothing.
using contents = std::vector<std::vector<uint64_t>>;

inline uint64_t content_of(uint64_t scope, const text& tokens, uint32_t position) {
  uint64_t x = splitmix{scope + 1}.next();
  for (uint32_t i = 0; i <= position; ++i) x = splitmix{x ^ tokens[i]}.next();
  return x;
}

inline std::vector<uint32_t> each_slot(const std::vector<slot_run>& runs) {
  std::vector<uint32_t> slots;
  for (const auto& run : runs)
    for (uint32_t i = 0; i < run.length; ++i) slots.push_back(run.first + i);
  return slots;
}

/// A sequence: its tokens, and how many of their positions are written and committed.
struct life {
  sequence_id id{};
  uint64_t scope = 0;
  text tokens{};
  uint32_t prompt = 0, filled = 0;
  uint32_t table = 0;
  std::vector<slot_run> runs{};
  bool resumed = true; ///< in this epoch
};

struct ledger_world {
  static constexpr uint32_t window = 4;
  splitmix random;
  kv_ledger ledger;
  std::map<sequence_id, life> lives;
  contents kv, copied; ///< of this epoch, and of the one that is moved to
  std::chrono::nanoseconds now{0};
  uint64_t next_request = 1;

  ledger_world(uint64_t seed, const std::vector<uint32_t>& slots)
      : random{seed}, ledger{{std::chrono::seconds{1}, 0}, tables_of(slots)} {
    kv = empty(slots);
    ledger.epoch = 1;
  }

  static kv_tables tables_of(const std::vector<uint32_t>& slots) {
    kv_tables x;
    for (size_t i = 0; i < slots.size(); ++i)
      x.list.push_back({{"attention-" + std::to_string(i)}, slots[i]});
    return x;
  }
  static contents empty(const std::vector<uint32_t>& slots) {
    contents x;
    for (const auto n : slots) x.emplace_back(n);
    return x;
  }
  std::vector<uint32_t> slots() const {
    std::vector<uint32_t> x;
    for (const auto& pool : ledger.pools) x.push_back(pool.slots());
    return x;
  }

  /// Some sequence of this epoch, or of the one before; null: there is none.
  life* some(bool resumed = true) {
    std::vector<life*> all;
    for (auto& [id, x] : lives)
      if (x.resumed == resumed) all.push_back(&x);
    return all.empty() ? nullptr : all[random.below(all.size())];
  }

  void write(life& x, uint32_t position) {
    const auto slot = each_slot(x.runs).at(position);
    auto& content = kv[x.table].at(slot);
    const auto is = content_of(x.scope, x.tokens, position);
    // What others have committed is never written to, or only with the same.
    for (const auto& [id, other] : lives) {
      if (id == x.id || !other.resumed || other.table != x.table) continue;
      const auto theirs = each_slot(other.runs);
      for (uint32_t p = 0; p < other.filled; ++p)
        if (theirs[p] == slot) REQUIRE(content == is);
    }
    content = is;
  }

  /// A prompt of one to three choices comes: their KV is computed where the cache has none.
  void begin() {
    const auto prompt = 1 + static_cast<uint32_t>(random.below(24));
    const auto choices = 1 + static_cast<uint32_t>(random.below(3));
    const request_id request{next_request++};
    life first{sequence_of(request, 0), random.below(2), {}, prompt};
    for (uint32_t i = 0; i < prompt; ++i)
      first.tokens.push_back(static_cast<model::token_id>(random.below(i < 12 ? 1 : 2)));
    std::vector<kv_need> needs{
        {first.id, prompt + window, {}, 0, reserve_mode::fresh, 0, {first.scope, first.tokens}}};
    for (uint32_t k = 1; k < choices; ++k)
      needs.push_back({sequence_of(request, k), window, first.id, prompt});
    const auto held = ledger.holders.size();
    const auto granted = reserve(ledger, needs, static_cast<uint32_t>(random.below(8)), now);
    if (!granted) {
      CHECK(ledger.holders.size() == held);
      return;
    }
    for (uint32_t k = 0; k < choices; ++k) {
      auto& x = lives[needs[k].holder] = first;
      x.id = needs[k].holder;
      x.table = (*granted)[k].member;
      x.runs = (*granted)[k].runs;
    }
    auto& lead = lives[first.id];
    REQUIRE((*granted)[0].cached < prompt); // the last position is always computed
    for (uint32_t p = 0; p < prompt; ++p)
      if (p >= (*granted)[0].cached) write(lead, p);
    for (const auto& need : needs) {
      lives[need.holder].filled = prompt;
      note_filled(ledger, need.holder, prompt, now);
    }
  }

  /// A sequence gets a token; where its slots are used up, it asks for more.
  void decode(life& x) {
    if (x.filled == length_of(x.runs)) {
      const std::vector<kv_need> needs{{x.id, window, {}, 0, reserve_mode::extend, x.filled}};
      const auto more = reserve(ledger, needs, 0, now);
      if (!more) return end(x, false);
      CHECK((*more)[0].member == x.table);
      append(x.runs, (*more)[0].runs);
    }
    x.tokens.resize(x.filled);
    x.tokens.push_back(static_cast<model::token_id>(random.below(2)));
    write(x, x.filled++);
  }

  /// It has all its tokens, or stops short; what it has written may be of use to others.
  void end(life& x, bool keep = true) {
    if (keep && x.resumed && x.filled >= x.prompt)
      keep_written(ledger, x.id,
                   {x.prompt, {x.tokens.begin() + x.prompt, x.tokens.begin() + x.filled}}, now);
    const auto id = x.id;
    release(ledger, id);
    lives.erase(id);
  }

  /// In a new epoch it asks for what it had; what it has not any more is computed again.
  void resume(life& x) {
    x.tokens.resize(x.filled);
    const std::vector<kv_need> needs{
        {x.id, x.filled + window, {}, 0, reserve_mode::resume, x.filled, {x.scope, x.tokens}}};
    const auto granted = reserve(ledger, needs, 0, now);
    if (!granted) return end(x, false);
    const auto& g = granted->front();
    x.resumed = true;
    x.table = g.member;
    x.runs = g.runs;
    if (g.kept) return;
    const auto filled = std::exchange(x.filled, 0);
    for (uint32_t p = g.cached; p < filled; ++p) write(x, p);
    x.filled = filled;
    x.prompt = filled;
    note_filled(ledger, x.id, filled, now);
  }

  /// An epoch takes over what it can.
  void enter(const kv_takeover& takes) {
    adopt(ledger, ledger.epoch + 1, takes);
    if (takes.moved) kv = std::exchange(copied, {});
    kv.resize(ledger.pools.size());
    for (size_t t = 0; t < kv.size(); ++t) kv[t].resize(ledger.pools[t].slots());
    for (const auto table : takes.lost) std::ranges::fill(kv.at(table), 0);
    for (auto& [id, x] : lives) x.resumed = false;
  }

  /// One step of a move: the pinned slots are copied.
  bool copy() {
    const auto piece = next_of_move(ledger, 1 + static_cast<uint32_t>(random.below(9)));
    if (piece.from.empty()) return false;
    const auto from = each_slot(piece.from), to = each_slot(piece.to);
    REQUIRE(from.size() == to.size());
    for (size_t i = 0; i < from.size(); ++i)
      copied.at(piece.to_table).at(to[i]) = kv.at(piece.from_table).at(from[i]);
    note_copied(ledger);
    return true;
  }

  /// What must hold at every moment.
  void check() const {
    const auto x = usage_of(ledger);
    uint64_t all = 0, used = 0;
    for (const auto n : x.slots) all += n;
    for (const auto n : x.used) used += n;
    REQUIRE(x.free + used + x.cached == all);
    REQUIRE(x.references == x.held);
    for (const auto& [id, seq] : lives) {
      if (!seq.resumed) continue;
      const auto theirs = each_slot(seq.runs);
      REQUIRE(theirs.size() >= seq.filled);
      for (uint32_t p = 0; p < seq.filled; ++p) {
        CAPTURE(static_cast<uint64_t>(id));
        CAPTURE(p);
        REQUIRE(kv[seq.table][theirs[p]] == content_of(seq.scope, seq.tokens, p));
      }
    }
  }
};

} // namespace lamella::scheduler::test
