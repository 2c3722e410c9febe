// Tokens by the classes of their characters: another way to the same masks.
#include "model/grammar/class_tree.hpp"

#include "base/utf8.hpp"
#include "model/grammar/code_points.hpp"
#include "model/grammar/json_schema/json_schema.hpp"
#include "model/grammar/output_constraint.hpp"
#include "model/tokenizer/make_tokenizer.hpp"
#include "tests/model/grammar/grammar_support.hpp"
#include "tests/tiny_model.hpp"

#include <doctest/doctest.h>

#include <algorithm>

using namespace lamella;
using model::character_classes;
using model::class_tree;
using model::token_id;

namespace {

/// Bytes, and all texts of up to six of four characters: more than are gone through one by one.
std::shared_ptr<const model::tokenizer> many_tokens() {
  const auto bytes = tests::make_tiny_vocabulary();
  model::tokenizer_source source;
  source.kind = "gpt2";
  source.pre = "smollm";
  source.tokens.assign(bytes.tokens.begin(), bytes.tokens.begin() + 3 + 256);
  std::vector<std::string> texts{""};
  for (size_t i = 0, length = 0; length < 6; ++length)
    for (const auto end = texts.size(); i < end; ++i)
      for (const auto* piece : {"a", ".", " ", "\xC3\xA9"}) texts.push_back(texts[i] + piece);
  for (const auto& text : texts) {
    if (text.size() < 2 || text == "\xC3\xA9") continue;
    std::string spelt;
    for (const char byte : text) spelt += tests::byte_character(static_cast<unsigned char>(byte));
    source.tokens.push_back(spelt);
  }
  source.kinds.assign(source.tokens.size(), model::token_kind::normal);
  for (size_t i = 0; i < 3; ++i) source.kinds[i] = model::token_kind::control;
  source.bos = 1;
  source.eos = 2;
  return model::make_tokenizer(source);
}

character_classes classes_of(std::initializer_list<model::code_points> sets) {
  std::vector<character_classes::set> ranges;
  for (const auto& x : sets) ranges.emplace_back(x.ranges());
  return character_classes::of_sets(ranges);
}

struct fixture {
  std::shared_ptr<const model::tokenizer> text = many_tokens();
  model::token_trie trie{text};
  const model::code_points blank{{' ', ' '}}, dot{{'.', '.'}};
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

TEST_CASE_FIXTURE(fixture, "plain tokens of the same classes of characters are at one node") {
  const auto classes = classes_of({blank});
  class_tree tree{trie.plain(), classes};
  CHECK(tree.is() == class_tree::state::growing);
  tree.grow(trie.plain(), ~size_t{0});
  REQUIRE(tree.is() == class_tree::state::ready);
  CHECK(tree.nodes().size() == 127); // texts of up to six of two classes
  for (size_t i = 0; i < trie.plain().tokens.size(); ++i) {
    const auto bytes = trie.bytes_of(trie.plain().tokens[i]);
    std::vector<uint32_t> said, found;
    for (size_t at = 0; at < bytes.size();) {
      const auto unit = decode_utf8(bytes, at);
      said.push_back(classes.of(unit.code_point));
      at += unit.bytes;
    }
    for (size_t at = tree.node_of()[i]; at != 0; at = tree.nodes()[at].above)
      found.insert(found.begin(), classes.of(tree.nodes()[at].character));
    CHECK(said == found);
  }
}

TEST_CASE_FIXTURE(fixture, "the nodes of a tree of classes have every plain token once") {
  class_tree tree{trie.plain(), classes_of({blank})};
  tree.grow(trie.plain(), ~size_t{0});
  const auto& plain = trie.plain().tokens;
  std::vector<token_id> all;
  for (size_t node = 0; node < tree.nodes().size(); ++node)
    for (const auto t : tree.tokens_at(node)) {
      const auto index = std::find(plain.begin(), plain.end(), t) - plain.begin();
      CHECK(tree.node_of()[static_cast<size_t>(index)] == node);
      all.push_back(t);
    }
  std::sort(all.begin(), all.end());
  auto sorted = plain;
  std::sort(sorted.begin(), sorted.end());
  CHECK(all == sorted);
}

TEST_CASE_FIXTURE(fixture, "a tree of classes that grows by parts is the same tree") {
  const auto classes = classes_of({blank, dot});
  class_tree whole{trie.plain(), classes}, grown{trie.plain(), classes};
  whole.grow(trie.plain(), ~size_t{0});
  size_t parts = 0;
  for (; grown.is() == class_tree::state::growing; ++parts) grown.grow(trie.plain(), 1'000);
  CHECK(parts == (trie.plain().nodes.size() + 998) / 1'000);
  CHECK(grown.node_of() == whole.node_of());
  CHECK(trie.by_classes(classes, 1) == nullptr);
  const auto known = trie.by_classes(classes, ~size_t{0});
  REQUIRE(known != nullptr);
  CHECK(known->node_of() == whole.node_of());
  CHECK(trie.by_classes(classes, 0) == known);
}

TEST_CASE_FIXTURE(fixture,
                  "masks that are found by classes of characters are those of each token") {
  const auto shared = std::make_shared<model::token_trie>(text);
  for (const auto* pattern :
       {R"("pattern": "^(?:\\S+\\s+){0,3}\\S+$", "maxLength": 14)", R"("pattern": "^[^.]+\\.a$")",
        R"("pattern": "^(a|\\.)[a.\u00e9]*$", "minLength": 9)", R"("pattern": "\\.é")"}) {
    CAPTURE(std::string{pattern});
    const auto schema = parse_json(std::string{R"({"type": "string", )"} + pattern + "}");
    model::grammar g;
    g.begin(0, model::json_schema_grammar(g, schema, g.end()));
    model::output_constraint c{std::move(g), shared, {2}, text->vocabulary()};
    for (const auto* words : {"\"", "\"a", "\"a.", "\"a. a", "\"aaaa aaa aaa"}) {
      CAPTURE(std::string{words});
      auto at = c.start();
      for (const char byte : std::string_view{words})
        at = c.advance(at, text->encode({&byte, 1}, model::special::forbidden)[0]);
      const auto mask = c.mask(at);
      for (token_id t = 3; t < text->vocabulary(); ++t)
        if (mask->allows(t) == c.is_dead(c.advance(at, t)))
          FAIL_CHECK("token " << t << " \"" << text->token_bytes(t) << "\"");
    }
  }
}
