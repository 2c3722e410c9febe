// Moves of sequences that share slots: every row of a holder is that of its own text.
#include "tests/actors/kv/moving_pool.hpp"

#include <map>

namespace lamella::actors::test {

namespace {

/// What is written to which slot, and copied with it.
struct written_pool : moving_pool {
  using moving_pool::moving_pool;
  std::map<std::pair<uint32_t, uint32_t>, token_id> rows; ///< by table and slot
  std::map<uint64_t, kv_holding> held;

  void join(uint64_t request, const text& tokens) {
    const auto granted = begin(request, tokens, 0);
    REQUIRE(granted);
    held[request] = *granted;
    uint32_t position = 0;
    for_slots(granted->runs, [&](uint32_t slot) {
      if (position >= granted->cached) rows[{granted->member, slot}] = tokens.at(position);
      ++position;
    });
  }
  void copy() {
    for (auto x = next(5); !x.from.empty(); x = next(5)) {
      std::vector<token_id> content;
      for_slots(x.from, [&](uint32_t slot) { content.push_back(rows.at({x.from_table, slot})); });
      size_t i = 0;
      for_slots(x.to, [&](uint32_t slot) { rows[{x.to_table, slot}] = content.at(i++); });
      done();
    }
  }
  /// Resumes: whether the holder has its KV in the epoch, of which every row must be right.
  bool keeps(uint64_t request, const text& tokens) {
    const auto again = resume(request, tokens + text{7});
    REQUIRE(again);
    if (!again->kept) return false;
    uint32_t position = 0;
    for_slots(scheduler::prefix(again->runs, static_cast<uint32_t>(tokens.size())),
              [&](uint32_t slot) {
                CAPTURE(position);
                const auto row = rows.find({again->member, slot});
                REQUIRE(row != rows.end());
                CHECK(row->second == tokens[position++]);
              });
    return true;
  }
  template <class Then> static void for_slots(const runs& list, Then then) {
    for (const auto& run : list)
      for (uint32_t i = 0; i < run.length; ++i) then(run.first + i);
  }
};

} // namespace

// The cache keeps what it has of a text and adds the rest from whoever comes first: a later request
// shares slots of both.
TEST_CASE("L-M03 V-M12 a request that shares slots of two others goes where both go") {
  for (const bool joins_in_the_move : {false, true}) {
    CAPTURE(joins_in_the_move);
    written_pool x{200, 1, 60s};
    const auto all = counting(1, 40);
    const text half(all.begin(), all.begin() + 20);
    x.join(1, all);
    x.join(2, all); // nothing is cached yet: it has slots of its own
    const auto third = [&] {
      x.filled(1, half);
      x.filled(2, all);
      x.join(3, all + text{50, 51});
      CHECK(x.held[3].cached == 40);
      x.filled(3, all + text{50, 51});
    };
    if (!joins_in_the_move) third();
    x.filled(1, half);
    REQUIRE(x.prepare(2, 200)); // a further table: one of the first two goes there
    x.copy();
    if (joins_in_the_move) third();
    x.filled(1, all);
    x.filled(2, all);
    x.copy();
    x.take_over(2, 200);
    CHECK(x.keeps(1, all));
    CHECK(x.keeps(2, all));
    const bool kept = x.keeps(3, all + text{50, 51});
    if (!joins_in_the_move) CHECK(kept);
    x.usage();
    for (const uint64_t i : {1, 2, 3}) x.release(i);
    x.usage();
  }
}

} // namespace lamella::actors::test
