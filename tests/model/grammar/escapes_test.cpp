// Masks within escapes of JSON strings that are held to an expression: the letters and digits
// behind a backslash are no characters of the string.
#include "base/json.hpp"
#include "model/grammar/json_schema/json_schema.hpp"
#include "model/grammar/output_constraint.hpp"
#include "tests/model/grammar/byte_tokenizer.hpp"
#include "tests/random.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace lamella;
using model::output_constraint;
using model::token_id;

namespace {

constexpr token_id end_token = 2;

/// Bytes, and all texts of up to four of some pieces of escapes and strings.
std::shared_ptr<const model::tokenizer> pieces_of_escapes() {
  std::vector<std::string> texts{""};
  for (size_t i = 0; i < texts.size() && texts[i].size() < 4; ++i)
    for (const auto* piece : {"n", "u", "0", "a", "z", "\\", "\""})
      texts.push_back(texts[i] + piece);
  std::erase_if(texts, [](const auto& text) { return text.size() < 2; });
  return tests::byte_tokenizer(texts);
}

struct fixture {
  std::shared_ptr<const model::tokenizer> text = pieces_of_escapes();
  std::shared_ptr<const model::token_trie> trie = std::make_shared<model::token_trie>(text);

  output_constraint schema(const std::string& json) const {
    const auto value = parse_json(json);
    model::grammar g;
    g.begin(0, model::json_schema_grammar(g, value, g.end()));
    return {std::move(g), trie, {end_token}, text->vocabulary()};
  }
  /// The tokens that the mask allows, which are those that a text may go on with.
  std::vector<token_id> allowed(output_constraint& c, const output_constraint::position& at) const {
    const auto mask = c.mask(at);
    std::vector<token_id> all;
    for (token_id t = 3; t < text->vocabulary(); ++t) {
      if (mask->allows(t)) all.push_back(t);
      if (mask->allows(t) == c.is_dead(c.advance(at, t))) // a check for each would take seconds
        FAIL_CHECK("token \"" << text->token_bytes(t) << "\"");
    }
    return all;
  }
  void check(output_constraint& c, std::string_view beginning) const {
    CAPTURE(std::string{beginning});
    auto at = c.start();
    for (const char byte : beginning)
      at = c.advance(at, text->encode({&byte, 1}, model::special::forbidden)[0]);
    REQUIRE_FALSE(c.is_dead(at));
    CHECK_FALSE(allowed(c, at).empty());
  }
};

} // namespace

TEST_CASE_FIXTURE(fixture, "masks within escapes are those of each token, whatever is told apart") {
  for (const std::string keywords :
       {R"("pattern": "^[a-z\\n\\t\\u0000]+$")", R"("pattern": "[0-9]")", R"("pattern": ".")",
        R"("pattern": "^[^<>]*$")", R"("pattern": "[bcdfghj-np-tv-z]")",
        R"("pattern": "y$", "maxLength": 4)", R"("not": {"pattern": "^[a-m]*$"})"}) {
    CAPTURE(keywords);
    auto c = schema(R"({"type": "string", )" + keywords + "}");
    for (const auto* beginning : {"\"", "\"\\", "\"\\u", "\"\\u0", "\"\\u00", "\"\\u000"})
      check(c, beginning);
  }
  auto names = schema(R"({"type": "object", "patternProperties": {"^[a-z\\n]+$": {}, "0": {}},
                          "propertyNames": {"pattern": "[n-z]"}})");
  for (const auto* beginning : {"{\"", "{\"\\", "{\"0\\", "{\"n\\u", "{\"\\u001"})
    check(names, beginning);
}

TEST_CASE_FIXTURE(fixture,
                  "whatever an expression tells apart, its masks are those of each token") {
  const std::vector<std::string> sets{"[a-m]",  "[n-z]",   "[^a-z]", "[0-9a-f]", ".",
                                      R"(\\n)", R"(\\\\)", R"(\")",  R"(\\s)",   R"([\\u0000-u])"};
  tests::splitmix random{11};
  for (int round = 0; round < 30; ++round) {
    std::string pattern = random.below(2) == 0 ? "^" : "";
    for (auto parts = 1 + random.below(3); parts > 0; --parts) {
      pattern += sets[random.below(sets.size())];
      pattern += std::vector<std::string>{"", "*", "+", "{0,3}"}[random.below(4)];
    }
    if (random.below(2) == 0) pattern += "$";
    const std::string length = random.below(3) == 0 ? R"(, "maxLength": 5)" : "";
    CAPTURE(pattern);
    CAPTURE(length);
    auto c = schema(R"({"type": "string", "pattern": ")" + pattern + "\"" + length + "}");
    auto at = c.start();
    for (int step = 0; step < 8; ++step) {
      auto can = allowed(c, at);
      if (can.empty()) {
        CHECK(c.mask(at)->allows(end_token));
        break;
      }
      std::vector<token_id> escapes; // with the end in one, which are few
      for (const auto t : can)
        if (text->token_bytes(t).ends_with('\\') || text->token_bytes(t).ends_with("\\u"))
          escapes.push_back(t);
      if (!escapes.empty() && random.below(3) > 0) can = escapes;
      at = c.advance(at, can[random.below(can.size())]);
    }
  }
}
