#include "model/grammar/output_constraint.hpp"

#include "model/grammar/json_schema.hpp"
#include "tests/model/grammar_support.hpp"
#include "tests/tiny_model.hpp"

#include <doctest/doctest.h>

#include <algorithm>

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
  constraint(const std::function<grammar::node_id(grammar&, grammar::node_id)>& build) const {
    grammar g;
    g.begin(0, build(g, g.end()));
    return {std::move(g), trie, {end_token}, text->vocabulary() + 50};
  }
  output_constraint schema(std::string_view json) const {
    const auto value = model::parse_json(json);
    return constraint([&](grammar& g, auto next) { return json_schema_grammar(g, value, next); });
  }
};

} // namespace

TEST_CASE_FIXTURE(fixture, "the tree of a vocabulary has every token once, at its bytes") {
  std::vector<token_id> found;
  std::string path;
  const auto& nodes = trie->nodes();
  for (size_t i = 0; i + 1 < nodes.size(); ++i) {
    path.resize(nodes[i].depth - 1u);
    path += static_cast<char>(nodes[i].byte);
    CHECK(nodes[i].behind > i);
    for (auto t = nodes[i].first_token; t < nodes[i + 1].first_token; ++t) {
      found.push_back(trie->tokens()[t]);
      CHECK(text->token_bytes(found.back()) == path);
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
  const auto value = model::parse_json(json);
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
  CHECK_FALSE(c.worn());
}
