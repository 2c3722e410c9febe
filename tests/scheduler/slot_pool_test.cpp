#include "scheduler/slot_pool.hpp"
#include "tests/random.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>
#include <stdexcept>

using namespace lamella::scheduler;
using lamella::tests::splitmix;

namespace {

std::vector<uint32_t> slots_of(const std::vector<slot_run>& runs) {
  std::vector<uint32_t> slots;
  for (const auto& run : runs)
    for (uint32_t i = 0; i < run.length; ++i) slots.push_back(run.first + i);
  return slots;
}

/// The longest run of free slots, found slot by slot.
uint32_t longest_free(const slot_pool& pool) {
  uint32_t longest = 0, now = 0;
  for (uint32_t slot = 0; slot < pool.slots(); ++slot) {
    now = pool.references(slot) == 0 ? now + 1 : 0;
    longest = std::max(longest, now);
  }
  return longest;
}

} // namespace

TEST_CASE("V-M11 slots are handed out one by one: any number, until none is left") {
  for (uint32_t total : {1u, 7u, 15u, 16u, 17u, 54u}) {
    CAPTURE(total);
    slot_pool pool{total};
    for (uint32_t i = 0; i < total; ++i) {
      CHECK(pool.free() == total - i);
      const auto taken = pool.take(1);
      REQUIRE(taken);
      CHECK(length_of(*taken) == 1);
    }
    CHECK_FALSE(pool.take(1));
    CHECK(pool.take(0)); // nothing is always there
    CHECK(pool.used() == total);
  }
}

TEST_CASE("I5 an audit counts the free list, the slots in use and their references one by one") {
  slot_pool pool{54};
  const auto is = [&](uint32_t free, uint32_t used, uint64_t references) {
    const auto x = pool.count();
    return x.free == free && x.used == used && x.references == references;
  };
  CHECK(is(54, 0, 0));
  const auto first = pool.take(20), second = pool.take(7);
  CHECK(is(27, 27, 27));
  const auto shared = prefix(*first, 5);
  pool.share(shared);
  CHECK(is(27, 27, 32));
  pool.give_back(*first);
  CHECK(is(42, 12, 12));
  pool.give_back(shared);
  pool.give_back(*second);
  CHECK(is(54, 0, 0));
}

TEST_CASE("V-M11 a refusal takes nothing, and what comes back can be had again") {
  slot_pool pool{54};
  const auto first = pool.take(37);
  CHECK_FALSE(pool.take(18));
  CHECK(pool.free() == 17);
  CHECK(pool.take(17));
  pool.give_back(*first);
  CHECK(pool.free() == 37);
  CHECK(pool.take(37));
}

TEST_CASE("V-M11 an empty pool gives one run, however long") {
  for (uint32_t wanted : {1u, 15u, 16u, 17u, 54u}) {
    slot_pool pool{54};
    CHECK(pool.take(wanted)->size() == 1);
  }
}

TEST_CASE("V-M11 a sequence grows where its last run ends, while that is free") {
  slot_pool pool{100};
  const auto first = *pool.take(17);
  const auto end = first[0].first + first[0].length;
  const auto more = *pool.take(7, end);
  CHECK(more == std::vector<slot_run>{{end, 7}});
  const auto other = *pool.take(1); // now somebody else sits behind it
  CHECK(other[0].first == end + 7);
  CHECK((*pool.take(1, end + 7))[0].first != end + 7);
}

TEST_CASE("V-M11 growing is contiguous although a warmer run was given back since") {
  slot_pool pool{100};
  const auto warm = *pool.take(20);
  const auto mine = *pool.take(20);
  const auto wall = *pool.take(20); // keeps the two free places apart
  const auto tail = *pool.take(10);
  pool.give_back(tail);
  pool.give_back(warm);
  CHECK((*pool.take(5))[0].first == warm[0].first);                     // LIFO
  CHECK((*pool.take(5, wall[0].first + 20))[0].first == tail[0].first); // but `after` comes first
  CHECK(pool.references(mine[0].first) == 1);
}

TEST_CASE("V-M11 the run that was given back last is taken first") {
  slot_pool pool{96};
  std::vector<std::vector<slot_run>> held;
  for (int i = 0; i < 6; ++i) held.push_back(*pool.take(16));
  // Every second one, so that they do not grow together.
  for (int i : {4, 0, 2}) pool.give_back(held[static_cast<size_t>(i)]);
  for (int i : {2, 0, 4}) CHECK(*pool.take(16) == held[static_cast<size_t>(i)]);
}

TEST_CASE("V-M11 splinters are left alone while a run of 16 is free") {
  slot_pool pool{64};
  const auto all = *pool.take(64);
  CHECK(all.size() == 1);
  pool.give_back({{slot_run{40, 16}}});
  for (uint32_t first : {1u, 5u, 9u, 20u}) pool.give_back({{slot_run{first, 3}}});
  CHECK(*pool.take(16) == std::vector<slot_run>{{40, 16}});
  // Now there are only splinters: they serve too.
  const auto rest = *pool.take(12);
  CHECK(rest.size() == 4);
  CHECK(pool.free() == 0);
}

TEST_CASE("V-M12 any prefix of a sequence can be shared, and lives as long as its longest holder") {
  for (uint32_t shared : {0u, 1u, 7u, 16u, 17u, 53u, 54u}) {
    CAPTURE(shared);
    slot_pool pool{54};
    const auto whole = *pool.take(54);
    const auto part = prefix(whole, shared);
    CHECK(length_of(part) == shared);
    pool.share(part);
    CHECK(pool.used() == 54); // sharing takes no room
    pool.give_back(whole);
    CHECK(pool.used() == shared);
    for (uint32_t slot = 0; slot < 54; ++slot)
      CHECK(pool.references(slot) == (slot < shared ? 1 : 0));
    pool.give_back(part);
    CHECK(pool.free() == 54);
  }
}

TEST_CASE("V-M12 a prompt shared by n choices is stored once") {
  constexpr uint32_t choices = 17, prompt = 54, tail = 7;
  slot_pool pool{1000};
  std::vector<std::vector<slot_run>> held{*pool.take(prompt)};
  for (uint32_t k = 1; k < choices; ++k) {
    pool.share(held[0]);
    auto mine = held[0];
    append(mine, *pool.take(tail));
    held.push_back(mine);
  }
  CHECK(pool.used() == prompt + (choices - 1) * tail);
  for (const auto& x : held) pool.give_back(x);
  CHECK(pool.free() == 1000);
  CHECK(pool.take(1000)->size() == 1); // and it all grew together again
}

TEST_CASE("V-M12 giving back what is free, or sharing it, is a bug that is told") {
  slot_pool pool{54};
  const auto taken = *pool.take(7);
  pool.give_back(taken);
  CHECK_THROWS_AS(pool.give_back(taken), std::logic_error);
  CHECK_THROWS_AS(pool.share(taken), std::logic_error);
  CHECK_THROWS_AS(pool.give_back({{slot_run{54, 1}}}), std::logic_error);
  CHECK(pool.free() == 54);
}

TEST_CASE("V-M12 the 65536th holder of a slot is refused instead of forgotten") {
  slot_pool pool{1};
  const auto taken = *pool.take(1);
  for (int i = 1; i < 65535; ++i) pool.share(taken);
  CHECK(pool.references(0) == 65535);
  CHECK_THROWS_AS(pool.share(taken), std::logic_error);
  CHECK(pool.references(0) == 65535);
}

TEST_CASE("V-M11 V-M12 random holders agree with a table that counts slot by slot") {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    CAPTURE(seed);
    splitmix random{seed};
    const auto total = static_cast<uint32_t>(1 + random.below(300));
    slot_pool pool{total};
    std::vector<uint32_t> model(total, 0); // references by slot
    std::vector<std::vector<slot_run>> holders;
    for (int step = 0; step < 400; ++step) {
      CAPTURE(step);
      const auto free = static_cast<uint32_t>(std::count(model.begin(), model.end(), 0u));
      const auto action = random.below(10);
      if (action < 4) {
        const auto wanted = static_cast<uint32_t>(1 + random.below(40));
        const auto longest = longest_free(pool);
        std::optional<uint32_t> after;
        if (!holders.empty() && random.below(2) == 0) {
          const auto& x = holders[random.below(holders.size())];
          if (!x.empty()) after = x.back().first + x.back().length;
        }
        const bool behind = after && *after < total && model[*after] == 0;
        const auto taken = pool.take(wanted, after);
        CHECK(taken.has_value() == (wanted <= free));
        if (taken) {
          CHECK(length_of(*taken) == wanted);
          if (behind) CHECK((*taken)[0].first == *after);
          // No new run is shorter than 16 while a longer one was free, but for the last rest.
          if (!behind && wanted >= 16 && longest >= 16) CHECK((*taken)[0].length >= 16);
          for (auto slot : slots_of(*taken)) {
            REQUIRE(model[slot] == 0);
            model[slot] = 1;
          }
          holders.push_back(*taken);
        }
      } else if (action < 6 && !holders.empty()) {
        const auto& from = holders[random.below(holders.size())];
        const auto part = prefix(from, static_cast<uint32_t>(random.below(length_of(from) + 1)));
        pool.share(part);
        for (auto slot : slots_of(part)) ++model[slot];
        holders.push_back(part);
      } else if (action < 7 && !holders.empty()) {
        // The end of a sequence is cut off.
        auto& x = holders[random.below(holders.size())];
        const auto keep = prefix(x, static_cast<uint32_t>(random.below(length_of(x) + 1)));
        auto slots = slots_of(x);
        slots.erase(slots.begin(), slots.begin() + length_of(keep));
        std::vector<slot_run> cut;
        for (auto slot : slots) {
          append(cut, {{slot_run{slot, 1}}});
          --model[slot];
        }
        pool.give_back(cut);
        x = keep;
      } else if (!holders.empty()) {
        const auto which = random.below(holders.size());
        for (auto slot : slots_of(holders[which])) --model[slot];
        pool.give_back(holders[which]);
        holders.erase(holders.begin() + static_cast<ptrdiff_t>(which));
      }
      REQUIRE(pool.free() == static_cast<uint32_t>(std::count(model.begin(), model.end(), 0u)));
      for (uint32_t slot = 0; slot < total; ++slot) REQUIRE(pool.references(slot) == model[slot]);
    }
    for (const auto& x : holders) pool.give_back(x);
    CHECK(pool.free() == total);
    CHECK(pool.take(total)->size() == 1); // free runs side by side have joined
  }
}

TEST_CASE("appending joins runs that continue each other and keeps the order of the others") {
  std::vector<slot_run> runs;
  append(runs, {{{7, 1}, {8, 9}, {54, 1}}});
  append(runs, {{{55, 17}, {7, 1}}});
  CHECK(runs == std::vector<slot_run>{{7, 10}, {54, 18}, {7, 1}});
  CHECK(length_of(runs) == 29);
  CHECK(prefix(runs, 11) == std::vector<slot_run>{{7, 10}, {54, 1}});
}

TEST_CASE("the runs in use are those with references, joined") {
  slot_pool pool{64};
  CHECK(pool.used_runs().empty());
  const auto first = *pool.take(10), second = *pool.take(20), third = *pool.take(3);
  pool.share(first);
  pool.give_back(first);
  pool.give_back(second);
  std::vector<bool> used(64);
  for (const auto* runs : {&first, &third})
    for (const auto& run : *runs)
      for (uint32_t i = 0; i < run.length; ++i) used[run.first + i] = true;
  std::vector<slot_run> wanted;
  for (uint32_t slot = 0; slot < 64; ++slot)
    if (used[slot]) append(wanted, {{slot_run{slot, 1}}});
  CHECK(pool.used_runs() == wanted);
  CHECK(length_of(pool.used_runs()) == 13);
}
