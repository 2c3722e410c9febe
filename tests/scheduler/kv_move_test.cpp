#include "scheduler/kv_move.hpp"

#include <doctest/doctest.h>

#include <map>

namespace lamella::scheduler {

namespace {

/// A pool of one cell.
kv_layout one(uint32_t members) { return {{{members, 100}}}; }

} // namespace

TEST_CASE("L-M03 one shard's heads go to three, each from where they are") {
  using copies = std::vector<kv_copy>;
  CHECK(copies_of({.kv_heads = 3, .from = one(1), .to = one(3)}, 0, 0)
        == copies{{0, 0, 0, 0, 1}, {0, 1, 1, 0, 1}, {0, 2, 2, 0, 1}});
  CHECK(copies_of({.kv_heads = 3, .from = one(3), .to = one(1)}, 0, 0)
        == copies{{0, 0, 0, 0, 1}, {1, 0, 0, 1, 1}, {2, 0, 0, 2, 1}});
}

TEST_CASE("L-M03 whatever the sizes, every head of every member comes from one member, once") {
  for (uint32_t kv_heads : {1u, 2u, 3u, 4u, 6u, 8u, 12u})
    for (uint32_t from = 1; from <= kv_heads; ++from)
      for (uint32_t to = 1; to <= kv_heads; ++to) {
        if (kv_heads % from != 0 || kv_heads % to != 0) continue;
        CAPTURE(kv_heads);
        CAPTURE(from);
        CAPTURE(to);
        std::map<std::pair<uint32_t, uint32_t>, uint32_t> source; // of (member, head): of the model
        for (const auto& x :
             copies_of({.kv_heads = kv_heads, .from = one(from), .to = one(to)}, 0, 0))
          for (uint32_t i = 0; i < x.heads; ++i) {
            CHECK(x.from_head + i < kv_heads / from);
            const auto head = heads_of(kv_heads, from, x.from).first + x.from_head + i;
            CHECK(source.emplace(std::pair{x.to, x.to_head + i}, head).second);
          }
        CHECK(source.size() == kv_heads);
        for (const auto& [where, head] : source)
          CHECK(head == heads_of(kv_heads, to, where.first).first + where.second);
      }
}

TEST_CASE("L-M03 a member that stores what it stored before takes nothing") {
  CHECK(copies_of({.kv_heads = 4, .from = one(2), .to = one(2), .kept = {0}}, 0, 0)
        == std::vector<kv_copy>{{1, 1, 0, 0, 2}});
}

TEST_CASE("L-M03 V-M11 by request, a table goes as a whole to the member that takes it over") {
  const kv_move_shape x{
      .kv_heads = 4, .from = {{{1, 9}, {1, 9}, {1, 9}}}, .to = {{{1, 9}, {1, 9}}}, .kept = {0, 1}};
  CHECK(copies_of(x, 0, 0).empty());
  CHECK(copies_of(x, 2, 1) == std::vector<kv_copy>{{2, 1, 0, 0, 4}});
}

TEST_CASE("L-M03 between cells of two and of three members every head goes where it belongs") {
  // Cells of 2, 3 and no members become cells of 2, none and 1.
  const kv_move_shape x{.kv_heads = 6,
                        .from = {{{2, 9}, {3, 9}, {0, 9}}},
                        .to = {{{2, 9}, {0, 9}, {1, 9}}},
                        .kept = {0, 1}};
  CHECK(copies_of(x, 0, 0).empty());
  CHECK(
      copies_of(x, 1, 0)
      == std::vector<kv_copy>{{2, 0, 0, 0, 2}, {3, 0, 0, 2, 1}, {3, 1, 1, 0, 1}, {4, 1, 0, 1, 2}});
  CHECK(copies_of(x, 1, 2)
        == std::vector<kv_copy>{{2, 2, 0, 0, 2}, {3, 2, 0, 2, 2}, {4, 2, 0, 4, 2}});
  CHECK(copies_of(x, 0, 2) == std::vector<kv_copy>{{0, 2, 0, 0, 3}, {1, 2, 0, 3, 3}});
}

TEST_CASE("L-M03 a member gets its heads of all slots that go to its table, but for those it has") {
  const kv_move_shape x{.kv_heads = 6,
                        .from = {{{2, 9}, {3, 9}, {0, 9}}},
                        .to = {{{2, 9}, {0, 9}, {1, 9}}},
                        .kept = {0}};
  using bytes = std::vector<kv_member_bytes>;
  CHECK(bytes_of_members(x, {{0, 0, 7}, {1, 0, 5}, {1, 2, 4}}, 60)
        == bytes{{5 * 30, 9 * 30}, {7 * 30 + 5 * 30, 9 * 30}, {4 * 60, 9 * 60}});
  CHECK(bytes_of_members(x, {}, 60) == bytes{{0, 9 * 30}, {0, 9 * 30}, {0, 9 * 60}});
}

} // namespace lamella::scheduler
