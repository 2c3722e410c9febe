#include "actors/protocol/admission.hpp"
#include "actors/protocol/tokens.hpp"
#include "tests/actors/request/request_world.hpp"

#include "actors/protocol/prefills.hpp"
#include "net/http/http_ids.hpp"

namespace lamella::actors::test {

namespace {

using world = request_world;

/// Of all observations of a histogram.
double sum_of(const std::string& page, const std::string& histogram) {
  const auto at = page.find("\n" + histogram + "_sum");
  REQUIRE(at != std::string::npos);
  return std::stod(page.substr(page.find(' ', at) + 1));
}

} // namespace

TEST_CASE("A request goes from admission to prefill to its batch, and answers once") {
  world w;
  REQUIRE(w.books.scheduler->asked.size() == 1);
  CHECK(w.books.scheduler->asked[0].prompt_tokens == 10);
  w.admit_all();
  REQUIRE(w.books.prefills->asked.size() == 1);
  CHECK(w.books.scheduler->asked[0].text.tokens == w.books.prefills->asked[0].tokens);
  CHECK(w.books.kv->filled.empty());
  w.prefill_all();
  REQUIRE(w.books.kv->filled.size() == 1);
  CHECK(w.books.kv->filled[0].holder == seq(1));
  CHECK(w.books.kv->filled[0].epoch == w.epoch);
  CHECK(w.books.kv->filled[0].positions == 10);
  REQUIRE(w.books.batches->joined.size() == 1);
  CHECK(w.books.batches->joined[0].position == 10);
  CHECK(w.books.batches->joined[0].generated == 1);
  for (uint32_t i = 1; i < 6; ++i) w.say(i, i == 5 ? finish::length : finish::none);
  CHECK(w.exchange->status == 200);
  CHECK(w.exchange->text() == w.text(6));
  CHECK(w.over);
  CHECK(w.exchange->answers == 1);
  CHECK(w.books.kv->released.empty()); // the batch gives back
}

TEST_CASE("prefix cache: K and V of logits that are not finite are for nobody else") {
  world w;
  w.admit_all();
  auto broken = w.drawn(0);
  broken.finite = false;
  w.books.prefills->promises.front().deliver(prefilled{{broken}});
  w.books.prefills->promises.pop_front();
  w.settle();
  CHECK(w.exchange->status == 500);
  CHECK(w.books.kv->filled.empty());
  CHECK(w.books.kv->doubted == std::vector<sequence_id>{seq(1)});
  CHECK(w.books.kv->released == std::vector<sequence_id>{seq(1)});
}

TEST_CASE(
    "Seed, id and date of an answer come from outside, and the seed only where none is given") {
  for (const bool seeded : {true, false}) {
    CAPTURE(seeded);
    environment fixed;
    fixed.date = [] { return std::chrono::system_clock::time_point{1'700'000'000s}; };
    fixed.chance = [drawn = uint64_t{100}]() mutable { return ++drawn; };
    auto body = completion_body(10, 6, 5);
    const std::string seed = ",\"seed\":5";
    if (!seeded) body.erase(body.find(seed), seed.size());
    world w{body, fixed};
    w.admit_all();
    REQUIRE(w.books.prefills->asked.size() == 1);
    CHECK(w.books.prefills->asked[0].samplings.at(0).seed == (seeded ? 5 : 101));
    w.prefill_all();
    for (uint32_t i = 1; i < 6; ++i) w.say(i, i == 5 ? finish::length : finish::none);
    const auto answer = parse_json(w.exchange->body);
    const uint64_t first = seeded ? 101 : 102;
    CHECK(*answer.find("id")->get_if<std::string>()
          == net::make_response_id("cmpl-", first, first + 1));
    CHECK(*answer.find("created")->get_if<int64_t>() == 1'700'000'000);
  }
}

TEST_CASE("a request's time in queues ends where its prefill begins") {
  world w;
  w.exchange->add_header("x-lamella-metrics", "1");
  w.advance(1s, 250ms);
  w.admit_all();
  w.advance(3s, 250ms);
  prefilled first{{w.drawn(0)}, 2'000'000}; // two of the three seconds
  w.books.prefills->promises.front().deliver(first);
  w.books.prefills->promises.pop_front();
  w.settle();
  for (uint32_t i = 1; i < 6; ++i) w.say(i, i == 5 ? finish::length : finish::none);
  const auto answer = parse_json(w.exchange->body);
  const auto* metrics = answer.find("metrics");
  REQUIRE(metrics != nullptr);
  CHECK(json_as<double>(*metrics->find("queue_time_ms"), "queue_time_ms") == 3000);
}

TEST_CASE(
    "the time per output token is the mean gap of all choices, however long each of them is") {
  world w{R"(,"n":2)"};
  w.exchange->add_header("x-lamella-metrics", "1");
  w.admit_all(2);
  w.prefill_all();
  w.advance(1s, 250ms);
  w.say(1, finish::stop, 1); // one gap of a second
  w.say(1);                  // one of a second and four of two
  for (uint32_t i = 2; i < 6; ++i) {
    w.advance(2s, 250ms);
    w.say(i, i == 5 ? finish::length : finish::none);
  }
  REQUIRE(w.over);
  const auto page = w.metrics->scrape().body;
  CHECK(sum_of(page, "vllm:request_decode_time_seconds") == 9);
  CHECK(sum_of(page, "vllm:request_time_per_output_token_seconds") == doctest::Approx(10.0 / 6));
  const auto answer = parse_json(w.exchange->body);
  CHECK(json_as<double>(*answer.find("metrics")->find("mean_itl_ms"), "mean_itl_ms")
        == doctest::Approx(10'000.0 / 6));
}

TEST_CASE("a request cancelled in its prefill tells its time in queues and in prefill apart") {
  world w;
  w.advance(1s, 250ms);
  w.admit_all();
  w.advance(2s, 250ms); // admitted, and behind another prompt
  caf::anon_send(w.request_, prefill_begun{seq(1)});
  w.settle();
  w.advance(4s, 250ms);
  caf::anon_send(w.request_, cancel_atom_v);
  w.settle();
  const auto page = w.metrics->scrape().body;
  CHECK(sum_of(page, "vllm:request_queue_time_seconds") == 3);
  CHECK(sum_of(page, "vllm:request_prefill_time_seconds") == 4);
  CHECK(sum_of(page, "vllm:request_decode_time_seconds") == 0);
  CHECK(sum_of(page, "vllm:e2e_request_latency_seconds") == 7);
}

TEST_CASE("a request cancelled while it waits for its prefill was in queues all the time") {
  world w;
  w.advance(1s, 250ms);
  w.admit_all();
  w.advance(2s, 250ms);
  caf::anon_send(w.request_, cancel_atom_v);
  w.settle();
  const auto page = w.metrics->scrape().body;
  CHECK(sum_of(page, "vllm:request_queue_time_seconds") == 3);
  CHECK(sum_of(page, "vllm:request_prefill_time_seconds") == 0);
}

TEST_CASE("Tokens that come twice, late or of another count once") {
  world w;
  w.admit_all();
  w.prefill_all();
  w.say(1);
  w.say(1);
  w.say(3); // from the future: its place is not reached
  w.tell(token{seq(1, 7), 2, w.drawn(2), finish::none}); // of a choice that is not there
  w.say(2);
  w.say(0);
  w.say(3);
  w.say(4);
  w.say(5, finish::length);
  CHECK(w.exchange->text() == w.text(6));
  CHECK(w.over);
}

TEST_CASE("A preempted sequence comes back with its tokens, and draws go on where they were") {
  world w;
  w.admit_all();
  w.prefill_all();
  w.say(1);
  w.say(2);
  w.tell(preempted{seq(1), false, w.epoch});
  REQUIRE(w.books.scheduler->asked.size() == 2);
  CHECK(w.books.scheduler->asked[1].resumed);
  CHECK(w.books.scheduler->asked[1].prompt_tokens == 13);
  w.say(3); // from the batch that threw it out: not counted, drawn again below
  w.admit_all();
  REQUIRE(w.books.prefills->asked.size() == 2);
  const auto& again = w.books.prefills->asked[1];
  CHECK(again.tokens.size() == 13);
  CHECK(again.tokens[12] == token_for(5, 0, 2));
  CHECK(again.draws == std::vector<uint32_t>{3});
  w.prefill_all();
  REQUIRE(w.books.batches->joined.size() == 2);
  CHECK(w.books.batches->joined[1].generated == 4);
  CHECK(w.books.batches->joined[1].position == 13);
  w.say(4);
  w.say(5, finish::length);
  CHECK(w.exchange->text() == w.text(6));
}

TEST_CASE("A client that leaves gives back what was got, in every state") {
  SUBCASE("queued") {
    world w;
    w.exchange->disconnect();
    w.settle();
    CHECK(w.books.scheduler->withdrawn == std::vector<sequence_id>{seq(1)});
    CHECK_FALSE(w.over); // the answer may be under way
    w.admit_all();       // it was
    CHECK(w.books.kv->released == std::vector<sequence_id>{seq(1)});
    CHECK(w.books.scheduler->retired == std::vector<sequence_id>{seq(1)});
    CHECK(w.over);
  }
  SUBCASE("prefilling") {
    world w;
    w.admit_all();
    w.exchange->disconnect();
    w.settle();
    CHECK(w.books.prefills->cancelled == std::vector<sequence_id>{seq(1)});
    CHECK(w.books.kv->released.empty()); // a launch may write its slots
    w.books.prefills->promises.front().deliver(caf::make_error(ec::cancelled));
    w.settle();
    CHECK(w.books.kv->released == std::vector<sequence_id>{seq(1)});
    CHECK(w.over);
  }
  SUBCASE("decoding") {
    world w;
    w.admit_all();
    w.prefill_all();
    w.exchange->disconnect();
    w.settle();
    CHECK(w.books.batches->left == std::vector<sequence_id>{seq(1)});
    CHECK(w.books.kv->released.empty()); // the batch gives back
    CHECK(w.over);
  }
}

TEST_CASE("Choices of one prompt are prefilled together and join one by one") {
  world w{",\"n\":3", 4};
  w.admit_all(3);
  REQUIRE(w.books.prefills->asked.size() == 1);
  CHECK(w.books.prefills->asked[0].samplings.size() == 3);
  w.prefill_all();
  REQUIRE(w.books.batches->joined.size() == 3);
  for (uint32_t k : {2u, 0u, 1u})
    for (uint32_t i = 1; i < 4; ++i) w.say(i, i == 3 ? finish::length : finish::none, k);
  for (uint32_t k = 0; k < 3; ++k) CHECK(w.exchange->text(k) == w.text(4, k));
}

TEST_CASE("A stop string ends the sequence in its batch") {
  world w{",\"stop\":\"" +
              [] {
                std::string s;
                for (uint32_t i = 2; i < 4; ++i) s += static_cast<char>(token_for(5, 0, i) - 3);
                return s;
              }()
              + "\"",
          20};
  w.admit_all();
  w.prefill_all();
  for (uint32_t i = 1; i < 4; ++i) w.say(i);
  CHECK(w.exchange->text() == w.text(2));
  CHECK(w.books.batches->left == std::vector<sequence_id>{seq(1)});
  CHECK(w.over);
}

TEST_CASE(
    "A reader that does not read is written to once; what came meanwhile follows in one piece") {
  world w{",\"stream\":true", 40};
  w.exchange->takes = false;
  w.admit_all();
  w.prefill_all();
  for (uint32_t i = 1; i < 30; ++i) w.say(i); // a second write would throw
  CHECK(w.exchange->pending);
  const auto before = w.exchange->streamed.size();
  w.exchange->drain();
  w.settle();
  CHECK(w.exchange->streamed.size() > before);
  CHECK(w.exchange->text() == w.text(30));
}

TEST_CASE("A reader that stops gives its seat to others and keeps its KV until it reads again") {
  world w{",\"stream\":true", 40};
  w.exchange->takes = false;
  w.admit_all();
  w.prefill_all();
  w.say(1);
  w.advance(4s, 250ms);
  CHECK(w.books.batches->left.empty());
  w.advance(2s, 250ms); // whatever the time between two pings
  CHECK(w.books.batches->left == std::vector<sequence_id>{seq(1)});
  w.tell(preempted{seq(1), true, w.epoch});
  w.advance(10s, 250ms);
  CHECK(w.books.batches->left.size() == 1); // asked for once
  CHECK(w.books.scheduler->asked.size() == 1);
  SUBCASE("it reads again") {
    w.exchange->drain();
    w.settle();
    REQUIRE(w.books.scheduler->asked.size() == 2);
    CHECK(w.books.scheduler->asked.back().has_kv);
    admitted place;
    place.holdings.push_back({seq(1), 0, {{0, 40}}, true});
    w.books.scheduler->promises.front().deliver(place);
    w.settle();
    CHECK(w.books.prefills->asked.size() == 1); // nothing is computed again
    REQUIRE(w.books.batches->joined.size() == 2);
    CHECK(w.books.batches->joined.back().generated == 2);
    CHECK(w.books.kv->released.empty());
  }
  SUBCASE("it leaves") {
    w.exchange->disconnect();
    w.settle();
    CHECK(w.books.kv->released == std::vector<sequence_id>{seq(1)});
    CHECK(w.books.scheduler->asked.size() == 1);
  }
}

TEST_CASE("A reader that stops gives its seat to others also where streams get no pings") {
  world w{",\"stream\":true", 40};
  w.rebuild([](actors::service& s) { s.ping = 0ms; });
  w.exchange->takes = false;
  w.admit_all();
  w.prefill_all();
  w.say(1);
  w.advance(4s, 250ms);
  CHECK(w.books.batches->left.empty());
  w.advance(2s, 250ms);
  CHECK(w.books.batches->left == std::vector<sequence_id>{seq(1)});
}

TEST_CASE("A reader that stops gets no seat either where its KV was taken meanwhile") {
  world w{",\"stream\":true", 40};
  w.exchange->takes = false;
  w.admit_all();
  w.prefill_all();
  w.say(1);
  w.advance(10s, 250ms);
  REQUIRE(w.books.batches->left.size() == 1);
  w.tell(preempted{seq(1), false, w.epoch});
  w.advance(10s, 250ms);
  CHECK(w.books.scheduler->asked.size() == 1);
  w.exchange->drain();
  w.settle();
  REQUIRE(w.books.scheduler->asked.size() == 2);
  CHECK_FALSE(w.books.scheduler->asked.back().has_kv);
}

TEST_CASE("The deadline and refusals become the API's errors") {
  {
    world w;
    w.books.scheduler->promises.front().deliver(caf::make_error(ec::queue_full));
    w.settle();
    CHECK(w.exchange->status == 429);
    CHECK(w.over);
  }
  {
    world w;
    w.admit_all();
    w.prefill_all();
    w.tell(sequence_failed{seq(1), "the device is gone", w.epoch});
    CHECK(w.exchange->status == 500);
    CHECK(w.over);
  }
  {
    world w;
    w.admit_all();
    w.prefill_all();
    w.tell(sequence_failed{seq(1), "the format is too ambiguous", w.epoch, true});
    CHECK(w.exchange->status == 400); // as before its first token
    CHECK(w.exchange->body.find("the format is too ambiguous") != std::string::npos);
    CHECK(w.over);
  }
  {
    world w;
    w.sched.advance_time(601s);
    w.settle();
    CHECK(w.exchange->status == 408);
    CHECK(w.books.scheduler->withdrawn.size() == 1);
  }
}

} // namespace lamella::actors::test
