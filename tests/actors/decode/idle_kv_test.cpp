// KV of sequences without a seat: others get its slots when they lack some, and nobody waits for
// ever. With the real allocator.
#include "actors/decode/global_scheduler.hpp"
#include "actors/kv/kv_allocator.hpp"
#include "actors/protocol/admission.hpp"
#include "actors/protocol/kv.hpp"
#include "tests/actors/stand_ins.hpp"

namespace lamella::actors::test {
namespace {

/// A hundred slots, four seats.
struct world : stage {
  kv_allocator_actor allocator;
  global_scheduler_actor scheduler;

  world() {
    kv_allocator_config k;
    k.tables.list = {{{"attention-0"}, 100}};
    allocator = spawn(kv_allocator, std::move(k));
    global_scheduler_config c;
    c.limits = {4, 1000};
    c.batches = 2;
    c.seats_per_batch = 2;
    c.window_slots = 10;
    c.slots = 100;
    c.spare_slots = 5;
    scheduler = spawn(global_scheduler, std::move(c), allocator);
  }
  ~world() { end_all(); }

  std::shared_ptr<reply<admitted>> begin(uint64_t request, uint32_t tokens) {
    return offer(admit{seq(request), 1, tokens, false});
  }
  std::shared_ptr<reply<admitted>> go_on(uint64_t request, uint32_t tokens, bool has_kv = true) {
    return offer(admit{seq(request), 1, tokens, true, has_kv});
  }
  /// All of them ask before anybody is answered.
  std::vector<std::shared_ptr<reply<admitted>>> go_on(const std::vector<uint64_t>& requests,
                                                      uint32_t tokens) {
    std::vector<std::shared_ptr<reply<admitted>>> answers;
    for (auto x : requests)
      answers.push_back(ask<admitted>(scheduler, admit{seq(x), 1, tokens, true, true}));
    settle();
    return answers;
  }
  /// It gives up its seat and not its slots.
  void step_back(uint64_t request) { tell(scheduler, retire{seq(request), true}); }
  /// As after an epoch in which it did not ask for a seat in time.
  void lose(uint64_t request) { tell(allocator, kv_release{{seq(request)}}); }
  void end(uint64_t request) {
    lose(request);
    tell(scheduler, retire{seq(request)});
  }
  kv_usage usage() {
    auto answer = ask<kv_usage>(allocator, status_atom_v);
    settle();
    return answer->value;
  }

private:
  std::shared_ptr<reply<admitted>> offer(admit x) {
    auto answer = ask<admitted>(scheduler, std::move(x));
    settle();
    return answer;
  }
  template <class Actor, class Message> void tell(const Actor& whom, Message x) {
    caf::anon_send(whom, std::move(x));
    settle();
  }
};

bool kept(const std::shared_ptr<reply<admitted>>& x) {
  REQUIRE(x->came);
  REQUIRE_FALSE(x->error);
  return x->value.holdings.front().kept;
}

} // namespace

// Found by seed 6002129: the head wanted more slots than were free, those behind it had the rest.
TEST_CASE("V-M15 L-M25 one that comes back to its KV runs before a head that waits for slots") {
  world w;
  REQUIRE(w.begin(1, 50)->came);
  REQUIRE(w.begin(2, 20)->came);
  const auto head = w.go_on(3, 20, false);
  CHECK_FALSE(head->came);
  w.step_back(1);
  CHECK(kept(w.go_on(1, 51)));
  CHECK_FALSE(head->came);
  w.end(1);
  CHECK(head->came);
}

TEST_CASE("V-M15 slots of who waits for its reader go to a head that lacks them, youngest first") {
  world w;
  for (uint64_t i : {1, 2, 3}) REQUIRE(w.begin(i, 15)->came);
  for (uint64_t i : {1, 2}) w.step_back(i);
  const auto head = w.begin(4, 30); // 25 are free, five of them for 3
  CHECK(head->came);
  CHECK(kept(w.go_on(1, 16)));
  w.end(4);
  CHECK_FALSE(kept(w.go_on(2, 16))); // computed again
  CHECK(w.usage().held == 26 + 26 + 25);
}

TEST_CASE("V-M15 whose turn is next keeps its KV while somebody runs who will give slots back") {
  world w;
  for (uint64_t i : {1, 2, 3}) REQUIRE(w.begin(i, 20)->came);
  for (uint64_t i : {1, 2}) w.step_back(i);
  // They have no slot for the next token, and five of the ten must stay free for 3.
  const auto answers = w.go_on({1, 2}, 31);
  for (const auto& x : answers) CHECK_FALSE(x->came);
  w.end(3);
  for (const auto& x : answers) CHECK(kept(x));
}

TEST_CASE("V-M15 L-M25 all whose KV an epoch has kept go on at once in a full table") {
  world w;
  for (uint64_t i : {1, 2, 3}) REQUIRE(w.begin(i, 20)->came);
  for (uint64_t i : {1, 2, 3}) w.step_back(i);
  for (const auto& x : w.go_on({1, 2, 3}, 25)) CHECK(kept(x)); // ten are free, and they want 15
}

TEST_CASE(
    "V-M15 L-M25 when all slots are with those whose turn is next, the youngest begins anew") {
  world w;
  for (uint64_t i : {1, 2, 3}) REQUIRE(w.begin(i, 21)->came);
  for (uint64_t i : {1, 2, 3}) w.step_back(i); // seven are free, nobody runs
  const auto answers = w.go_on({1, 2, 3}, 32);
  CHECK(kept(answers[0]));
  CHECK(kept(answers[1]));
  CHECK_FALSE(answers[2]->came);
  w.end(1);
  CHECK_FALSE(kept(answers[2]));
  w.end(2);
  w.end(3);
  const auto left = w.usage();
  CHECK(left.held == 0);
  CHECK(left.free == 100);
}

TEST_CASE("V-M15 one that has lost its KV without a word does not keep others from theirs") {
  world w;
  for (uint64_t i : {1, 2}) REQUIRE(w.begin(i, 30)->came);
  for (uint64_t i : {1, 2}) w.step_back(i);
  w.lose(2);
  CHECK(w.begin(3, 60)->came);
  CHECK(w.usage().held == 70);
}

} // namespace lamella::actors::test
