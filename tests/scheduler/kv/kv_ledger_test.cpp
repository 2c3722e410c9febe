#include "tests/scheduler/kv/ledger_world.hpp"

using namespace lamella::scheduler;
using namespace lamella::scheduler::test;

namespace {

void live(ledger_world& w) {
  w.now += std::chrono::milliseconds{w.random.below(20)};
  const auto what = w.random.below(10);
  if (what < 2) w.begin();
  if (what >= 2 && what < 8)
    if (auto* x = w.some()) w.decode(*x);
  if (what == 8)
    if (auto* x = w.some()) w.end(*x, w.random.below(4) > 0);
  if (what == 9) expire_cached(w.ledger, w.now);
  w.check();
}

void resume_all(ledger_world& w) {
  while (auto* x = w.some(false)) {
    if (w.ledger.holders.contains(x->id) && w.random.below(8) == 0) {
      w.lives.erase(x->id); // its request is gone: nobody resumes that
      continue;
    }
    w.resume(*x);
    w.check();
  }
  for (const auto holder : silent_holders(w.ledger)) release(w.ledger, holder);
  w.check();
}

} // namespace

TEST_CASE("V-M11 V-M12 sequences keep their KV, and no reference is left behind") {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    CAPTURE(seed);
    ledger_world w{seed, {96, 64}};
    for (int i = 0; i < 200; ++i) live(w);
    while (!w.lives.empty()) w.end(w.lives.begin()->second);
    w.now += std::chrono::seconds{2};
    expire_cached(w.ledger, w.now);
    CHECK(used_slots(w.ledger) == 0);
  }
}

TEST_CASE("L-M25 whoever is kept by an epoch has the KV it had; who lost it starts again") {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    CAPTURE(seed);
    ledger_world w{seed, {80, 80, 48}};
    for (int epoch = 0; epoch < 6; ++epoch) {
      for (int i = 0; i < 60; ++i) live(w);
      kv_takeover takes;
      for (uint32_t t = 0; t < 3; ++t)
        if (w.random.below(3) == 0) takes.lost.push_back(t);
      w.enter(takes);
      w.check();
      for (const auto table : takes.lost)
        for (const auto& [id, held] : w.ledger.holders) CHECK(held.member != table);
      resume_all(w);
    }
  }
}

TEST_CASE("L-M25 who has kept its KV goes on in a full table, and grows when there is room") {
  kv_ledger ledger{{std::chrono::seconds{1}, 0}, ledger_world::tables_of({100})};
  const sequence_id id{7};
  REQUIRE(reserve(ledger, {{id, 90, {}, 0, reserve_mode::fresh, 0, {}}}, 0, {}));
  const kv_need resumes{id, 95, {}, 0, reserve_mode::resume, 62, {}};
  const auto full = reserve(ledger, {resumes}, 20, {});
  REQUIRE(full);
  CHECK(full->front().kept);
  CHECK(length_of(full->front().runs) == 90);
  const auto room = reserve(ledger, {resumes}, 0, {});
  REQUIRE(room);
  CHECK(length_of(room->front().runs) == 95);
  // It has no slot for its next token: then it waits for one.
  const kv_need whole{id, 101, {}, 0, reserve_mode::resume, 95, {}};
  CHECK_FALSE(reserve(ledger, {whole}, 0, {}));
}

TEST_CASE("L-M23 a move takes the KV of all sequences along while they decode") {
  const std::vector<std::vector<uint32_t>> shapes{{96}, {64, 64}, {128, 0}, {48, 96, 32}, {0, 160}};
  uint32_t moved = 0, kept = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    CAPTURE(seed);
    ledger_world w{seed, {96}};
    for (int epoch = 0; epoch < 5; ++epoch) {
      for (int i = 0; i < 50; ++i) live(w);
      const auto& next = shapes[w.random.below(shapes.size())];
      if (!begin_move(w.ledger, next, w.random.below(2) == 0)) continue;
      w.copied = ledger_world::empty(next);
      w.check();
      for (int i = 0; i < 60; ++i) w.random.below(3) == 0 ? void(w.copy()) : live(w);
      if (w.random.below(4) == 0) { // the epoch does not come
        abort_move(w.ledger);
        w.check();
        continue;
      }
      for (auto& [id, x] : w.lives) note_filled(w.ledger, id, x.filled, w.now);
      while (w.copy()) w.check();
      kv_takeover takes;
      takes.tables = ledger_world::tables_of(next);
      takes.moved = true;
      w.enter(takes);
      w.check();
      ++moved;
      for (auto& [id, x] : w.lives) {
        const auto held = w.ledger.holders.find(id);
        kept += held != w.ledger.holders.end() && held->second.filled == x.filled;
      }
      resume_all(w);
    }
  }
  CHECK(moved > 60);
  CHECK(kept > 2 * moved);
}

TEST_CASE("L-M23 a move without room leaves the prefix cache as it is") {
  uint32_t refused = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    CAPTURE(seed);
    ledger_world w{seed, {96}};
    for (int i = 0; i < 80; ++i) live(w);
    const auto cached = w.ledger.pools[0].cached();
    if (begin_move(w.ledger, {12}, false)) continue;
    CHECK(w.ledger.pools[0].cached() == cached);
    refused += cached > 0;
    w.check();
  }
  CHECK(refused > 10);
}

TEST_CASE("L-M03 of a prompt that an epoch took over little is worth taking, too") {
  kv_ledger ledger{{std::chrono::seconds{1}, 50}, ledger_world::tables_of({512})};
  const text prompt(200, 7);
  const kv_text whole{0, prompt};
  const kv_need begins{sequence_id{1}, 200, {}, 0, reserve_mode::fresh, 0, whole};
  REQUIRE(reserve(ledger, {begins}, 0, {}));
  note_filled(ledger, begins.holder, 64, {});
  adopt(ledger, 2, {});
  auto other = begins;
  other.holder = sequence_id{2};
  CHECK(reserve(ledger, {other}, 0, {})->front().cached == 0);
  auto again = begins;
  again.text.resumes = true;
  CHECK(reserve(ledger, {again}, 0, {})->front().cached == 64);
}

TEST_CASE("L-M23 tables take turns, whatever is decoded in one of them meanwhile") {
  kv_ledger ledger{{std::chrono::seconds{1}, 0}, ledger_world::tables_of({64, 64})};
  const sequence_id grows{1}, waits{2};
  for (const auto id : {grows, waits})
    REQUIRE(reserve(ledger, {{id, 60, {}, 0, reserve_mode::fresh, 0, {}}}, 0, {}));
  REQUIRE(ledger.holders.at(grows).member != ledger.holders.at(waits).member);
  note_filled(ledger, grows, 20, {});
  note_filled(ledger, waits, 20, {});
  REQUIRE(begin_move(ledger, {64, 64}, false));
  uint32_t copied = 0;
  for (uint32_t piece = 0; piece < 40; ++piece) {
    const auto x = next_of_move(ledger, 1);
    REQUIRE(length_of(x.from) == 1);
    copied += x.from_table == ledger.holders.at(waits).member;
    note_copied(ledger);
    note_filled(ledger, grows, 21 + piece, {});
  }
  CHECK(copied == 20);
}

TEST_CASE("L-M25 choices that start again do not wait for the slots that they leave behind") {
  kv_ledger ledger{{std::chrono::seconds{1}, 0}, ledger_world::tables_of({100})};
  const sequence_id first{1}, second{2};
  const auto need = [](sequence_id holder, uint32_t slots) {
    kv_need x;
    x.holder = holder;
    x.slots = slots;
    x.mode = reserve_mode::fresh;
    return x;
  };
  auto choice = need(second, 10);
  choice.share_from = first;
  choice.share_tokens = 60;
  const std::vector<kv_need> both{need(first, 70), choice};
  REQUIRE(reserve(ledger, both, 0, {}));
  CHECK(ledger.pools[0].free() == 20);
  REQUIRE(reserve(ledger, both, 0, {}));
  CHECK(ledger.pools[0].free() == 20);
}

TEST_CASE("L-M26 slots that lack parity are walked over once, and freed ones lack none") {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    CAPTURE(seed);
    ledger_world w{seed, {128}};
    w.ledger.tables.list = {{{"attention-0", "attention-1"}, 128, "attention-2", true}};
    w.ledger.settings.prefix_time = {}; // rows that are pulled are never those of a cached prefix
    for (int round = 0; round < 20; ++round) {
      for (int i = 0; i < 20; ++i) live(w);
      if (auto* x = w.some()) note_pulled(w.ledger, x->id, prefix(x->runs, x->filled), false);
      for (auto& [id, x] : w.lives) w.ledger.holders.at(id).filled = x.filled;
      const auto lack = w.ledger.unprotected[0].count();
      CHECK(with_parity(w.ledger, 0) == w.ledger.pools[0].used() - lack);
      const sequence_id pin{~uint64_t{0}};
      kv_walk walk{pin, {}, 0, 1 + static_cast<uint32_t>(w.random.below(40)), true, 0};
      const auto found = sweep(w.ledger, walk);
      CHECK(length_of(found.runs) <= walk.slots);
      CHECK(w.ledger.unprotected[0].part(found.runs, true) == found.runs);
      CHECK(found.origins.size() == length_of(found.runs));
      w.ledger.unprotected[0].erase(found.runs);
      release(w.ledger, pin);
      w.check();
      CHECK(w.ledger.unprotected[0].part(w.ledger.pools[0].used_runs(), true)
            == w.ledger.unprotected[0].part(std::vector<slot_run>{{0, 128}}, true));
    }
  }
}
