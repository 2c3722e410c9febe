// Masks that are made beside the batch and the requests: who waits for one waits alone, and draws
// the same tokens whenever it comes.
#include "actors/decode/mask_maker.hpp"
#include "actors/protocol/batches.hpp"
#include "model/grammar/regular_expression.hpp"
#include "model/grammar/text/grammar_text.hpp"
#include "tests/actors/lane/batch_world.hpp"
#include "tests/actors/request/request_world.hpp"

namespace lamella::actors::test {

namespace {

using model::constrained_answer;
using model::output_constraint;

std::shared_ptr<output_constraint> held_to(model::grammar g) {
  static const auto service = tiny_service();
  static const auto trie = std::make_shared<const model::token_trie>(service.text);
  return std::make_shared<output_constraint>(std::move(g), trie, service.end_tokens,
                                             service.text->vocabulary());
}

/// Made anew, so that it knows no mask.
std::shared_ptr<output_constraint> held_to(const std::string& regex) {
  model::grammar g;
  g.begin(0, model::regular_expression::parse(regex).compile(
                 g, model::regular_expression::match::whole, model::spelling::plain, g.end()));
  return held_to(std::move(g));
}

/// Brackets of a kind for each character, with thousands of parts within that are empty in two
/// ways: a mask takes more work than one may.
std::shared_ptr<output_constraint> held_to_too_much() {
  std::string rules = "root ::= r\nr ::= \" \"";
  for (char c = '!'; c <= 'w'; ++c)
    if (c != '"' && c != '\\') rules += std::string{" | \""} + c + "\" f r \" \"";
  rules += "\ne ::= \"\" | \"\"\nf ::=";
  for (int i = 0; i < 20'000; ++i) rules += " e";
  model::grammar g;
  g.begin(0, model::grammar_of_text(g, rules, g.end()));
  return held_to(std::move(g));
}

const char* const letters = "[a-z]{200,900}";

/// A mask maker that answers when the test says so.
struct mask_book {
  std::deque<constrained_answer> asked;
  std::deque<owed<constrained_answer>> promises; ///< of the last of these
  uint32_t questions = 0;

  void answer() {
    asked.front().make_mask();
    promises.front().deliver(std::move(asked.front()));
    asked.pop_front();
    promises.pop_front();
  }
};

auto stand_in_masks(std::shared_ptr<mask_book> book) {
  return [book](mask_maker_actor::pointer self) -> mask_maker_actor::behavior_type {
    return {
        [book, self](const constrained_answer& x) -> caf::result<constrained_answer> {
          ++book->questions;
          book->asked.push_back(x);
          auto promise = self->make_response_promise<constrained_answer>();
          book->promises.push_back({promise, self});
          return promise;
        },
    };
  };
}

struct world : batch_world {
  std::shared_ptr<mask_book> masks = std::make_shared<mask_book>();

  world() { make_anew(spawn(stand_in_masks(masks))); }

  void make_anew(mask_maker_actor maker) {
    config.tokens->masks = std::move(maker);
    batch_ = spawn(lane, config);
    settle();
  }
  batch_join held(uint64_t request, std::shared_ptr<output_constraint> constraint,
                  uint32_t max_tokens = 1000) {
    auto x = joining(request, max_tokens);
    x.wanted.constraint = std::move(constraint);
    x.last = token_for(request, 0, 0);
    x.history_output = {x.last};
    return x;
  }
  void answer_mask() {
    masks->answer();
    settle();
  }
  size_t rows(uint64_t iteration) { return launched(iteration).spans.size(); }
};

} // namespace

TEST_CASE("a sequence whose mask is not known sits out iterations, and the others do not") {
  world w;
  w.join(w.joining(1));
  w.join(w.held(2, held_to(letters)));
  w.play(2);
  REQUIRE(w.masks->questions == 1);
  for (uint64_t iteration = 3; iteration < 8; ++iteration) {
    CHECK(w.rows(iteration) == 1);
    CHECK(w.launched(iteration).masks.empty());
    w.answer(iteration);
  }
  CHECK(w.tokens(1) == 7);
  CHECK(w.tokens(2) == 0);
  w.answer_mask(); // while iteration 8 runs
  w.answer(8);
  REQUIRE(w.rows(9) == 2);
  REQUIRE(w.launched(9).masks.size() == 1);
  CHECK(w.launched(9).masks[0].tokens->allows(token_for(2, 0, 1)));
  CHECK_FALSE(w.launched(9).masks[0].tokens->allows(3 + '0'));
  // Far from the limits of its count every mask is that one: nobody is asked again.
  w.play(100);
  CHECK(w.masks->questions == 1);
  CHECK(w.tokens(2) == 100);
}

TEST_CASE("a batch of nobody but who waits for a mask goes on when it comes") {
  world w;
  w.join(w.held(1, held_to(letters)));
  CHECK(w.replica->launches.empty());
  w.answer_mask();
  CHECK(w.replica->launches.size() == 1);
  w.play(3);
  CHECK(w.tokens(1) == 3);
}

TEST_CASE("who leaves while its mask is made leaves at once, and the mask is nobody's") {
  world w;
  const auto constraint = held_to(letters);
  w.join(w.held(1, constraint));
  SUBCASE("for good") { w.leave(1); }
  SUBCASE("and steps back with its slots") {
    caf::anon_send(w.batch_, batch_leave{seq(1), true});
    w.settle();
    CHECK(w.client->preempted == std::vector<sequence_id>{seq(1)});
  }
  CHECK(w.scheduler->retired == std::vector<sequence_id>{seq(1)});
  // The same sequence again, further than it was: the mask of then is not its own.
  auto later = w.held(1, constraint);
  later.generated = 3;
  later.history_output = {token_for(1, 0, 0), token_for(1, 0, 1), token_for(1, 0, 2)};
  later.last = later.history_output.back();
  w.join(std::move(later));
  REQUIRE(w.masks->questions == 2);
  w.answer_mask();
  CHECK(w.replica->launches.empty());
  w.answer_mask();
  CHECK(w.replica->launches.size() == 1);
  w.play(2);
  CHECK(w.tokens(1) == 2);
}

TEST_CASE("a mask that does not come in time ends its sequence alone") {
  world w;
  w.join(w.joining(1));
  w.join(w.held(2, held_to(letters)));
  w.play(2);
  w.sched.advance_time(mask_timeout);
  w.settle();
  CHECK(w.client->failed == std::vector<sequence_id>{seq(2)});
  CHECK(w.client->refused.empty()); // a late mask is no fault of the request
  const auto before = w.tokens(1);
  w.play(5);
  CHECK(w.tokens(1) == before + 5);
  CHECK(std::count(w.kv->released.begin(), w.kv->released.end(), seq(2)) == 1);
}

TEST_CASE("a mask that takes too much work ends its sequence alone, and others get theirs") {
  world w;
  w.make_anew(w.spawn(mask_maker));
  w.join(w.held(1, held_to_too_much()));
  CHECK(w.client->failed == std::vector<sequence_id>{seq(1)});
  CHECK(w.client->refused == std::vector<sequence_id>{seq(1)});
  w.join(w.held(2, held_to(letters)));
  w.play(3);
  CHECK(w.client->failed.size() == 1);
  CHECK(w.tokens(2) == 3);
}

// The whole pipeline ends then, and no request does.
TEST_CASE("a batch whose mask maker has ended ends when it needs a mask") {
  world w;
  const auto maker = w.config.tokens->masks;
  const auto why = w.end_of(w.batch_);
  caf::anon_send_exit(maker, caf::exit_reason::kill);
  w.settle();
  CHECK(*why == caf::error{});
  w.join(w.held(1, held_to(letters)));
  CHECK(*why == peer_gone());
  CHECK(w.client->failed.empty());
}

TEST_CASE("any order of delivery gives each held sequence its own masks and tokens, gapless") {
  const std::vector<std::string> formats{letters, "([a-e]{1,4}|[f-z]{2,30}){1,400}", ".{0,300}",
                                         "([a-m]*[n-z]){1,90}[a-z]*"};
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    CAPTURE(seed);
    tests::splitmix random{seed};
    world w;
    w.make_anew(w.spawn(mask_maker));
    w.replica->at_once = true;
    w.replica->random = tests::splitmix{seed};
    w.replica->fail_per_mille = 50;
    std::vector<std::shared_ptr<output_constraint>> shared;
    for (const auto& format : formats) shared.push_back(held_to(format));
    std::map<uint64_t, uint32_t> wanted;
    for (uint64_t r = 1; r <= 12; ++r) {
      wanted[r] = static_cast<uint32_t>(2 + random.below(40));
      auto x = w.held(r, r % 5 == 0 ? nullptr : shared[r % formats.size()], wanted[r]);
      caf::anon_send(w.batch_, std::move(x));
      for (auto steps = random.below(20); steps > 0 && w.sched.has_job(); --steps) w.step(random);
    }
    w.settle(random);
    std::map<std::pair<uint64_t, uint32_t>, std::vector<uint32_t>> masks; ///< by seed and draw
    for (uint64_t r = 1; r <= 12; ++r) {
      CAPTURE(r);
      const auto& got = w.client->tokens[seq(r)];
      REQUIRE(got.size() == wanted[r] - 1);
      for (size_t i = 0; i < got.size(); ++i)
        CHECK(got[i].value.token == token_for(r, 0, static_cast<uint32_t>(i) + 1));
      if (r % 5 == 0) continue;
      auto alone = held_to(formats[r % formats.size()]);
      auto at = alone->start();
      for (uint32_t i = 0; i + 1 < wanted[r]; ++i) {
        at = alone->advance(at, token_for(r, 0, i));
        masks[{r, i + 1}] = alone->mask(at)->words;
      }
    }
    size_t compared = 0;
    for (const auto& launch : w.replica->launches)
      for (const auto& x : launch.samples) {
        const auto known = masks.find({x.seed, x.draw});
        if (known == masks.end()) continue;
        REQUIRE(x.mask < launch.masks.size());
        CHECK(launch.masks[x.mask].tokens->words == known->second);
        ++compared;
      }
    CHECK(compared >= masks.size());
  }
}

namespace {

struct held_request : request_world {
  std::shared_ptr<mask_book> masks = std::make_shared<mask_book>();
  held_request() : request_world{R"(,"guided_regex":"[a-z]{3,400}")"} {
    rebuild([&](auto& s) { s.masks = spawn(stand_in_masks(masks)); });
  }
};

} // namespace

TEST_CASE("a request's first mask is made beside it, and goes with its prompt") {
  held_request w;
  w.admit_all();
  REQUIRE(w.masks->questions == 1);
  CHECK(w.books.prefills->asked.empty());
  SUBCASE("answered") {
    w.masks->answer();
    w.settle();
    REQUIRE(w.books.prefills->asked.size() == 1);
    const auto& mask = w.books.prefills->asked[0].changes.at(0).mask;
    REQUIRE(mask != nullptr);
    CHECK(mask->allows(3 + 'a'));
    CHECK_FALSE(mask->allows(3 + '0'));
    w.prefill_all();
    CHECK(w.books.batches->joined.size() == 1);
  }
  SUBCASE("while its client leaves") {
    w.exchange->disconnect();
    w.settle();
    CHECK_FALSE(w.over);
    w.masks->answer();
    w.settle();
    CHECK(w.books.prefills->asked.empty());
    CHECK(w.books.kv->released == std::vector<sequence_id>{seq(1)});
    CHECK(w.over);
  }
  SUBCASE("in vain") {
    w.masks->promises.front().deliver(caf::make_error(caf::sec::request_timeout));
    w.settle();
    CHECK(w.exchange->status >= 500);
    CHECK(w.books.kv->released == std::vector<sequence_id>{seq(1)});
    CHECK(w.over);
  }
  SUBCASE("at too great a cost") {
    w.masks->promises.front().deliver(caf::make_error(ec::mask_refused, "it is too ambiguous"));
    w.settle();
    CHECK(w.exchange->status == 400);
    CHECK(w.metrics->scrape().body.find(R"(outcome="rejected"} 1)") != std::string::npos);
    CHECK(w.books.kv->released == std::vector<sequence_id>{seq(1)});
    CHECK(w.over);
  }
  SUBCASE("of a pipeline that is gone") {
    w.rebuild();
    w.admit_all();
    REQUIRE(w.books.prefills->asked.size() == 1); // this one has no maker
    w.masks->answer();
    w.settle();
    CHECK(w.books.prefills->asked.size() == 1);
  }
}

} // namespace lamella::actors::test
