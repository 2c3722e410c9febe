// Tokens by the classes of their characters: another way to the same masks.
#include "model/grammar/class_tree.hpp"

#include "base/utf8.hpp"
#include "model/grammar/character_steps.hpp"
#include "model/grammar/code_points.hpp"
#include "model/grammar/json_schema/json_schema.hpp"
#include "model/grammar/output_constraint.hpp"
#include "model/grammar/regular_expression.hpp"
#include "tests/model/grammar/byte_tokenizer.hpp"
#include "tests/model/grammar/grammar_support.hpp"

#include <doctest/doctest.h>

#include <algorithm>

using namespace lamella;
using model::character_classes;
using model::class_tree;
using model::token_id;
using model::token_trie;

namespace {

/// Bytes, and all texts of up to six of four characters: more than are gone through one by one.
std::shared_ptr<const model::tokenizer> many_tokens() {
  std::vector<std::string> texts{""};
  for (size_t i = 0, length = 0; length < 6; ++length)
    for (const auto end = texts.size(); i < end; ++i)
      for (const auto* piece : {"a", ".", " ", "\xC3\xA9"}) texts.push_back(texts[i] + piece);
  std::erase_if(texts, [](const auto& x) { return x.size() < 2 || x == "\xC3\xA9"; });
  return tests::byte_tokenizer(texts);
}

character_classes classes_of(std::initializer_list<model::code_points> sets) {
  std::vector<character_classes::set> ranges;
  for (const auto& x : sets) ranges.emplace_back(x.ranges());
  return character_classes::of_sets(ranges);
}

model::grammar::node_id whole(model::grammar& g, std::string_view pattern,
                              model::grammar::node_id next) {
  return model::regular_expression::parse(pattern).compile(
      g, model::regular_expression::match::whole, model::spelling::plain, next);
}

struct fixture {
  std::shared_ptr<const model::tokenizer> text = many_tokens();
  model::token_trie trie{text};
  const model::code_points blank{{' ', ' '}}, dot{{'.', '.'}};

  class_tree grown(const character_classes& classes) const {
    class_tree tree{trie.by_characters(), classes};
    tree.grow(trie.by_characters(), trie.plain().tokens, ~size_t{0});
    return tree;
  }
  static std::vector<token_id> tokens_of(const class_tree& tree) {
    std::vector<token_id> all;
    for (size_t node = 0; node < tree.nodes().size(); ++node)
      all.insert(all.end(), tree.tokens_at(node).begin(), tree.tokens_at(node).end());
    return all;
  }
};

} // namespace

TEST_CASE("characters that no set tells apart are of one class") {
  const model::code_points letters{{'a', 'z'}, {0xE9, 0xE9}}, vowels{{'a', 'a'}, {'e', 'e'}};
  const auto classes = classes_of({letters, vowels});
  CHECK(classes.count() == 3);
  CHECK(classes.of('a') == classes.of('e'));
  CHECK(classes.of('b') == classes.of(0xE9));
  CHECK(classes.of('!') == classes.of(0x1F600));
  CHECK(classes.of('a') != classes.of('b'));
  CHECK(classes.of('b') != classes.of('!'));
  CHECK(classes.plain_ones().size() == 3);
  model::code_points many;
  for (char32_t c = 0; c < 2 * character_classes::ranges_max; ++c) many.add(3 * c, 3 * c);
  CHECK(classes_of({many}).ranges.empty());
}

TEST_CASE_FIXTURE(fixture, "a tree of characters has the plain tokens at their last characters") {
  const auto& tree = trie.by_characters();
  const auto& plain = trie.plain().tokens;
  CHECK(std::is_sorted(tree.characters.begin(), tree.characters.end()));
  std::vector<std::string> spelt(token_trie::plain_characters_max + 1); // by characters
  size_t tokens = 0;
  for (uint32_t i = 0; i + 1 < tree.nodes.size(); ++i) {
    const auto& node = tree.nodes[i];
    spelt[node.depth] = spelt[node.depth - 1u];
    append_utf8(spelt[node.depth], tree.characters[node.character]);
    uint8_t longest = 0;
    for (auto at = i; at < node.behind; ++at) {
      CHECK((at == i) == (tree.nodes[at].depth <= node.depth));
      if (tree.nodes[at].first_token < tree.nodes[at + 1].first_token)
        longest = std::max(longest, tree.nodes[at].depth);
    }
    CHECK(node.longest == longest);
    for (auto t = node.first_token; t < tree.nodes[i + 1].first_token; ++t, ++tokens)
      CHECK(trie.bytes_of(plain[t]) == spelt[node.depth]);
  }
  CHECK(tokens == plain.size());
}

TEST_CASE_FIXTURE(fixture, "plain tokens of the same classes of characters are at one node") {
  const auto classes = classes_of({blank});
  const auto tree = grown(classes);
  REQUIRE(tree.is() == class_tree::state::ready);
  CHECK(tree.nodes().size() == 127); // texts of up to six of two classes
  for (size_t node = 0; node < tree.nodes().size(); ++node)
    for (const auto t : tree.tokens_at(node)) {
      const auto bytes = trie.bytes_of(t);
      std::vector<uint32_t> said, found;
      for (size_t at = 0; at < bytes.size();) {
        const auto unit = decode_utf8(bytes, at);
        said.push_back(classes.of(unit.code_point));
        at += unit.bytes;
      }
      for (auto at = node; at != 0; at = tree.nodes()[at].above)
        found.insert(found.begin(), classes.of(tree.characters().one[tree.nodes()[at].of_class]));
      CHECK(said == found);
    }
}

TEST_CASE_FIXTURE(fixture, "the nodes of a tree of classes have every plain token once") {
  const auto tree = grown(classes_of({blank}));
  auto all = tokens_of(tree);
  auto sorted = trie.plain().tokens;
  std::sort(all.begin(), all.end());
  std::sort(sorted.begin(), sorted.end());
  CHECK(all == sorted);
}

TEST_CASE_FIXTURE(fixture, "a tree of classes that grows by parts is the same tree") {
  const auto classes = classes_of({blank, dot});
  const auto whole = grown(classes);
  class_tree parts{trie.by_characters(), classes};
  size_t count = 0;
  for (; parts.is() == class_tree::state::growing; ++count)
    parts.grow(trie.by_characters(), trie.plain().tokens, 1'000);
  CHECK(count == (trie.by_characters().nodes.size() + 998) / 1'000);
  CHECK(tokens_of(parts) == tokens_of(whole));
  const auto begun = trie.by_classes(classes, 1);
  CHECK_FALSE(begun.is_ready);
  CHECK(begun.tree->characters().of == whole.characters().of);
  const auto known = trie.by_classes(classes, ~size_t{0});
  REQUIRE(known.is_ready);
  CHECK(tokens_of(*known.tree) == tokens_of(whole));
  CHECK(trie.by_classes(classes, 0).tree == known.tree);
}

TEST_CASE_FIXTURE(fixture, "characters of one class of bytes lead to the same from every state") {
  model::grammar g;
  const auto pattern = "[a-c\u00e8-\u00ea]+(x|\u00e9)*";
  g.begin(0, whole(g, pattern, g.end()));
  const auto shared =
      std::make_shared<const model::runnable_grammar>(std::move(g), trie.single_bytes());
  const model::classed_characters classes{trie.by_characters(), shared->classes};
  CHECK(classes.of.size() == trie.by_characters().characters.size());
  model::grammar_states states{shared, trie.depth()};
  const auto behind = [&](model::grammar_states::state_id from, char32_t c) {
    std::string bytes;
    append_utf8(bytes, c);
    for (const char byte : bytes) from = states.step(from, static_cast<uint8_t>(byte));
    return from;
  };
  for (const auto from : {states.start(), behind(states.start(), 'a')})
    for (size_t i = 0; i < classes.of.size(); ++i)
      CHECK(behind(from, trie.by_characters().characters[i])
            == behind(from, classes.one[classes.of[i]]));
}

TEST_CASE("steps by characters are remembered as far as there is room") {
  constexpr uint32_t classes = 1 << 10;
  model::character_steps steps{classes};
  CHECK(steps.number(0) == model::character_steps::dead);
  const auto rows = static_cast<uint32_t>(model::character_steps::known_max / classes);
  for (uint32_t x = 1; x < 2 * rows; ++x) {
    const auto number = steps.number(x);
    CHECK(steps.number(x) == number);
    CHECK(steps.state(number) == x);
    CHECK(steps.known(number, classes - 1) == model::character_steps::unknown);
    steps.learn(number, classes - 1, steps.number(x / 2));
    const bool is_known = steps.known(number, classes - 1) == steps.number(x / 2);
    CHECK(is_known == (x < rows));
  }
}

TEST_CASE_FIXTURE(fixture,
                  "masks that are found by classes of characters are those of each token") {
  const auto shared = std::make_shared<model::token_trie>(text);
  const auto check = [&](model::grammar g, std::initializer_list<const char*> beginnings) {
    model::output_constraint c{std::move(g), shared, {2}, text->vocabulary()};
    for (const auto* words : beginnings) {
      CAPTURE(std::string{words});
      auto at = c.start();
      for (const char byte : std::string_view{words})
        at = c.advance(at, text->encode({&byte, 1}, model::special::forbidden)[0]);
      const auto mask = c.mask(at);
      for (token_id t = 3; t < text->vocabulary(); ++t)
        if (mask->allows(t) == c.is_dead(c.advance(at, t)))
          FAIL_CHECK("token " << t << " \"" << text->token_bytes(t) << "\"");
    }
  };
  for (const auto* pattern :
       {R"("pattern": "^(?:\\S+\\s+){0,3}\\S+$", "maxLength": 14)", R"("pattern": "^[^.]+\\.a$")",
        R"("pattern": "^(a|\\.)[a.\u00e9]*$", "minLength": 9)", R"("pattern": "\\.é")"}) {
    CAPTURE(std::string{pattern});
    const auto schema = parse_json(std::string{R"({"type": "string", )"} + pattern + "}");
    model::grammar g;
    g.begin(0, model::json_schema_grammar(g, schema, g.end()));
    check(std::move(g), {"\"", "\"a", "\"a.", "\"a. a", "\"aaaa aaa aaa"});
  }
  // Nothing is noted of classes where plain characters come behind a part.
  for (const auto* pattern : {"[^.]*\\.[a\u00e9]*", "(a|\u00e9|[. ]a){2,9}", "(a*\\.){3}.*"}) {
    CAPTURE(std::string{pattern});
    model::grammar g;
    const auto behind = g.text("a", g.end());
    g.begin(0, whole(g, pattern, behind));
    check(std::move(g), {"", "a", "a.", "a.a", "aa.a."});
  }
}
