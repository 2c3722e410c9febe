// Random grammars with a lexer: what is drawn under masks is read again by an independent reader.
#include "model/grammar/ambiguity.hpp"
#include "model/grammar/output_constraint.hpp"
#include "tests/model/grammar/byte_tokenizer.hpp"
#include "tests/model/grammar/text/grammar_rows.hpp"
#include "tests/model/grammar/text/longest_match_reader.hpp"

#include <doctest/doctest.h>

#include <optional>
#include <set>

using namespace lamella;
using model::token_id;
using tests::lexed_part;
using tests::lexed_terminal;

namespace {

using kind = lexed_part::kind;

constexpr size_t endless = 1'000'000;
constexpr token_id end_token = 2;
const std::vector<std::string> letters{"a", "b", "c", "\u00e9", "\u00e8", "."};

/// A grammar, and how it is written.
struct random_grammar {
  std::vector<lexed_terminal> terminals{};
  lexed_part start{};
  std::string source{};
};

class maker {
public:
  explicit maker(uint64_t seed) : random_{seed} {}

  random_grammar make() {
    random_grammar made;
    std::set<std::string> known;
    const auto add = [&](bool is_ignored) {
      auto x = terminal("T" + std::to_string(made.terminals.size()));
      x.is_ignored = is_ignored;
      if (known.insert(x.source).second) made.terminals.push_back(std::move(x));
    };
    for (auto n = 2 + random_.below(3); n > 0; --n) add(false);
    terminals_ = made.terminals.size();
    made.source = "start: " + rule(made.start, 3) + "\n";
    if (random_.below(2) == 0) add(true);
    for (const auto& x : made.terminals) {
      made.source += x.name + ": " + x.source + "\n";
      if (x.is_ignored) made.source += "%ignore " + x.name + "\n";
    }
    return made;
  }

  std::string text(const std::string& like) {
    auto made = like;
    const auto is_within = [&](size_t at) {
      return at < made.size() && (static_cast<uint8_t>(made[at]) & 0xC0) == 0x80;
    };
    for (auto n = 1 + random_.below(2); n > 0; --n) {
      auto at = random_.below(made.size() + 1);
      while (is_within(at)) ++at;
      if (random_.below(2) == 0) {
        made.insert(at, letters[random_.below(letters.size())]);
      } else if (at < made.size()) {
        do made.erase(at, 1);
        while (is_within(at));
      }
    }
    return made;
  }

  tests::splitmix& random() { return random_; }

private:
  lexed_terminal terminal(const std::string& name) {
    lexed_terminal x;
    x.name = name;
    x.is_expression = random_.below(2) == 0;
    x.body.what = kind::sequence;
    if (x.is_expression) {
      x.longest = 1;
      x.source = "/" + letter(x.body.inner.emplace_back());
      x.source += expression(x.body.inner, x.longest, 2) + "/";
      return x;
    }
    x.longest = 1 + random_.below(3);
    for (size_t i = 0; i < x.longest; ++i) x.source += letter(x.body.inner.emplace_back());
    x.source = '"' + x.source + '"';
    return x;
  }

  /// Of a text: one letter.
  std::string letter(lexed_part& x) {
    const auto one = letters[random_.below(5)];
    x.characters = tests::characters_of(one);
    return one;
  }

  std::string expression(std::vector<lexed_part>& made, size_t& longest, int depth) {
    std::string source;
    for (auto n = random_.below(3); n > 0; --n) {
      auto& x = made.emplace_back();
      size_t length = 1;
      std::string one;
      if (depth > 0 && random_.below(3) == 0) {
        x.what = kind::choice;
        one = "(?:";
        for (auto i = 1 + random_.below(2);; --i) {
          auto& branch = x.inner.emplace_back();
          branch.what = kind::sequence;
          size_t own = 1;
          one += letter(branch.inner.emplace_back());
          one += expression(branch.inner, own, depth - 1);
          length = std::max(length, own);
          if (i == 0) break;
          one += "|";
        }
        one += ")";
      } else if (random_.below(2) == 0) {
        one = "[a-c\u00e9]";
        x.characters = U"abc\u00e9";
      } else {
        one = letter(x);
      }
      source += one + repeated(x, length);
      longest = std::min(endless, longest + length);
    }
    return source;
  }

  std::string repeated(lexed_part& x, size_t& length) {
    const auto how = random_.below(6);
    if (how > 2) return {};
    lexed_part all;
    all.what = kind::repeat;
    all.may_miss = how != 1;
    all.may_come_again = how != 2;
    all.inner.push_back(std::move(x));
    x = std::move(all);
    if (x.may_come_again) length = endless;
    return how == 0 ? "*" : how == 1 ? "+" : "?";
  }

  std::string rule(lexed_part& x, int depth) {
    const auto what = random_.below(depth > 0 ? 6 : 2);
    if (what < 2) {
      x.terminal = random_.below(terminals_);
      return "T" + std::to_string(x.terminal);
    }
    if (what == 2) {
      size_t unused = 0;
      const auto body = "(" + rule(x, depth - 1) + ")";
      return body + repeated(x, unused);
    }
    x.what = what == 3 ? kind::choice : kind::sequence;
    std::string source;
    const auto count = 2 + random_.below(2);
    x.inner.resize(count);
    for (auto& inner : x.inner)
      source += (source.empty() ? "(" : what == 3 ? " | " : " ") + rule(inner, depth - 1);
    return source + ")";
  }

  tests::splitmix random_;
  size_t terminals_ = 0;
};

/// Bytes, and tokens of up to three letters.
std::shared_ptr<const model::tokenizer> letters_tokenizer() {
  std::vector<std::string> texts{""};
  for (size_t i = 0; i < texts.size() && texts[i].size() < 5; ++i)
    for (const auto& letter : letters) texts.push_back(texts[i] + letter);
  std::set<std::string> added;
  std::erase_if(texts, [&](const auto& text) {
    return text.size() < 2 || text.size() > 4 || !added.insert(text).second;
  });
  return tests::byte_tokenizer(texts);
}

/// An answer that is drawn token by token; nothing where it has not ended soon.
std::optional<std::string> draw(model::output_constraint& held, const model::tokenizer& text,
                                tests::splitmix& random) {
  std::string answer;
  auto at = held.start();
  for (int n = 0; n < 24; ++n) {
    const auto mask = held.mask(at);
    if (mask->allows(end_token) && random.below(3) == 0) return answer;
    std::vector<token_id> allowed;
    for (token_id t = 3; t < text.vocabulary(); ++t)
      if (mask->allows(t)) allowed.push_back(t);
    if (allowed.empty()) {
      CHECK(mask->allows(end_token));
      return answer;
    }
    const auto token = allowed[random.below(allowed.size())];
    answer += text.token_bytes(token);
    at = held.advance(at, token);
    CHECK(!held.is_dead(at));
  }
  return {};
}

} // namespace

TEST_CASE("answers under random grammars of Lark are read again by the longest match") {
  const auto text = letters_tokenizer();
  const auto trie = std::make_shared<model::token_trie>(text);
  size_t grammars = 0, drawn = 0, compared = 0, taken = 0;
  for (uint64_t seed = 1; seed <= 600; ++seed) {
    CAPTURE(seed);
    maker make{seed};
    const auto made = make.make();
    CAPTURE(made.source);
    const tests::longest_match_reader reader{made.terminals, made.start};
    std::optional<model::output_constraint> held;
    try {
      model::grammar g;
      g.begin(0, model::grammar_of_text(g, made.source, g.end()));
      held.emplace(std::move(g), trie, std::vector<token_id>{end_token}, text->vocabulary());
    } catch (const model::grammar_error&) {
      continue; // a terminal is never left
    }
    ++grammars;
    auto states = tests::states_of_text(made.source);
    for (int i = 0; i < 8; ++i) {
      const auto answer = draw(*held, *text, make.random());
      if (!answer) continue;
      ++drawn;
      CHECK_MESSAGE(reader.takes(*answer), *answer);
      for (int k = 0; k < 6; ++k) {
        const auto other = make.text(*answer);
        const bool expected = reader.takes(other);
        ++compared;
        taken += expected ? 1 : 0;
        CHECK_MESSAGE(tests::takes(states, other) == expected, other);
      }
    }
  }
  CHECK(grammars > 400);
  CHECK(drawn > 2000);
  CHECK(taken > compared / 20);
}

TEST_CASE("masks within counted terminals allow what ends them") {
  const auto text = letters_tokenizer();
  model::grammar g;
  g.begin(0, model::grammar_of_text(
                 g, "start: (A B)+\nA: /a{2,90}/\nB: /[bc]{1,70}/ | \"\u00e9\"\n", g.end()));
  model::output_constraint held{std::move(g), std::make_shared<model::token_trie>(text),
                                std::vector<token_id>{end_token}, text->vocabulary()};
  tests::splitmix random{1};
  auto at = held.start();
  for (int n = 0; n < 200; ++n) {
    CAPTURE(n);
    const auto mask = held.mask(at);
    std::vector<token_id> alive;
    for (token_id t = 3; t < text->vocabulary(); ++t) {
      const bool dead = held.is_dead(held.advance(at, t));
      if (mask->allows(t) == dead) FAIL_CHECK("token " << text->token_bytes(t));
      if (!dead) alive.push_back(t);
    }
    at = held.advance(at, alive[random.below(alive.size())]);
  }
}
