#include "model/grammar/output_constraint.hpp"

#include "model/grammar/json_schema/json_schema.hpp"
#include "model/grammar/regular_expression.hpp"
#include "model/tokenizer/make_tokenizer.hpp"
#include "tests/model/grammar/byte_tokenizer.hpp"
#include "tests/model/grammar/grammar_support.hpp"
#include "tests/tiny_model.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

using namespace lamella;
using model::grammar;
using model::output_constraint;
using model::token_id;

namespace {

constexpr token_id end_token = 2;

std::shared_ptr<const model::tokenizer> tiny_tokenizer() {
  const auto words = tests::make_tiny_vocabulary();
  model::tokenizer_source source;
  source.kind = "gpt2";
  source.pre = "smollm";
  source.tokens = words.tokens;
  for (const int32_t type : words.types)
    source.kinds.push_back(static_cast<model::token_kind>(type));
  source.merges = words.merges;
  source.bos = 1;
  source.eos = end_token;
  return model::make_tokenizer(source);
}

struct fixture {
  std::shared_ptr<const model::tokenizer> text = tiny_tokenizer();
  std::shared_ptr<const model::token_trie> trie = std::make_shared<model::token_trie>(text);

  output_constraint
  constraint(const std::function<grammar::node_id(grammar&, grammar::node_id)>& build,
             size_t work_max = output_constraint::mask_work_max) const {
    grammar g;
    g.begin(0, build(g, g.end()));
    return {std::move(g), trie, {end_token}, text->vocabulary() + 50, work_max};
  }
  output_constraint schema(std::string_view json) const {
    const auto value = parse_json(json);
    return constraint([&](grammar& g, auto next) { return json_schema_grammar(g, value, next); });
  }
  output_constraint expression(std::string_view regex,
                               size_t work_max = output_constraint::mask_work_max) const {
    return constraint(
        [&](grammar& g, auto next) {
          return model::regular_expression::parse(regex).compile(
              g, model::regular_expression::match::whole, model::spelling::plain, next);
        },
        work_max);
  }

  token_id token_of(char byte) const {
    const auto found = text->encode(std::string_view{&byte, 1}, model::special::forbidden);
    REQUIRE(found.size() == 1);
    return found[0];
  }
  output_constraint::position after(output_constraint& c, output_constraint::position at,
                                    std::string_view words) const {
    for (const char byte : words) at = c.advance(at, token_of(byte));
    return at;
  }
  /// The mask is that of its definition: of every token alone.
  void check_mask(output_constraint& c, const output_constraint::position& at, bool may_end) const {
    const auto mask = c.mask(at);
    for (token_id t = 0; t < text->vocabulary() + 100; ++t) {
      const bool expected = t < text->vocabulary() && !text->is_special(t)
                                ? !c.is_dead(c.advance(at, t))
                                : t == end_token && may_end;
      if (mask->allows(t) != expected) // a check for each token would take seconds
        FAIL_CHECK("token " << t << " \"" << text->token_bytes(t) << "\" is "
                            << (expected ? "not allowed" : "allowed"));
    }
  }
};

/// With many tokens that begin alike: up to four of some pieces, in strings and beyond.
struct broad_fixture : fixture {
  broad_fixture() {
    const std::vector<std::string> pieces{"a", "t", "\"", "\\", " ", "\xC3\xA9"};
    std::vector<std::string> longer{""};
    for (size_t i = 0; i < longer.size(); ++i) {
      if (longer[i].size() > 3) continue;
      for (const auto& piece : pieces) longer.push_back(longer[i] + piece);
    }
    std::erase_if(longer, [](const auto& x) { return x.size() < 2; });
    text = tests::byte_tokenizer(longer);
    trie = std::make_shared<model::token_trie>(text);
  }
};

} // namespace

TEST_CASE_FIXTURE(fixture, "the trees of a vocabulary have every token once, at its bytes") {
  std::vector<token_id> found;
  for (const auto* tree : {&trie->plain(), &trie->others()}) {
    std::string path;
    const auto& nodes = tree->nodes;
    const auto& tokens = tree->tokens;
    for (size_t i = 0; i + 1 < nodes.size(); ++i) {
      path.resize(nodes[i].depth - 1u);
      path += static_cast<char>(nodes[i].byte);
      CHECK(nodes[i].behind > i);
      for (auto t = nodes[i].first_token; t < nodes[i + 1].first_token; ++t) {
        found.push_back(tokens[t]);
        CHECK(text->token_bytes(found.back()) == path);
        if (tree == &trie->plain()) CHECK(nodes[i].longest >= trie->characters(t));
      }
    }
  }
  std::vector<token_id> wanted;
  for (token_id t = 0; t < text->vocabulary(); ++t)
    if (!text->is_special(t)) wanted.push_back(t);
  std::sort(found.begin(), found.end());
  CHECK(found == wanted);
  CHECK(trie->single_bytes().count() > 200);
}

// The mask against its definition: a token is allowed if its bytes lead somewhere.
TEST_CASE_FIXTURE(fixture, "a mask allows exactly the tokens that a text may go on with") {
  auto c = schema(R"({"type":"object","properties":{"the":{"type":"string","maxLength":9},
                       "n":{"type":"integer"}},"required":["n"]})");
  tests::splitmix random{7};
  for (int round = 0; round < 20; ++round) {
    for (auto at = c.start();;) {
      const auto mask = c.mask(at);
      CHECK_FALSE(mask->empty());
      std::vector<token_id> allowed;
      for (token_id t = 0; t < text->vocabulary() + 100; ++t) {
        const bool expected = t < text->vocabulary() && !text->is_special(t)
                                  ? !c.is_dead(c.advance(at, t))
                                  : t == end_token && mask->allows(end_token);
        CHECK(mask->allows(t) == expected);
        if (mask->allows(t)) allowed.push_back(t);
      }
      const auto drawn = allowed[random.below(allowed.size())];
      if (drawn == end_token) break;
      at = c.advance(at, drawn);
    }
  }
}

TEST_CASE_FIXTURE(broad_fixture, "tokens of plain text are allowed wherever they are in strings") {
  auto c = schema(R"({"type":"object","properties":{"at":{"type":"string","maxLength":40},
                      "ata":{"type":"string","pattern":"^[a-z ]+$"},"id":{"type":"string"}},
                      "additionalProperties":{"type":"string"}})");
  CHECK(trie->plain().tokens.size() > 100);
  for (const std::string words :
       {R"({"at":"a\u00e9 \n","ata":"the ring","id":"x \"y"})", R"({"id":"","ta":"e","atat":"\\"})",
        "{\"id\":\"caf\xC3\xA9 \xE2\x82\xAC\",\"o\xC3\xA9\":\"\xF0\x9F\x98\x80!\"}"}) {
    auto at = c.start();
    for (const char byte : words) {
      check_mask(c, at, false);
      at = c.advance(at, token_of(byte));
      REQUIRE_FALSE(c.is_dead(at));
    }
    check_mask(c, at, true);
  }
}

TEST_CASE_FIXTURE(fixture, "an answer ends where its text may, and only there") {
  auto c = constraint([](grammar& g, auto next) {
    return g.choice({g.text("the", next), g.text("the ring", next)});
  });
  const auto after = [&](std::string_view words) {
    auto at = c.start();
    for (const auto t : text->encode(words, model::special::forbidden)) at = c.advance(at, t);
    return at;
  };
  CHECK_FALSE(c.mask(c.start())->allows(end_token));
  CHECK(c.mask(after("the"))->allows(end_token));
  CHECK_FALSE(c.mask(after("the "))->allows(end_token));
  // Where nothing may follow, nothing but the end may.
  const auto last = c.mask(after("the ring"));
  for (token_id t = 0; t < text->vocabulary(); ++t) CHECK(last->allows(t) == (t == end_token));
  CHECK(c.is_dead(after("other")));
}

TEST_CASE_FIXTURE(fixture, "whatever is drawn under masks is a text of the schema at its end") {
  const std::string_view json = R"({"type":"array","items":{"anyOf":[{"type":"integer"},
      {"enum":["and","the ring"]},{"type":"object","additionalProperties":{"type":"null"}}]},
      "minItems":1,"maxItems":6})";
  auto c = schema(json);
  const auto value = parse_json(json);
  auto states =
      tests::states_of([&](grammar& g, auto next) { return json_schema_grammar(g, value, next); });
  tests::splitmix random{17};
  for (int round = 0; round < 50; ++round) {
    std::string answer;
    for (auto at = c.start();;) {
      const auto mask = c.mask(at);
      std::vector<token_id> allowed;
      for (token_id t = 0; t < text->vocabulary(); ++t)
        if (mask->allows(t)) allowed.push_back(t);
      REQUIRE_FALSE(allowed.empty());
      const auto drawn =
          mask->allows(end_token) ? end_token : allowed[random.below(allowed.size())];
      if (drawn == end_token) break;
      answer += text->token_bytes(drawn);
      at = c.advance(at, drawn);
    }
    CHECK_MESSAGE(tests::takes(states, answer), answer);
  }
}

TEST_CASE_FIXTURE(fixture, "masks are found again, and are those of a constraint without memory") {
  auto c = schema(R"({"type":"string"})");
  const auto one = c.mask(c.start());
  CHECK(c.mask(c.start()) == one);
  auto other = schema(R"({"type":"string"})");
  CHECK(other.mask(other.start())->words == one->words);
  CHECK(c.memory_bytes() > one->words.size() * 4);
}

TEST_CASE_FIXTURE(fixture,
                  "masks near and far from the limits of a count are those of each token") {
  const auto reach = trie->depth();
  REQUIRE(reach < 200);
  struct row {
    std::string regex, unit; ///< the unit is one more time of what is counted
    uint32_t min, max;
  };
  for (const auto& x :
       {row{"[a-z ]{0,900}", "a", 0, 900}, row{"[a-z ]{600,900}", "e", 600, 900},
        row{"[a-z ]{600,}", "t", 600, grammar::unbounded}, row{"(the ){300,700}", "the ", 300, 700},
        row{"([a-z]{2,9} ){50,90}", "ab ", 50, 90}, row{"([a-z]{1,300}){2,300}", "n", 2, 90'000},
        row{"(r?){5,800}", "r", 0, 800}, row{"[a-z]{7}", "i", 7, 7}}) {
    CAPTURE(x.regex);
    auto c = expression(x.regex);
    auto at = c.start();
    const auto last = std::min(x.max, 1'000u);
    for (uint32_t n = 0;; ++n) {
      const auto near = [&](uint32_t limit) { return n <= limit + 2 && n + reach + 2 >= limit; };
      CAPTURE(n);
      const bool close = near(x.min) || (x.max == last && near(last));
      if (n % 97 == 0 || (close && n % 5 == 0) || n == x.min || n + 1 == x.min || n == last)
        check_mask(c, at, n >= x.min);
      if (n == last) break;
      at = after(c, at, x.unit);
    }
  }
}

TEST_CASE_FIXTURE(fixture, "far from its limits a count has one mask, made once") {
  auto c = schema(R"({"type":"string","minLength":6000,"maxLength":20000})");
  auto at = after(c, c.start(), "\"");
  std::set<std::shared_ptr<const model::token_mask>> masks;
  for (int n = 0; n < 20'000; n += 50) {
    masks.insert(c.mask(at));
    for (int i = 0; i < 50; ++i) at = c.advance(at, token_of('a'));
  }
  // Below the least length, between the two, and some near the one and the other.
  CHECK(masks.size() <= 2 + 2 * (trie->depth() / 50 + 2));
  CHECK(c.memory_bytes() < output_constraint::states_kept_bytes * 2);
}

TEST_CASE_FIXTURE(fixture,
                  "an answer of very many states goes on, and what is kept stays bounded") {
  auto c = schema(R"({"type":"array","items":{"type":"string","maxLength":100000}})");
  auto at = after(c, c.start(), "[\"");
  const auto first = c.mask(at);
  size_t most = 0;
  for (int n = 0; n < 99'000; ++n) {
    at = c.advance(at, token_of('a'));
    most = std::max(most, c.memory_bytes());
  }
  CHECK(c.mask(at) == first); // it has gone along to new states
  CHECK(most < output_constraint::states_kept_bytes * 2);
  check_mask(c, after(c, at, "\""), false);
}

TEST_CASE_FIXTURE(fixture, "what is not known at once is made, and is known from then on") {
  auto c = schema(R"({"type":"string","maxLength":500})");
  const std::vector<token_id> quote{token_of('"')}, some{token_of('"'), token_of('a')};
  CHECK_FALSE(c.follow_at_once(c.start(), quote));
  const auto made = c.follow(c.start(), quote);
  CHECK(made.mask == c.mask(after(c, c.start(), "\"")));
  const auto known = c.follow_at_once(c.start(), quote);
  REQUIRE(known);
  CHECK(known->mask == made.mask);
  // Another count, far from its limit as well: the same mask.
  const auto more = c.follow_at_once(c.start(), some);
  REQUIRE(more);
  CHECK(more->mask == made.mask);
  CHECK_FALSE(c.follow_at_once(c.start(), std::vector<token_id>(5'000, token_of('a')))); // too far

  const std::shared_ptr<output_constraint> shared{
      new output_constraint(schema(R"({"type":"string"})"))};
  model::constrained_answer answer{shared};
  answer.generated(quote);
  CHECK_FALSE(answer.knows_mask());
  CHECK(answer.mask() == nullptr);
  answer.make_mask();
  CHECK(answer.knows_mask());
  answer.generated(quote);
  CHECK(answer.mask() == nullptr); // of the token before
  CHECK(model::constrained_answer{}.knows_mask());
}

// What is kept, and how much of it others have asked for, must change nothing.
TEST_CASE_FIXTURE(fixture, "an ambiguous expression has the same masks whoever asks, and when") {
  const auto* regex = "([a-t]|e[a-z]){0,40}(the|[a-h ]{3,30}){1,20}[d-w]{5}";
  auto much = expression(regex);
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    tests::splitmix random{seed};
    auto fresh = expression(regex);
    auto x = much.start(), y = fresh.start();
    for (int n = 0; n < 40; ++n) {
      const auto mask = much.mask(x);
      REQUIRE(mask->words == fresh.mask(y)->words);
      std::vector<token_id> allowed;
      for (token_id t = 0; t < text->vocabulary(); ++t)
        if (t != end_token && mask->allows(t)) allowed.push_back(t);
      if (allowed.empty()) break;
      const auto t = allowed[random.below(allowed.size())];
      x = much.advance(x, t);
      y = fresh.advance(y, t);
    }
  }
}

TEST_CASE_FIXTURE(fixture, "where a mask is too much work, tokens of one byte are left of it") {
  const auto* regex = "([a-t]|e[a-z]){3,40}[d-w]{5}";
  auto whole = expression(regex), bounded = expression(regex, 20);
  auto x = whole.start(), y = bounded.start();
  tests::splitmix random{3};
  for (;;) {
    const auto all = whole.mask(x), some = bounded.mask(y);
    std::vector<token_id> allowed;
    for (token_id t = 0; t < text->vocabulary(); ++t)
      if (some->allows(t)) {
        CHECK(all->allows(t));
        if (!text->is_special(t)) CHECK(text->token_bytes(t).size() == 1);
        allowed.push_back(t);
      } else if (all->allows(t)) {
        CHECK(text->token_bytes(t).size() > 1);
      }
    REQUIRE_FALSE(allowed.empty());
    const auto drawn = some->allows(end_token) ? end_token : allowed[random.below(allowed.size())];
    if (drawn == end_token) break;
    x = whole.advance(x, drawn);
    y = bounded.advance(y, drawn);
  }
}
