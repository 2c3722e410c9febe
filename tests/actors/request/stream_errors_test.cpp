// Whatever fails while an answer is streamed, its reader is told: what is on its way to the socket
// ends, then comes the error, then the end.
#include "actors/protocol/tokens.hpp"
#include "tests/actors/gateway/served.hpp"
#include "tests/actors/request/request_world.hpp"

namespace lamella::actors::test {

namespace {

struct way_to_fail {
  const char* code;
  void (*fail)(request_world&);
};

const way_to_fail ways[]{
    {"internal_error",
     [](request_world& w) {
       w.tell(sequence_failed{seq(1), "the device is gone", w.epoch});
     }},
    {"draining", [](request_world& w) { w.tell(drain_atom_v); }},
    {"deadline_exceeded",
     [](request_world& w) {
       w.sched.advance_time(601s);
       w.settle();
     }},
};

/// What a reader finds: events, all of them whole.
std::vector<std::string> events_of(const std::string& streamed) {
  std::vector<std::string> events;
  size_t at = 0;
  for (size_t end; (end = streamed.find("\n\n", at)) != std::string::npos; at = end + 2)
    events.push_back(streamed.substr(at, end - at));
  CHECK_MESSAGE(at == streamed.size(), streamed);
  return events;
}

/// The socket takes what it is given, piece by piece, until there is no more.
void drain(request_world& w) {
  while (w.exchange->pending) {
    w.exchange->drain();
    w.settle();
  }
}

void check_told(request_world& w, const char* code) {
  drain(w);
  const auto events = events_of(w.exchange->streamed);
  REQUIRE(!events.empty());
  CAPTURE(w.exchange->streamed);
  CHECK(events.back().starts_with(R"(data: {"error":{)"));
  CHECK(events.back().find(code) != std::string::npos);
  CHECK_FALSE(w.exchange->done());
  CHECK(w.exchange->answers == 1);
  CHECK(w.exchange->closes);
  CHECK(w.over);
}

std::string streaming(const std::string& more = {}) {
  return completion_body(10, 6, 5, R"(,"stream":true)" + more);
}

} // namespace

TEST_CASE("an error is the last event of a stream, wherever it comes") {
  for (const auto& way : ways)
    for (const bool takes : {true, false})
      for (const size_t pieces : {7u, 65'536u})
        for (uint32_t tokens = 1; tokens < 6; ++tokens) {
          CAPTURE(way.code);
          CAPTURE(takes);
          CAPTURE(pieces);
          CAPTURE(tokens);
          request_world w{streaming(), {}, pieces};
          w.exchange->takes = takes;
          w.admit_all();
          w.prefill_all();
          for (uint32_t i = 1; i < tokens; ++i) w.say(i);
          way.fail(w);
          check_told(w, way.code);
          if (takes) CHECK(w.exchange->text() == w.text(tokens));
        }
}

TEST_CASE(
    "an error before the first token is told in the stream if one is open, else by its status") {
  const way_to_fail early[]{{"draining", ways[1].fail},
                            {"deadline_exceeded", ways[2].fail},
                            {"recovery_failed", [](request_world& w) {
                               w.books.prefills->promises.front().deliver(
                                   caf::make_error(ec::device_lost));
                               w.books.prefills->promises.pop_front();
                               w.settle();
                             }}};
  for (const auto& way : early)
    for (const bool opened : {true, false}) {
      CAPTURE(way.code);
      CAPTURE(opened);
      request_world w{streaming(), environment{}};
      w.admit_all();
      if (opened) w.advance(500ms, 50ms);
      CHECK(w.exchange->status == (opened ? 200 : 0));
      way.fail(w);
      // A worker may still be at the prompt.
      if (!w.books.prefills->promises.empty())
        w.books.prefills->promises.front().deliver(caf::make_error(ec::cancelled));
      w.settle();
      // Who waits until the deadline has had a stream opened meanwhile.
      if (w.exchange->status == 200) {
        check_told(w, way.code);
      } else {
        CHECK(w.exchange->status >= 400);
        CHECK(w.exchange->body.find(way.code) != std::string::npos);
        CHECK(w.exchange->answers == 1);
        CHECK(w.over);
      }
    }
}

TEST_CASE("an error of one of several choices ends the stream of all") {
  for (const bool takes : {true, false}) {
    request_world w{streaming(R"(,"n":3)"), {}, 11};
    w.exchange->takes = takes;
    w.admit_all(3);
    w.prefill_all();
    for (uint32_t k : {0u, 2u})
      for (uint32_t i = 1; i < 3; ++i) w.say(i, finish::none, k);
    w.tell(sequence_failed{seq(1, 1), "the device is gone", w.epoch});
    w.say(3, finish::none, 2); // of a choice that goes on: nobody hears it any more
    check_told(w, "internal_error");
    CHECK(w.books.batches->left.size() == 3);
  }
}

TEST_CASE("a slow reader gets the whole answer, or what there was and the error") {
  size_t whole = 0, failed = 0;
  for (int when = 0; when < 400; when += 9) {
    CAPTURE(when);
    request_world w{streaming(), {}, 7};
    w.exchange->takes = false;
    w.admit_all();
    w.prefill_all();
    for (uint32_t i = 1; i < 6; ++i) w.say(i, i == 5 ? finish::length : finish::none);
    for (int k = 0; k < when && w.exchange->pending; ++k) {
      w.exchange->drain();
      w.settle();
    }
    w.tell(drain_atom_v);
    drain(w);
    const auto events = events_of(w.exchange->streamed);
    REQUIRE(!events.empty());
    if (w.exchange->done()) {
      ++whole;
      CHECK(events.back() == "data: [DONE]");
      CHECK(w.exchange->text() == w.text(6));
    } else {
      ++failed;
      CHECK(events.back().starts_with(R"(data: {"error":{)"));
    }
    CHECK(w.exchange->closes == !w.exchange->done());
    CHECK(w.exchange->answers == 1);
    CHECK(w.over);
  }
  CHECK(whole > 0);
  CHECK(failed > 0);
}

TEST_CASE("over a socket, too, a stream ends with its end mark or with an error") {
  served s;
  size_t whole = 0, failed = 0;
  const armed failing{"request.token=0.05:error"};
  for (uint32_t seed = 1; seed <= 16; ++seed) {
    const auto x = s.post("/v1/completions",
                          R"({"model":"tiny","prompt":"hello","max_tokens":20,"ignore_eos":true,)"
                          R"("stream":true,"seed":)"
                              + std::to_string(seed) + "}"); // throws where it is cut
    if (x.status != 200) continue;
    const auto events = events_of(x.body);
    REQUIRE(!events.empty());
    const bool error = events.back().starts_with(R"(data: {"error":{)");
    CHECK((error || events.back() == "data: [DONE]"));
    ++(error ? failed : whole);
  }
  CHECK(failed > 0);
  CHECK(whole > 0);
  CHECK(eventually([&] { return s.idle(); }));
}

TEST_CASE("a reader that leaves before it has heard of the error leaves nothing behind") {
  request_world w{streaming(), {}, 7};
  w.exchange->takes = false;
  w.admit_all();
  w.prefill_all();
  w.say(1);
  w.tell(drain_atom_v);
  CHECK_FALSE(w.over);
  w.exchange->disconnect();
  w.settle();
  CHECK(w.over);
}

} // namespace lamella::actors::test
