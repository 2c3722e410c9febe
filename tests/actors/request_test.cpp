#include "tests/actors/fake_exchange.hpp"
#include "tests/actors/stand_ins.hpp"

namespace lamella::actors::test {

using namespace std::chrono_literals;

namespace {

struct prefill_book {
  std::vector<prefill> asked;
  std::deque<owed<prefilled>> promises;
  std::vector<sequence_id> cancelled;
};

struct batch_book {
  std::vector<batch_join> joined;
  std::vector<sequence_id> left;
};

/// A service whose every part waits for the test.
struct pipeline_books {
  std::shared_ptr<scheduler_book> scheduler = std::make_shared<scheduler_book>();
  std::shared_ptr<allocator_book> kv = std::make_shared<allocator_book>();
  std::shared_ptr<prefill_book> prefills = std::make_shared<prefill_book>();
  std::shared_ptr<batch_book> batches = std::make_shared<batch_book>();
};

struct world : stage {
  pipeline_books old_books, books; ///< `books` are those of the newest pipeline
  std::shared_ptr<fake_exchange> exchange;
  request_actor request_;
  bool over = false;
  uint64_t epoch = 0;
  std::string lost_role; ///< of the next pipeline
  net::outside_world outside;

  explicit world(const std::string& more = {}, uint32_t max_tokens = 6)
      : world{completion_body(10, max_tokens, 5, more), net::outside_world{}} {}

  world(const std::string& body, net::outside_world from) : outside{std::move(from)} {
    exchange = std::make_shared<fake_exchange>(body);
    request_ = spawn(request, service(), exchange_ptr{exchange}, request_id{1}, false);
    request_->attach_functor([this](const caf::error&) { over = true; });
    caf::anon_send(request_, begin_atom_v);
    settle();
  }

  ~world() { end_all(); }

  actors::service_ptr service() {
    auto s = std::make_shared<actors::service>(tiny_service());
    s->epoch = ++epoch;
    s->world = outside;
    s->lost_role = lost_role;
    s->scheduler = spawn(stand_in_scheduler(books.scheduler));
    s->allocator = spawn(stand_in_allocator(books.kv));
    s->prefill_workers.push_back(spawn([book = books.prefills](prefill_worker_actor::pointer self)
                                           -> prefill_worker_actor::behavior_type {
      return {
          [book, self](const prefill& x) -> caf::result<prefilled> {
            book->asked.push_back(x);
            auto promise = self->make_response_promise<prefilled>();
            book->promises.push_back({promise, self});
            return promise;
          },
          [book](const prefill_cancel& x) { book->cancelled.push_back(x.first); },
          [](const iteration_failed&) {},
      };
    }));
    s->batches.push_back(
        spawn([book = books.batches](batch_actor::pointer) -> batch_actor::behavior_type {
          return {
              [book](const batch_join& x) { book->joined.push_back(x); },
              [book](const batch_leave& x) { book->left.push_back(x.sequence); },
              [](const iteration_failed&) {},
              [](const kv_rebuilding&) {},
              [](wake_atom) {},
              [](status_atom) -> caf::result<uint32_t> { return uint32_t{0}; },
          };
        }));
    settle();
    return s;
  }

  /// The pipeline is replaced by a new one.
  void rebuild() {
    old_books = books;
    books = {};
    caf::anon_send(request_, service());
    settle();
  }
  void admit_all(uint32_t choices = 1) {
    while (!books.scheduler->promises.empty()) {
      const auto x =
          books.scheduler->asked[books.scheduler->asked.size() - books.scheduler->promises.size()];
      admitted place;
      for (uint32_t k = 0; k < choices; ++k)
        place.holdings.push_back(
            {seq(1, scheduler::index_of(x.first) + k), 0, {{k * 100, x.prompt_tokens + 16}}});
      books.scheduler->promises.front().deliver(place);
      books.scheduler->promises.pop_front();
      settle();
    }
  }
  void prefill_all() {
    while (!books.prefills->promises.empty()) {
      const auto x =
          books.prefills->asked[books.prefills->asked.size() - books.prefills->promises.size()];
      prefilled result;
      for (size_t k = 0; k < x.samplings.size(); ++k)
        result.tokens.push_back(drawn(x.draws[k], x.samplings[k].choice));
      books.prefills->promises.front().deliver(result);
      books.prefills->promises.pop_front();
      settle();
    }
  }
  static sampled_token drawn(uint32_t index, uint32_t choice = 0) {
    sampled_token t;
    t.token = token_for(5, choice, index);
    t.logprob = -1;
    return t;
  }
  template <class Message> void tell(Message x) {
    caf::anon_send(request_, std::move(x));
    settle();
  }
  void say(uint32_t index, finish reason = finish::none, uint32_t choice = 0) {
    tell(token{seq(1, choice), index, drawn(index, choice), reason});
  }
  std::string text(uint32_t count, uint32_t choice = 0) {
    std::string result;
    for (uint32_t i = 0; i < count; ++i) result += static_cast<char>(token_for(5, choice, i) - 3);
    return result;
  }
};

} // namespace

TEST_CASE("A request goes from admission to prefill to its batch, and answers once") {
  world w;
  REQUIRE(w.books.scheduler->asked.size() == 1);
  CHECK(w.books.scheduler->asked[0].prompt_tokens == 10);
  w.admit_all();
  REQUIRE(w.books.prefills->asked.size() == 1);
  w.prefill_all();
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

TEST_CASE(
    "Seed, id and date of an answer come from outside, and the seed only where none is given") {
  for (const bool seeded : {true, false}) {
    CAPTURE(seeded);
    net::outside_world fixed;
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
    const auto answer = model::parse_json(w.exchange->body);
    const uint64_t first = seeded ? 101 : 102;
    CHECK(*answer.find("id")->get_if<std::string>()
          == net::make_response_id("cmpl-", first, first + 1));
    CHECK(*answer.find("created")->get_if<int64_t>() == 1'700'000'000);
  }
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
  CHECK(again.slack_ms == tiny_service().deadline.count() - 1000);
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
  w.advance(6s, 250ms);
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
    w.sched.advance_time(601s);
    w.settle();
    CHECK(w.exchange->status == 408);
    CHECK(w.books.scheduler->withdrawn.size() == 1);
  }
}

} // namespace lamella::actors::test
