#include "actors/protocol/admission.hpp"
#include "actors/protocol/prefills.hpp"
#include "actors/protocol/tokens.hpp"
#include "tests/actors/request/request_world.hpp"

namespace lamella::actors::test {

namespace {

using world = request_world;

} // namespace

TEST_CASE("A rebuilt pipeline runs the request again from its tokens, in every state") {
  for (int state = 0; state < 3; ++state) {
    CAPTURE(state);
    world w;
    if (state > 0) w.admit_all();
    if (state > 1) {
      w.prefill_all();
      w.say(1);
    }
    w.rebuild();
    REQUIRE(w.books.scheduler->asked.size() == 1);
    CHECK(w.books.scheduler->asked[0].resumed);
    // The old pipeline speaks a last time.
    for (auto& x : w.old_books.scheduler->promises) x.deliver(admitted{});
    for (auto& x : w.old_books.prefills->promises) x.deliver(prefilled{{w.drawn(0)}});
    w.settle();
    if (state > 1) w.say(2);
    w.admit_all();
    w.prefill_all();
    REQUIRE(w.books.batches->joined.size() == 1);
    const auto from = w.books.batches->joined[0].generated;
    CHECK(from == (state > 1 ? 3 : 1));
    for (uint32_t i = from; i < 6; ++i) w.say(i, i == 5 ? finish::length : finish::none);
    CHECK(w.exchange->text() == w.text(6));
    CHECK(w.over);
  }
}

TEST_CASE(
    "L-M26 lost KV of a sequence that has answered is a rebuild, whatever else runs again is not") {
  world w;
  w.lost_role = "attention";
  w.admit_all();
  CHECK_FALSE(w.books.prefills->asked.at(0).rebuild);
  w.rebuild(); // it has no token yet: a new prompt like others
  w.admit_all();
  CHECK_FALSE(w.books.prefills->asked.at(0).rebuild);
  w.prefill_all();
  w.say(1);
  w.tell(preempted{seq(1), false, w.epoch});
  w.admit_all();
  CHECK_FALSE(w.books.prefills->asked.at(1).rebuild); // slots were short: others go on as they were
  w.prefill_all();
  w.advance(std::chrono::seconds{1});
  w.rebuild();
  w.admit_all();
  const auto& again = w.books.prefills->asked.at(0);
  CHECK(again.rebuild);
  // The newest of its three tokens is drawn again: it has no K and V yet.
  CHECK(again.tokens.size() == 12);
  CHECK(w.books.scheduler->asked.at(0).text.tokens == again.tokens);
  w.prefill_all();
  CHECK(w.books.kv->filled.back().positions == 12);
  CHECK(again.slack_ms == tiny_service().rules.deadline.count() - 1000);
}

TEST_CASE("reliability A3: what a batch of an epoch before says last is not heard") {
  world w;
  w.admit_all();
  w.prefill_all();
  w.say(1);
  w.rebuild();
  w.admit_all();
  w.prefill_all();
  REQUIRE(w.books.batches->joined.size() == 1);
  const auto asked = w.books.scheduler->asked.size();
  w.tell(preempted{seq(1), false, w.epoch - 1});
  w.tell(sequence_failed{seq(1), "a device that is gone", w.epoch - 1});
  CHECK(w.books.scheduler->asked.size() == asked);
  for (uint32_t i = 3; i < 6; ++i) w.say(i, i == 5 ? finish::length : finish::none);
  CHECK(w.exchange->status == 200);
  CHECK(w.exchange->text() == w.text(6));
}

TEST_CASE("A4 the newest token is computed again after a rebuild, and another one is counted and "
          "never told") {
  world w{{}, 8};
  w.lost_role = "attention";
  w.admit_all();
  w.prefill_all();
  w.say(1);
  w.say(2);
  const auto diverged = [&] {
    const std::string name = "\nlamella_divergence_total ";
    const auto page = w.metrics->scrape().body;
    return std::stoi(page.substr(page.find(name) + name.size()));
  };
  w.tell(token{seq(1), 1, world::drawn(1), finish::none}); // twice, and the same
  CHECK(diverged() == 0);
  w.tell(token{seq(1), 1, world::drawn(7), finish::none});
  CHECK(diverged() == (world::drawn(7).token == world::drawn(1).token ? 0 : 1));
  const auto before = diverged();
  w.tell(lost_atom_v);
  w.rebuild();
  w.admit_all();
  REQUIRE(w.books.prefills->asked.size() == 1);
  const auto& again = w.books.prefills->asked.front();
  CHECK(again.rebuild);
  CHECK(again.tokens.size() == 10 + 2); // three were generated
  CHECK(again.draws == std::vector<uint32_t>{2});
  SUBCASE("the same") {
    w.prefill_all();
    CHECK(diverged() == before);
  }
  SUBCASE("another one") {
    prefilled wrong;
    wrong.tokens.push_back(world::drawn(2));
    ++wrong.tokens.back().token;
    w.books.prefills->promises.front().deliver(wrong);
    w.books.prefills->promises.pop_front();
    w.settle();
    CHECK(diverged() == before + 1);
  }
  REQUIRE(w.books.batches->joined.size() == 1);
  CHECK(w.books.batches->joined.front().generated == 3);
  CHECK(w.books.batches->joined.front().last == world::drawn(2).token);
  for (uint32_t i = 3; i < 8; ++i) w.say(i, i == 7 ? finish::length : finish::none);
  CHECK(w.exchange->text() == w.text(8));
}

TEST_CASE(
    "A4 what a batch that ended has said last is compared with what is computed in its place") {
  world w;
  w.lost_role = "model";
  w.admit_all();
  w.prefill_all();
  w.say(1);
  w.tell(lost_atom_v);
  w.rebuild(); // waits to be admitted
  auto late = world::drawn(2);
  ++late.token;
  w.tell(token{seq(1), 2, late, finish::none});
  w.admit_all();
  w.prefill_all();
  for (uint32_t i = 2; i < 6; ++i) w.say(i, i == 5 ? finish::length : finish::none);
  CHECK(w.exchange->text() == w.text(6));
  CHECK(w.metrics->scrape().body.find("\nlamella_divergence_total 1\n") != std::string::npos);
}

TEST_CASE("A4 what a batch of an epoch before says last is not taken where the KV is another one") {
  world w;
  w.lost_role = "model";
  w.admit_all();
  w.prefill_all();
  w.say(1);
  const auto before = w.epoch;
  w.tell(lost_atom_v);
  w.rebuild();
  w.admit_all();
  w.prefill_all(); // and decodes again
  REQUIRE(w.epoch > before);
  w.tell(token{seq(1), 2, world::drawn(2), finish::none, before});
  CHECK(w.metrics->scrape().body.find("\nlamella_fenced_total{reason=\"epoch\"} 1\n")
        != std::string::npos);
  w.tell(lost_atom_v); // the batch of this epoch has said nothing of it
  w.rebuild();
  w.admit_all();
  REQUIRE(w.books.prefills->asked.size() == 1);
  CHECK(w.books.prefills->asked.front().tokens.size() == 10 + 1);
  w.prefill_all();
  for (uint32_t i = 2; i < 6; ++i) w.say(i, i == 5 ? finish::length : finish::none);
  CHECK(w.exchange->text() == w.text(6));
}

TEST_CASE("Recoveries and the longest pause stand in the answer that is asked for them") {
  world w;
  w.exchange->add_header("x-lamella-metrics", "1");
  w.lost_role = "model";
  w.admit_all();
  w.prefill_all();
  w.say(1);
  for (const auto pause : {300ms, 700ms, 100ms}) {
    w.tell(lost_atom_v);
    CHECK(w.pauses->look(w.sched.clock().now()).recovering == 1);
    w.advance(pause, 50ms);
    w.rebuild();
    w.admit_all();
    w.prefill_all();
    w.say(pause == 300ms ? 2 : pause == 700ms ? 3 : 4);
    CHECK(w.pauses->look(w.sched.clock().now()).recovering == 0);
  }
  w.say(5, finish::length);
  CAPTURE(w.exchange->body);
  CHECK(w.exchange->body.find("\"recoveries\":3") != std::string::npos);
  CHECK(w.exchange->body.find("\"recovery_pause_ms\":700") != std::string::npos);
}

TEST_CASE(
    "F4 at the deadline the reason is told: nobody came, or what was lost did not come back") {
  const auto code = [](world& w) {
    w.sched.advance_time(601s);
    w.settle();
    CHECK(w.exchange->status == 503);
    CHECK(w.pauses->look(w.sched.clock().now()).recovering == 0);
    const auto from = w.exchange->body.find("\"code\":\"") + 8;
    return w.exchange->body.substr(from, w.exchange->body.find('"', from) - from);
  };
  {
    world w;
    w.tell(lost_atom_v);
    CHECK(code(w) == "no_capacity");
  }
  for (const std::string role : {"model", "attention"}) {
    CAPTURE(role);
    world w;
    w.lost_role = "prefill"; // of an epoch long ago
    w.rebuild();
    w.admit_all();
    w.prefill_all();
    w.say(1);
    w.pauses->lost(role);
    w.tell(lost_atom_v);
    CHECK(code(w) == "recovery_failed");
    CHECK(w.metrics->scrape().body.find("lamella_requests_lost_total{role=\"" + role + "\"} 1")
          != std::string::npos);
  }
}

TEST_CASE("A request keeps the deadline it came with, whatever later pipelines say") {
  world w;
  w.admit_all();
  w.prefill_all();
  w.say(1);
  w.tell(lost_atom_v);
  w.rebuild([](actors::service& s) { s.rules.deadline = 1s; });
  w.admit_all();
  w.prefill_all();
  w.advance(10s, 250ms);
  CHECK(w.exchange->status == 0);
  w.sched.advance_time(600s);
  w.settle();
  CHECK(w.exchange->body.find("600000 ms") != std::string::npos);
}

TEST_CASE("Who waits for its reader after a loss waits for nothing that was lost") {
  world w{",\"stream\":true", 40};
  w.lost_role = "model";
  w.admit_all();
  w.prefill_all();
  w.exchange->takes = false;
  w.say(1);
  w.tell(lost_atom_v);
  w.rebuild();
  w.admit_all();
  w.prefill_all();
  const auto recovering = [&] { return w.pauses->look(w.sched.clock().now()).recovering; };
  CHECK(recovering() == 1);
  w.advance(10s, 250ms); // the reader takes nothing
  REQUIRE(w.books.batches->left == std::vector<sequence_id>{seq(1)});
  w.tell(preempted{seq(1), true, w.epoch});
  CHECK(recovering() == 0);
}

TEST_CASE(
    "F4 a request that is over while there is no pipeline waits for no answer of the lost one") {
  world w; // waits to be admitted
  const auto recovering = [&] { return w.pauses->look(w.sched.clock().now()).recovering; };
  SUBCASE("its client left before the loss") {
    w.tell(cancel_atom_v);
    CHECK_FALSE(w.over);
    w.tell(lost_atom_v);
  }
  SUBCASE("its client leaves afterwards") {
    w.admit_all(); // its prompt is computed
    w.tell(lost_atom_v);
    CHECK(recovering() == 1);
    w.tell(cancel_atom_v);
  }
  SUBCASE("its deadline passes") {
    w.admit_all();
    w.tell(lost_atom_v);
    w.advance(601s, 1s);
    CHECK(w.exchange->status == 503);
  }
  CHECK(w.over);
  CHECK(recovering() == 0);
}

} // namespace lamella::actors::test
