// Where prompts are computed and sequences decode, by the work of each machine (Splitwise IV-A).
#include "actors/protocol/admission.hpp"
#include "tests/actors/decode/scheduler_world.hpp"

namespace lamella::actors::test {
namespace {

using world = scheduler_world;

global_scheduler_config small() { return small_scheduler(); }

} // namespace

TEST_CASE("S-M04 S-M05 S-M06 a prompt goes to the prefill worker with the fewest pending tokens") {
  auto c = small();
  c.seats_per_batch = 8;
  c.slots = 1000;
  c.spare_slots = 50;
  c.limits = {16, 10'000};
  world w{c};
  const auto worker_of = [&](uint64_t request, uint32_t tokens) {
    const auto answer = w.offer(request, tokens);
    REQUIRE(answer->came);
    return answer->value.prefill_worker;
  };
  const auto first = worker_of(1, 100);
  const auto other = 1 - first;
  for (uint64_t i = 2; i <= 5; ++i) CHECK(worker_of(i, 20) == other); // 80 tokens beside 100
  CHECK(worker_of(6, 30) == other);                                   // 110
  CHECK(worker_of(7, 10) == first);                                   // 110 and 110
  // What has begun counts as the worker tells it.
  w.tell(prefill_begun{seq(1)});
  w.tell(prefill_load{stream_id{scheduler::prefill_streams + first}, 400});
  CHECK(worker_of(8, 200) == other); // 410 and 310
  CHECK(worker_of(9, 150) == other); // 410 and 460
  CHECK(worker_of(10, 1) == first);
  w.tell(prefill_load{stream_id{scheduler::prefill_streams + first}, 0});
  CHECK(worker_of(11, 1) == first);
  w.tell(prefill_load{stream_id{scheduler::prefill_streams + 7}, 1}); // of nobody
}

TEST_CASE("S-M02 where launches are mixed, a prompt's worker is its batch") {
  auto c = small();
  c.mixed_launches = true;
  c.mixed_workers = c.batches;
  SUBCASE("without prefill workers") {
    c.prefill_workers = 0;
    world w{c};
    for (uint64_t i = 1; i <= 4; ++i) {
      const auto came = w.offer(i);
      REQUIRE(came->came);
      CHECK(came->value.prefill_worker == static_cast<uint32_t>(came->value.batch));
    }
  }
  SUBCASE("those of prefill workers that are full overflow onto batches") {
    c.prefill_workers = 1;
    c.overflow_tokens = 15;
    world w{c};
    const auto first = w.offer(1), second = w.offer(2);
    CHECK(first->value.prefill_worker == 0);
    const auto lane = second->value.prefill_worker;
    REQUIRE(lane >= 1);
    w.tell(prefill_begun{seq(1)});
    w.tell(prefill_load{stream_id{scheduler::prefill_streams}, 0});
    w.tell(prefill_load{stream_id{lane - 1}, 500}); // lanes are told by the stream of their batch
    CHECK(w.offer(3)->value.prefill_worker == 0);
    CHECK(w.offer(4)->value.prefill_worker == 3 - lane);
  }
}

TEST_CASE("S-M07 S-M08 prompts overflow onto replicas that decode, until theirs are computed") {
  auto c = small();
  c.seats_per_batch = 8;
  c.slots = 10'000;
  c.limits = {16, 100'000};
  c.prefill_workers = 1;
  c.mixed_workers = 2; // numbers 1 and 2
  c.overflow_tokens = 1000;
  c.metrics = std::make_shared<net::metrics>(net::metrics::settings{});
  c.metrics->set_mixed_replicas(7); // of the pipeline before
  world w{c};
  const auto worker_of = [&](uint64_t request, uint32_t tokens) {
    const auto answer = w.offer(request, tokens);
    REQUIRE(answer->came);
    return answer->value.prefill_worker;
  };
  const auto has = [&](const char* line) {
    return c.metrics->scrape().body.find(line) != std::string::npos;
  };
  CHECK(worker_of(1, 900) == 0);
  CHECK(has("lamella_mixed_replicas 0"));
  const auto first = worker_of(2, 600);
  CHECK(first > 0);
  CHECK(worker_of(3, 400) == first); // it is mixed, and has room
  CHECK(worker_of(4, 50) == 0);
  CHECK(worker_of(5, 100) == 3 - first);
  CHECK(has("lamella_mixed_replicas 2"));
  CHECK(has("lamella_prompts_overflowed_total 3"));
  // Its prompts are computed: it only decodes.
  w.tell(prefill_begun{seq(5)});
  w.tell(prefill_load{stream_id{scheduler::prefill_streams + 3 - first}, 100});
  CHECK(has("lamella_mixed_replicas 2"));
  w.tell(prefill_load{stream_id{scheduler::prefill_streams + 3 - first}, 0});
  CHECK(has("lamella_mixed_replicas 1"));
  w.tell(retire{seq(2)}); // clients that left before their turn
  w.tell(retire{seq(3)});
  CHECK(has("lamella_mixed_replicas 0"));
}

TEST_CASE("S-M09 S-M07 a replica that is mixed for long computes prompts, until tokens need it") {
  auto c = small();
  c.seats_per_batch = 6;
  c.slots = 10'000;
  c.limits = {64, 1'000'000};
  c.prefill_workers = 1;
  c.mixed_launches = true;
  c.mixed_workers = c.batches; // workers 1 and 2 are batches 0 and 1
  c.overflow_tokens = 1000;
  c.repurpose_s = 30;
  c.metrics = std::make_shared<net::metrics>(net::metrics::settings{});
  world w{c};
  const auto mixed = [&](int count) {
    const auto line = "lamella_mixed_replicas " + std::to_string(count) + "\n";
    return c.metrics->scrape().body.find(line) != std::string::npos;
  };
  const auto place = [&](uint64_t request, uint32_t tokens) {
    const auto answer = w.offer(request, tokens);
    REQUIRE(answer->came);
    return answer->value;
  };
  CHECK(place(1, 900).prefill_worker == 0);
  const auto replica = place(2, 600).prefill_worker - 1; // it overflows
  CHECK(mixed(1));
  w.sched.advance_time(std::chrono::seconds{31});
  // The other one decodes from now on, whoever comes, and prompts go there without overflow.
  for (uint64_t i = 3; i <= 5; ++i) CHECK(static_cast<uint32_t>(place(i, 10).batch) == 1 - replica);
  CHECK(mixed(0));
  w.tell(prefill_begun{seq(2)});
  w.tell(prefill_load{stream_id{replica}, 0});
  CHECK(place(6, 800).prefill_worker == replica + 1); // the shortest queue of those for prompts
  // One seat is left where the others decode, then tokens come to the replica for prompts.
  uint64_t next = 7;
  auto batch = 1 - replica;
  for (; batch != replica && next < 12; ++next)
    batch = static_cast<uint32_t>(place(next, 10).batch);
  CHECK(batch == replica);
  CHECK(mixed(1));
}

TEST_CASE("S-M09 the last replica that decodes does not change its pool") {
  auto c = small();
  c.batches = 1;
  c.slots = 10'000;
  c.limits = {64, 1'000'000};
  c.prefill_workers = 1;
  c.mixed_launches = true;
  c.mixed_workers = c.batches;
  c.overflow_tokens = 1000;
  c.repurpose_s = 30;
  c.metrics = std::make_shared<net::metrics>(net::metrics::settings{});
  const auto is_mixed = [&] {
    return c.metrics->scrape().body.find("lamella_mixed_replicas 1\n") != std::string::npos;
  };
  world w{c};
  w.offer(1, 900);
  const auto second = w.offer(2, 600);
  REQUIRE(second->came);
  CHECK(second->value.prefill_worker == 1);
  CHECK(is_mixed());
  w.sched.advance_time(std::chrono::seconds{31});
  w.tell(prefill_load{stream_id{0}, 600}); // sorts the machines
  CHECK(is_mixed());
}

TEST_CASE(
    "S-M03 S-M07 S-M08 a prefill seat computes prompts, and decodes while all others are full") {
  auto c = small();
  c.slots = 10'000;
  c.limits = {64, 1'000'000};
  c.prefill_workers = 0;
  c.mixed_launches = true;
  c.mixed_workers = c.batches;
  c.prompt_batches = 1; // batch 1
  c.metrics = std::make_shared<net::metrics>(net::metrics::settings{});
  const auto mixed = [&](int count) {
    const auto line = "lamella_mixed_replicas " + std::to_string(count) + "\n";
    return c.metrics->scrape().body.find(line) != std::string::npos;
  };
  world w{c};
  const auto place = [&](uint64_t request, uint32_t tokens = 10) {
    const auto answer = w.offer(request, tokens);
    REQUIRE(answer->came);
    return answer->value;
  };
  for (const uint64_t request : {1, 2}) {
    const auto got = place(request);
    CHECK(got.batch == stream_id{0});
    CHECK(got.prefill_worker == 1);
  }
  CHECK(mixed(0));
  const auto third = place(3); // the other batch has no seat
  CHECK(third.batch == stream_id{1});
  CHECK(third.prefill_worker == 1);
  CHECK(mixed(1));
  w.tell(retire{seq(1)});
  CHECK(place(4).batch == stream_id{0});
  CHECK(place(5).batch == stream_id{1});
  w.tell(retire{seq(3)});
  CHECK(mixed(1));
  w.tell(retire{seq(5)});
  CHECK(mixed(0)); // nothing decodes there any more
  const auto body = c.metrics->scrape().body;
  CHECK(body.find("lamella_sequences_overflowed_total 2\n") != std::string::npos);
}

TEST_CASE("S-M07 S-M08 sequences come to machines for prompts only while all others are full") {
  auto c = small();
  c.slots = 10'000;
  c.limits = {64, 1'000'000};
  c.batches = 3;
  c.seats_per_batch = 4;
  c.prefill_workers = 0;
  c.mixed_launches = true;
  c.mixed_workers = c.batches;
  c.prompt_batches = 2; // batches 1 and 2
  world w{c};
  const auto place = [&](uint64_t request) {
    const auto answer = w.offer(request);
    REQUIRE(answer->came);
    return answer->value.batch;
  };
  for (const uint64_t request : {1, 2, 3, 4}) CHECK(place(request) == stream_id{0});
  const auto mixed = place(5);
  CHECK(place(6) == mixed); // the other one has prompts alone as long as this one has room
  w.tell(retire{seq(1)});
  CHECK(place(7) == stream_id{0}); // which has more sequences
  CHECK(place(8) == mixed);
  CHECK(place(9) == mixed);
  CHECK(place(10) != mixed);
}

namespace {

/// Two replicas that decode, and two prefill workers with KV of their own that can.
global_scheduler_config two_and_two() {
  auto c = small();
  c.slots = 10'000;
  c.limits = {64, 1'000'000};
  c.batches = 4;
  c.prefill_workers = 2; // workers 2 to 5 are batches 0 to 3
  c.mixed_launches = true;
  c.mixed_workers = c.batches;
  c.prompt_batches = 2;
  c.overflow_tokens = 1000;
  c.metrics = std::make_shared<net::metrics>(net::metrics::settings{});
  return c;
}

} // namespace

TEST_CASE(
    "S-M03 S-M07 S-M08 a prefill worker with KV of its own decodes while all others are full") {
  const auto c = two_and_two();
  const auto mixed = [&](int count) {
    const auto line = "lamella_mixed_replicas " + std::to_string(count) + "\n";
    return c.metrics->scrape().body.find(line) != std::string::npos;
  };
  world w{c};
  const auto place = [&](uint64_t request, uint32_t tokens = 10) {
    const auto answer = w.offer(request, tokens);
    REQUIRE(answer->came);
    return answer->value;
  };
  for (const uint64_t request : {1, 2, 3, 4}) {
    const auto got = place(request);
    CHECK(static_cast<uint32_t>(got.batch) < 2);
    CHECK(got.prefill_worker < 2); // on its own KV
  }
  CHECK(mixed(0));
  const auto fifth = place(5, 300);
  const auto seat = static_cast<uint32_t>(fifth.batch) - 2;
  REQUIRE(seat < 2);
  CHECK(mixed(1));
  // The other one has prompts alone, and the shorter queue.
  CHECK(fifth.prefill_worker == 1 - seat);
  CHECK(place(6, 600).prefill_worker == 1 - seat); // prompts come to mixed machines last
  const auto seventh = place(7, 200); // both batches of replicas are full, and one seat
  CHECK(seventh.batch == stream_id{3 - seat});
  CHECK(mixed(2));
  // In the launches of its batch, beside its tokens: both seats decode, and this one has less to
  // compute.
  CHECK(seventh.prefill_worker == 4 + seat);
  // The queue of a seat is what both of its workers have.
  for (uint64_t request = 1; request <= 7; ++request) w.tell(prefill_begun{seq(request)});
  w.tell(prefill_load{stream_id{scheduler::prefill_streams + seat}, 500});
  w.tell(prefill_load{stream_id{2 + seat}, 400});
  w.tell(prefill_load{stream_id{scheduler::prefill_streams + 1 - seat}, 800});
  w.tell(prefill_load{stream_id{3 - seat}, 0});
  CHECK(place(8, 20).prefill_worker == 5 - seat);
  // Nothing decodes there any more: its prompts run on its own KV again.
  w.tell(retire{seq(7)});
  w.tell(retire{seq(8)});
  CHECK(mixed(1));
  w.tell(retire{seq(1)});
  CHECK(place(9, 20).prefill_worker == 1 - seat);
}

TEST_CASE("S-M09 a prefill worker with KV of its own that decodes for long changes its pool") {
  auto c = two_and_two();
  c.repurpose_s = 30;
  world w{c};
  const auto place = [&](uint64_t request, uint32_t tokens = 10) {
    const auto answer = w.offer(request, tokens);
    REQUIRE(answer->came);
    return answer->value;
  };
  for (const uint64_t request : {1, 2, 3, 4}) place(request);
  const auto seat = static_cast<uint32_t>(place(5).batch) - 2;
  REQUIRE(seat < 2);
  w.sched.advance_time(std::chrono::seconds{31});
  for (uint64_t request = 1; request <= 5; ++request) w.tell(prefill_begun{seq(request)});
  w.tell(prefill_load{stream_id{scheduler::prefill_streams + seat}, 0});
  w.tell(retire{seq(1)});
  w.tell(retire{seq(5)}); // the batch is empty, and is still one of those for sequences
  CHECK(static_cast<uint32_t>(place(6).batch) == 2 + seat);
  CHECK(place(7, 900).prefill_worker == 1 - seat); // the only machine for prompts
  const auto over =
      place(8, 900).prefill_worker; // overflows onto one that decodes, in its launches
  CHECK(over >= 2);
  CHECK(over != 5 - seat);
}

TEST_CASE(
    "a prompt whose beginning is cached never runs on KV that a prefill worker has of its own") {
  const auto c = two_and_two();
  world w{c};
  w.kv->cached = 5;
  for (uint64_t request = 1; request <= 8; ++request) {
    const auto answer = w.offer(request);
    REQUIRE(answer->came);
    CHECK(answer->value.prefill_worker == 2 + static_cast<uint32_t>(answer->value.batch));
  }
}

TEST_CASE("S-M07 prompts of a prefill seat that decodes as well overflow onto replicas") {
  auto c = small();
  c.seats_per_batch = 8;
  c.slots = 10'000;
  c.limits = {64, 1'000'000};
  c.prefill_workers = 0;
  c.mixed_launches = true;
  c.mixed_workers = c.batches;
  c.prompt_batches = 1;
  c.overflow_tokens = 1000;
  c.metrics = std::make_shared<net::metrics>(net::metrics::settings{});
  world w{c};
  CHECK(w.offer(1, 900)->value.prefill_worker == 1);
  CHECK(w.offer(2, 600)->value.prefill_worker == 0);
  const auto body = c.metrics->scrape().body;
  CHECK(body.find("lamella_prompts_overflowed_total 1\n") != std::string::npos);
  CHECK(body.find("lamella_mixed_replicas 1\n") != std::string::npos);
}

} // namespace lamella::actors::test
