// Random grammars against a recogniser that tries everything.
#include "model/grammar/text/grammar_text.hpp"

#include "tests/model/grammar/grammar_support.hpp"

#include <doctest/doctest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

using namespace lamella;
using model::grammar;

namespace {

struct part {
  enum class kind { text, characters, sequence, choice, repeat, rule } what = kind::text;
  std::string text{};
  std::vector<part> inner{};
  size_t min = 0, max = 0, number = 0; ///< max 9: any number of times
};

constexpr size_t rules = 4, any = 9;

class maker {
public:
  explicit maker(uint64_t seed) : random_{seed} {}

  /// Of rule `rule`, which may begin with later ones only. `behind`: something was read before.
  part make(size_t rule, int depth, bool behind) {
    const auto kind = random_.below(depth > 0 ? 8 : 3);
    if (kind < 2) return {part::kind::text, one_of({"a", "b", "ab", "ba"})};
    if (kind == 2) return {part::kind::characters, one_of({"[ab]", "[^a]", "[b-c]"})};
    if (kind == 3) {
      const auto first = behind ? 0 : rule + 1;
      if (first >= rules) return {part::kind::text, "c"};
      part x{part::kind::rule};
      x.number = first + random_.below(rules - first);
      return x;
    }
    if (kind == 4) {
      part x{part::kind::repeat, {}, {make(rule, depth - 1, behind)}};
      x.min = random_.below(3);
      x.max = random_.below(2) == 0 ? any : x.min + 1 + random_.below(2);
      return x;
    }
    part x{kind < 7 ? part::kind::sequence : part::kind::choice};
    const auto count = 1 + random_.below(3);
    for (size_t i = 0; i < count; ++i) {
      x.inner.push_back(make(rule, depth - 1, behind));
      if (x.what == part::kind::sequence && x.inner.back().what < part::kind::sequence)
        behind = true;
    }
    return x;
  }

  std::string text() {
    std::string made;
    for (auto n = random_.below(8); n > 0; --n) made += one_of({"a", "b", "c"});
    return made;
  }

private:
  std::string one_of(const std::vector<std::string>& all) { return all[random_.below(all.size())]; }
  tests::splitmix random_;
};

std::string print(const part& x) {
  std::string out;
  switch (x.what) {
  case part::kind::text:
    return '"' + x.text + '"';
  case part::kind::characters:
    return x.text;
  case part::kind::rule:
    return "r" + std::to_string(x.number);
  case part::kind::repeat:
    out = "(" + print(x.inner[0]) + ")";
    if (x.max == any)
      return out + (x.min == 0 ? "*" : x.min == 1 ? "+" : "{" + std::to_string(x.min) + ",}");
    return out + "{" + std::to_string(x.min) + "," + std::to_string(x.max) + "}";
  default:
    for (const auto& inner : x.inner)
      out += (out.empty() ? "(" : x.what == part::kind::choice ? " | " : " ") + print(inner);
    return out + ")";
  }
}

class recogniser {
public:
  recogniser(const std::vector<part>& all, const std::string& text) : all_{all}, text_{text} {}

  bool takes() { return ends(all_[0], 0).contains(text_.size()); }

private:
  std::set<size_t> ends(const part& x, size_t at) {
    switch (x.what) {
    case part::kind::text:
      if (text_.compare(at, x.text.size(), x.text) == 0) return {at + x.text.size()};
      return {};
    case part::kind::characters: {
      if (at == text_.size()) return {};
      const char c = text_[at];
      const bool in = x.text == "[ab]" ? c != 'c' : c != 'a';
      return in ? std::set<size_t>{at + 1} : std::set<size_t>{};
    }
    case part::kind::rule:
      return of_rule(x.number, at);
    case part::kind::sequence: {
      std::set<size_t> now{at};
      for (const auto& inner : x.inner) now = all_ends(inner, now);
      return now;
    }
    case part::kind::choice: {
      std::set<size_t> found;
      for (const auto& inner : x.inner) found.merge(ends(inner, at));
      return found;
    }
    case part::kind::repeat: {
      std::set<size_t> now{at}, found;
      for (size_t times = 0; times <= x.min + 9 && (x.max == any || times <= x.max); ++times) {
        if (times >= x.min) found.insert(now.begin(), now.end());
        now = all_ends(x.inner[0], now);
      }
      return found;
    }
    }
    return {};
  }

  std::set<size_t> of_rule(size_t rule, size_t at) {
    const auto known = known_.find({rule, at});
    if (known != known_.end()) return known->second;
    return known_[{rule, at}] = ends(all_[rule], at);
  }

  std::set<size_t> all_ends(const part& x, const std::set<size_t>& from) {
    std::set<size_t> found;
    for (const auto at : from) found.merge(ends(x, at));
    return found;
  }

  const std::vector<part>& all_;
  const std::string& text_;
  std::map<std::pair<size_t, size_t>, std::set<size_t>> known_;
};

} // namespace

TEST_CASE("random grammars without a lexer take what a recogniser that tries everything takes") {
  size_t compiled = 0, taken = 0, compared = 0;
  for (uint64_t seed = 1; seed <= 400; ++seed) {
    CAPTURE(seed);
    maker make{seed};
    std::vector<part> all;
    for (size_t i = 0; i < rules; ++i) all.push_back(make.make(i, 4, false));
    std::string source = "root ::= r0\n";
    for (size_t i = 0; i < rules; ++i)
      source += "r" + std::to_string(i) + " ::= " + print(all[i]) + "\n";
    CAPTURE(source);
    std::optional<model::grammar_states> states;
    try {
      states.emplace(tests::states_of(
          [&](grammar& g, auto next) { return model::grammar_of_text(g, source, next); }));
    } catch (const model::grammar_text_error& e) {
      // Behind what may be empty, a rule may begin with itself.
      CHECK(std::string{e.what()}.find("begins with itself") != std::string::npos);
      continue;
    } catch (const model::grammar_error&) {
      continue; // it has no text
    }
    ++compiled;
    for (int i = 0; i < 40; ++i) {
      const auto text = make.text();
      const bool expected = recogniser{all, text}.takes();
      ++compared;
      taken += expected ? 1 : 0;
      CHECK_MESSAGE(tests::takes(*states, text) == expected, text);
    }
  }
  CHECK(compiled > 250);
  CHECK(taken > compared / 50);
}
