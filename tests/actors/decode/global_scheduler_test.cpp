#include "actors/protocol/admission.hpp"
#include "actors/protocol/kv.hpp"
#include "tests/actors/decode/scheduler_world.hpp"

namespace lamella::actors::test {
namespace {

using world = scheduler_world;

global_scheduler_config small() { return small_scheduler(); }

} // namespace

TEST_CASE("V-M15 prompts start in the order they came, spread over batches and prefill workers") {
  world w;
  std::vector<std::shared_ptr<reply<admitted>>> answers;
  for (uint64_t i = 1; i <= 6; ++i) answers.push_back(w.offer(i));
  for (int i = 0; i < 4; ++i) REQUIRE(answers[i]->came);
  CHECK_FALSE(answers[4]->came); // four seats in all
  CHECK(static_cast<uint32_t>(answers[0]->value.batch)
        != static_cast<uint32_t>(answers[1]->value.batch));
  CHECK(answers[0]->value.prefill_worker != answers[1]->value.prefill_worker);
  w.tell(retire{seq(3)});
  CHECK(answers[4]->came);
  CHECK_FALSE(answers[5]->came);
  w.tell(retire{seq(3)}); // told twice: counts once
  CHECK_FALSE(answers[5]->came);
}

TEST_CASE("what has its slots waits until its prefill begins") {
  using numbers = std::pair<uint64_t, uint64_t>;
  world w;
  const auto load = [&] {
    const auto result = std::make_shared<numbers>();
    w.spawn([result, whom = w.scheduler](caf::event_based_actor* self) -> caf::behavior {
      self->request(whom, caf::infinite, status_atom_v).then([result](const queue_status& queue) {
        *result = {queue.running, queue.waiting};
      });
      return {[](const kv_freed&) {}};
    });
    w.settle();
    return *result;
  };
  REQUIRE(w.offer(1, 10, 2)->came);
  REQUIRE(w.offer(2)->came);
  CHECK(load() == numbers{0, 2});
  w.tell(prefill_begun{seq(1)});
  CHECK(load() == numbers{2, 1});
  w.tell(prefill_begun{seq(1)}); // again, after a failure
  CHECK(load() == numbers{2, 1});
  w.tell(retire{seq(2)}); // its client left before its turn came
  CHECK(load() == numbers{2, 0});
  w.tell(prefill_begun{seq(2)}); // under way meanwhile
  w.tell(retire{seq(1, 1)});
  CHECK(load() == numbers{1, 0});
}

TEST_CASE("the canary's token is no request: neither waiting nor running") {
  auto c = small_scheduler();
  c.canary = seq(9);
  scheduler_world w{c};
  const auto idle = [&] {
    auto answer = w.ask<queue_status>(w.scheduler, status_atom_v);
    w.settle();
    return answer->value.running == 0 && answer->value.waiting == 0;
  };
  w.kv->does = allocator_book::mode::refuses;
  const auto place = w.offer(9, 1);
  CHECK_FALSE(place->came);
  CHECK(idle());
  w.kv->does = allocator_book::mode::grants;
  w.tell(kv_freed{100});
  CHECK(place->came);
  CHECK(idle());
  w.tell(prefill_begun{seq(9)});
  CHECK(idle());
  w.tell(retire{seq(9)});
  CHECK(idle());
}

TEST_CASE("the oldest prompt's wait is told, in the queue and before its prefill") {
  world w;
  const auto oldest = [&] {
    auto answer = w.ask<queue_status>(w.scheduler, status_atom_v);
    w.settle();
    return answer->value.oldest_ms;
  };
  CHECK(oldest() == 0);
  REQUIRE(w.offer(1, 10, 2)->came);
  REQUIRE(w.offer(2, 10, 2)->came);
  w.advance(std::chrono::seconds{2}, std::chrono::seconds{1});
  CHECK_FALSE(w.offer(3)->came);
  w.advance(std::chrono::seconds{1}, std::chrono::seconds{1});
  CHECK(oldest() == 3000);
  w.tell(prefill_begun{seq(1)});
  w.tell(prefill_begun{seq(2)});
  CHECK(oldest() == 1000);
  w.tell(withdraw{seq(3)});
  CHECK(oldest() == 0);
}

TEST_CASE("V-M15 the queue is bounded in prompts and in tokens") {
  world w;
  w.kv->does = allocator_book::mode::holds;
  for (uint64_t i = 1; i <= 4; ++i) CHECK_FALSE(w.offer(i)->came);
  CHECK(w.offer(5)->error == ec::queue_full);
  world x{[] {
    auto c = small();
    c.limits.queue_tokens = 100;
    return c;
  }()};
  x.kv->does = allocator_book::mode::holds;
  CHECK_FALSE(x.offer(1, 60)->came);
  CHECK(x.offer(2, 41)->error == ec::queue_tokens);
  CHECK_FALSE(x.offer(3, 40)->came);
  CHECK_FALSE(x.offer(4, 80, 1, true)->came); // accepted before: never refused again
}

TEST_CASE("V-M15 other bounds hold for who comes from then on, who waits is not refused") {
  world w;
  w.kv->does = allocator_book::mode::holds;
  const auto first = w.offer(1), second = w.offer(2), third = w.offer(3);
  w.tell(scheduler::admission_limits{2, 1000});
  CHECK(w.offer(4)->error == ec::queue_full);
  for (const auto& x : {first, second, third}) CHECK_FALSE(x->came);
  w.tell(scheduler::admission_limits{9, 35});
  CHECK(w.offer(5)->error == ec::queue_tokens);
  w.tell(scheduler::admission_limits{9, 1000});
  CHECK_FALSE(w.offer(6)->came);
}

TEST_CASE("What can never fit is refused at once with the numbers") {
  world w;
  CHECK(w.offer(1, 91)->error == ec::never_fits);
  CHECK(w.offer(2, 10, 3)->error == ec::never_fits);
  CHECK(w.system.render(w.offer(3, 91)->error).find("101") != std::string::npos);
  CHECK(w.offer(4, 90)->came);
}

TEST_CASE("A2 what a larger pool accepted waits for one, gives its KV back and holds up nobody") {
  world w;
  admit large{seq(1), 1, 91, true};
  large.has_kv = true;
  const auto answer = w.ask<admitted>(w.scheduler, large);
  w.settle();
  CHECK_FALSE(answer->came);
  CHECK(w.kv->released == std::vector<sequence_id>{seq(1)});
  w.advance(std::chrono::seconds{6}, std::chrono::seconds{1});
  const auto status = w.ask<queue_status>(w.scheduler, status_atom_v);
  w.settle();
  CHECK(status->value.waiting == 0);
  CHECK(status->value.oldest_ms == 0); // no worker of these pools keeps it waiting
  CHECK(w.offer(2, 90)->came);
  w.tell(withdraw{seq(1)}); // its client has left
  CHECK(answer->error == ec::cancelled);
}

TEST_CASE("V-M15 a starved head waits for freed slots and is not overtaken") {
  world w;
  w.kv->does = allocator_book::mode::refuses;
  const auto big = w.offer(1, 80);
  w.kv->does = allocator_book::mode::grants;
  const auto little = w.offer(2, 1);
  CHECK_FALSE(big->came);
  CHECK_FALSE(little->came);
  w.tell(kv_freed{50});
  REQUIRE(big->came);
  CHECK(little->came);
  REQUIRE(w.kv->questions.size() == 3);
  CHECK(w.kv->questions[1].needs[0].holder == seq(1));
  CHECK(w.kv->questions[0].tell);
}

TEST_CASE("V-M12 the choices of a prompt ask for its slots once") {
  world w;
  REQUIRE(w.offer(1, 30, 2)->came);
  const auto& needs = w.kv->questions.at(0).needs;
  REQUIRE(needs.size() == 2);
  CHECK(needs[0].slots == 40);
  CHECK(needs[1].slots == 10);
  CHECK(needs[1].share_from == seq(1, 0));
  CHECK(needs[1].share_tokens == 30);
}

TEST_CASE("A withdrawn prompt gives back a reservation that was under way") {
  world w;
  w.kv->does = allocator_book::mode::holds;
  const auto gone = w.offer(1), next = w.offer(2);
  w.tell(withdraw{seq(1)});
  CHECK(gone->error == ec::cancelled);
  w.kv->grant();
  w.settle();
  CHECK(w.kv->released == std::vector<sequence_id>{seq(1)});
  w.kv->grant();
  w.settle();
  CHECK(next->came);
  CHECK_FALSE(next->error);
  w.tell(withdraw{seq(2)}); // too late: nothing happens
  CHECK(w.kv->released.size() == 1);
}

// Found by reading: the grant for the old head once removed the resumed one from the queue.
TEST_CASE(
    "V-M15 one that comes back while slots are reserved for the head goes next, and both run") {
  world w;
  w.kv->does = allocator_book::mode::holds;
  const auto head = w.offer(1), third = w.offer(3);
  const auto resumed = w.offer(2, 20, 1, true);
  w.kv->grant();
  w.settle();
  CHECK(head->came);
  REQUIRE(w.kv->questions.size() == 2);
  CHECK(w.kv->questions[1].needs[0].holder == seq(2));
  w.kv->grant();
  w.settle();
  CHECK(resumed->came);
  w.kv->grant();
  w.settle();
  CHECK(third->came);
  CHECK(w.kv->released.empty());
}

// Found by reading: the slots of the last sequence came back before its seat did; the head was then
// refused because of the slots kept free for what runs, and nothing was left to wake it up.
TEST_CASE(
    "A head that needs the whole pool starts once the last sequence has left, in either order") {
  for (const bool slots_first : {true, false}) {
    CAPTURE(slots_first);
    stage s;
    kv_allocator_config k;
    k.tables.list = {{{"attention-0"}, 100}};
    auto allocator = s.spawn(kv_allocator, std::move(k));
    auto scheduler = s.spawn(global_scheduler, small(), allocator);
    const auto first = s.ask<admitted>(scheduler, admit{seq(1), 1, 10, false});
    s.settle();
    const auto whole = s.ask<admitted>(scheduler, admit{seq(2), 1, 90, false});
    s.settle();
    REQUIRE(first->came);
    REQUIRE_FALSE(whole->came);
    if (slots_first) caf::anon_send(allocator, kv_release{{seq(1)}});
    s.settle();
    caf::anon_send(scheduler, retire{seq(1)});
    s.settle();
    if (!slots_first) caf::anon_send(allocator, kv_release{{seq(1)}});
    s.settle();
    CHECK(whole->came);
    CHECK_FALSE(whole->error);
  }
}

TEST_CASE("A refusal that comes after the last sequence has left is asked for again") {
  world w;
  w.offer(1);
  w.kv->does = allocator_book::mode::holds;
  const auto second = w.offer(2, 80);
  REQUIRE(w.kv->asked.size() == 1);
  CHECK(w.kv->questions.back().keep_free > 0);
  w.tell(retire{seq(1)}); // its slots came back before
  w.kv->refuse();
  w.settle();
  REQUIRE(w.kv->asked.size() == 1);
  CHECK(w.kv->questions.back().keep_free == 0);
  w.kv->grant();
  w.settle();
  CHECK(second->came);
  CHECK_FALSE(second->error);
}

TEST_CASE("A draining scheduler takes nothing new, but what was preempted") {
  world w;
  w.tell(drain_atom_v);
  CHECK(w.offer(1)->error == ec::draining);
  CHECK_FALSE(w.offer(2, 10, 1, true)->error);
}

} // namespace lamella::actors::test
