// What one answer may cost, however much its grammar asks for: work is counted, not time.
#include "model/grammar/output_constraint.hpp"
#include "model/grammar/text/grammar_text.hpp"
#include "tests/model/grammar/byte_tokenizer.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace lamella;
using model::grammar_error;
using model::output_constraint;
using model::token_id;

namespace {

constexpr token_id end_token = 2;

/// Bytes, all texts of up to five of four letters, and one long token.
struct fixture {
  std::shared_ptr<const model::tokenizer> text;
  std::shared_ptr<const model::token_trie> trie;
  token_id long_token = 0; ///< of sixteen letters

  fixture() {
    std::vector<std::string> texts{""};
    for (size_t i = 0; i < texts.size() && texts[i].size() < 5; ++i)
      for (const char letter : {'a', 'b', 'c', 'd'}) texts.push_back(texts[i] + letter);
    std::erase_if(texts, [](const auto& x) { return x.size() < 2; });
    texts.emplace_back(16, 'a');
    text = tests::byte_tokenizer(texts);
    long_token = static_cast<token_id>(text->vocabulary() - 1);
    trie = std::make_shared<model::token_trie>(text);
  }

  token_id token_of(char byte) const {
    return text->encode(std::string_view{&byte, 1}, model::special::forbidden)[0];
  }
  output_constraint constraint(std::string_view ebnf) const {
    model::grammar g;
    g.begin(0, model::grammar_of_text(g, ebnf, g.end()));
    return {std::move(g), trie, {end_token}, text->vocabulary()};
  }
};

/// Rules for so many parts in a row, each of which is empty in two ways: every byte behind which
/// they stand looks at all of them, and leads to a few places.
std::string empty_parts(size_t count) {
  std::string rules = "\ne ::= \"\" | \"\"\nf ::=";
  for (size_t i = 0; i < count; ++i) rules += " e";
  return rules;
}

/// Brackets of four kinds with empty parts within: each text of letters is a state of its own.
std::string brackets(size_t count) {
  return R"(r ::= "a" f r "A" | "b" f r "B" | "c" f r "C" | "d" f r "D" | ".")"
         + empty_parts(count);
}

} // namespace

TEST_CASE_FIXTURE(fixture, "a mask that takes too much work is refused, and others are made") {
  auto c = constraint("root ::= \"(\" r | \"-\" \".\"\n" + brackets(15'000));
  const auto open = c.advance(c.start(), token_of('('));
  for (int again = 0; again < 2; ++again)
    CHECK_THROWS_WITH_AS(c.mask(open), doctest::Contains("too ambiguous or too large"),
                         grammar_error);
  CHECK(c.memory_bytes() < 2 * output_constraint::walks_kept_bytes);
  const auto mask = c.mask(c.advance(c.start(), token_of('-')));
  for (token_id t = 0; t < text->vocabulary(); ++t) CHECK(mask->allows(t) == (t == token_of('.')));
  // With few such parts it is a grammar like any other.
  auto few = constraint("root ::= r\n" + brackets(3));
  CHECK(few.mask(few.start())->allows(long_token));
}

TEST_CASE_FIXTURE(fixture, "a token whose states take too much work is refused") {
  auto c = constraint("root ::= r\n" + brackets(15'000));
  CHECK_THROWS_AS(c.advance(c.start(), long_token), grammar_error);
  CHECK_FALSE(c.is_dead(c.advance(c.start(), token_of('a'))));
  auto few = constraint("root ::= r\n" + brackets(3));
  CHECK_FALSE(few.is_dead(few.advance(few.start(), long_token)));
}

TEST_CASE_FIXTURE(fixture, "states that take much work are not made at once") {
  const std::vector<token_id> one{token_of('a')};
  for (const size_t parts : {3, 3'000}) {
    // Far from its limits each count is a state of its own, and they have one mask.
    auto c = constraint("root ::= (\"a\" f){400,900}" + empty_parts(parts));
    const auto first = c.follow(c.start(), one);
    const auto next = c.follow_at_once(first.at, one);
    CHECK(next.has_value() == (parts == 3));
    CHECK(c.follow(first.at, one).mask == first.mask);
  }
}
