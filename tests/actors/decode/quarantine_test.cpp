// The scheduler runs suspects apart from the others, holds who must wait, and refuses who kills.
#include "actors/decode/global_scheduler.hpp"
#include "actors/protocol/admission.hpp"
#include "actors/protocol/batches.hpp"
#include "actors/protocol/iterations.hpp"
#include "actors/protocol/kv.hpp"
#include "tests/actors/stand_ins.hpp"

namespace lamella::actors::test {
namespace {

constexpr uint32_t rows = 5;

/// A batch that only listens.
auto stand_in_batch(std::vector<sequence_id>* told_to_leave) {
  return [told_to_leave](batch_actor::pointer) -> batch_actor::behavior_type {
    return {
        [](const batch_join&) {},
        [told_to_leave](const batch_leave& x) {
          CHECK(x.tell); // it keeps its slots
          told_to_leave->push_back(x.sequence);
        },
        [](const iteration_failed&) {},
        [](const kv_rebuilding&) {},
        [](const hand_over&) { return true; },
        [](wake_atom) {},
        [](status_atom) -> caf::result<uint32_t> { return uint32_t{0}; },
    };
  };
}

struct world : stage {
  std::shared_ptr<suspect_board> suspects = std::make_shared<suspect_board>();
  std::shared_ptr<allocator_book> kv = std::make_shared<allocator_book>();
  std::map<uint32_t, std::vector<sequence_id>> told_to_leave; ///< by batch
  global_scheduler_actor scheduler;

  ~world() { end_all(); }

  /// A batch on each of these replicas.
  explicit world(std::vector<uint32_t> replicas) {
    global_scheduler_config c;
    c.limits = {4, 1000};
    c.batches = static_cast<uint32_t>(replicas.size());
    c.seats_per_batch = 8;
    c.prefill_workers = c.batches;
    c.window_slots = 10;
    c.slots = 1000;
    c.suspects = suspects;
    c.replica_of_batch = c.replica_of_prefill = replicas;
    scheduler = spawn(global_scheduler, std::move(c), spawn(stand_in_allocator(kv)));
    for (uint32_t j = 0; j < replicas.size(); ++j)
      caf::anon_send(scheduler,
                     batch_ready{stream_id{j}, spawn(stand_in_batch(&told_to_leave[j]))});
    settle();
  }

  std::shared_ptr<reply<admitted>> offer(uint64_t request, bool resumed = true,
                                         bool has_kv = false) {
    auto answer = ask<admitted>(scheduler, admit{seq(request), 1, 10, resumed, has_kv});
    settle();
    return answer;
  }
  template <class... Ts> void tell(Ts... x) {
    caf::anon_send(scheduler, x...);
    settle();
  }
  /// A worker ended by its own fault with these in flight.
  void end(std::initializer_list<uint64_t> ids) {
    ++epoch_;
    for (auto x : ids) suspects->runs(seq(x), epoch_, stream_id{0}, rows);
    suspects->ended_here();
    settle();
  }
  /// They have drawn so many tokens more.
  void draw(uint64_t request, uint32_t tokens) {
    suspects->runs(seq(request), epoch_ + 1, stream_id{0}, rows);
    suspects->has(seq(request), rows + tokens);
    settle();
  }

private:
  uint64_t epoch_ = 0;
};

uint32_t batch_of(const std::shared_ptr<reply<admitted>>& x) {
  REQUIRE(x->came);
  REQUIRE_FALSE(x->error);
  return static_cast<uint32_t>(x->value.batch);
}

} // namespace

TEST_CASE("Suspects run on the last replica, one group after the other, and nobody else does") {
  world w{{0, 1, 0, 1}};
  for (int i = 0; i < 2; ++i) w.end({1, 2, 3, 4});
  std::map<uint64_t, std::shared_ptr<reply<admitted>>> answers;
  for (uint64_t i = 1; i <= 8; ++i) answers[i] = w.offer(i);
  for (uint64_t i : {1, 2}) {
    CHECK(batch_of(answers[i]) % 2 == 1);
    CHECK(answers[i]->value.prefill_worker % 2 == 1);
  }
  for (uint64_t i : {3, 4}) CHECK_FALSE(answers[i]->came);
  for (uint64_t i : {5, 6, 7, 8}) {
    CHECK(batch_of(answers[i]) % 2 == 0);
    CHECK(answers[i]->value.prefill_worker % 2 == 0);
  }
  // The first group is clean: it leaves the place to the next one, with its KV.
  w.draw(1, 8);
  CHECK_FALSE(answers[3]->came);
  w.draw(2, 8);
  CHECK_FALSE(answers[3]->came);
  CHECK(w.told_to_leave[1].size() + w.told_to_leave[3].size() == 2);
  CHECK(w.told_to_leave[0].empty());
  w.tell(retire{seq(1)});
  CHECK_FALSE(answers[3]->came);
  w.tell(retire{seq(2)});
  for (uint64_t i : {3, 4}) CHECK(batch_of(answers[i]) % 2 == 1);
  CHECK(batch_of(w.offer(1)) % 2 == 0);
  for (uint64_t i : {3, 4}) w.draw(i, 8);
  CHECK_FALSE(w.suspects->hunting());
}

TEST_CASE("With one replica the others wait for the suspects, and then go on") {
  world w{{0, 0}};
  for (int i = 0; i < 2; ++i) w.end({1, 2});
  const auto other = w.offer(3), second = w.offer(2), first = w.offer(1);
  CHECK(batch_of(first) < 2);
  CHECK_FALSE(second->came);
  CHECK_FALSE(other->came);
  w.draw(1, 8);
  w.tell(retire{seq(1)});
  CHECK(second->came);
  CHECK_FALSE(other->came);
  const auto again = w.offer(1);
  CHECK_FALSE(again->came);
  w.draw(2, 8);
  CHECK(other->came);
  CHECK(again->came);
}

TEST_CASE("Whoever ran before it was suspected steps back, however often it must be told") {
  world w{{0, 1}};
  const auto first = w.offer(1), second = w.offer(2);
  for (int i = 0; i < 2; ++i) w.end({1, 2});
  const auto where = batch_of(second);
  const auto before = w.told_to_leave[where].size();
  CHECK(before > 0);
  w.advance(std::chrono::milliseconds{200}, std::chrono::milliseconds{10});
  CHECK(w.told_to_leave[where].size() > before); // its prompt ran: the batch did not know it
  w.tell(retire{seq(1)});
  w.tell(retire{seq(2)});
  CHECK(batch_of(w.offer(1)) == 1);
  CHECK_FALSE(w.offer(2)->came);
}

TEST_CASE("Whoever is found to kill is refused, waiting or not, and the others go on") {
  world w{{0, 0}};
  w.end({1});
  w.end({1});
  CHECK(w.offer(1)->error == ec::request_poisoned);
  for (int i = 0; i < 2; ++i) w.end({2, 3});
  const auto held = w.offer(3), other = w.offer(4);
  w.end({2});
  const auto waiting = w.offer(2);
  w.tell(retire{seq(2)});
  CHECK_FALSE(held->came);
  w.end({2});
  CHECK(w.offer(2)->error == ec::request_poisoned);
  CHECK_FALSE(held->error);
  CHECK(held->came);
  CHECK_FALSE(other->came);
  w.suspects->over(request_id{3});
  w.tell(retire{seq(3)});
  CHECK(other->came);
}

TEST_CASE("Held requests can be withdrawn and are bounded like the others") {
  world w{{0}};
  for (int i = 0; i < 2; ++i) w.end({1, 2});
  REQUIRE(w.offer(1)->came);
  std::vector<std::shared_ptr<reply<admitted>>> held;
  for (uint64_t i = 10; i < 14; ++i) held.push_back(w.offer(i, false));
  for (const auto& x : held) CHECK_FALSE(x->came);
  CHECK(w.offer(20, false)->error == ec::queue_full);
  CHECK_FALSE(w.offer(21, true)->came); // accepted before
  w.tell(withdraw{seq(10)});
  CHECK(held[0]->error == ec::cancelled);
  w.draw(1, 8);
  w.suspects->over(request_id{2});
  w.settle();
  for (size_t i = 1; i < held.size(); ++i) CHECK(held[i]->came);
}

TEST_CASE("Suspects that lack slots get those of the held") {
  world w{{0}};
  for (int i = 0; i < 2; ++i) w.end({1, 2});
  const auto kept = w.offer(7, true, true), without = w.offer(8, true, false);
  w.kv->does = allocator_book::mode::refuses;
  const auto first = w.offer(1);
  CHECK_FALSE(first->came);
  CHECK(w.kv->released == std::vector<sequence_id>{seq(7)});
  w.kv->does = allocator_book::mode::grants;
  w.tell(kv_freed{50});
  CHECK(first->came);
  CHECK_FALSE(kept->came);
  CHECK_FALSE(without->came);
}

} // namespace lamella::actors::test
