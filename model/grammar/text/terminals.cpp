#include "model/grammar/text/terminals.hpp"

#include "base/utf8.hpp"
#include "model/grammar/regular_expression_parts.hpp"

#include <algorithm>
#include <cctype>
#include <utility>

namespace lamella::model {

namespace {

using kind = grammar_part::kind;

constexpr uint32_t unbounded = grammar::unbounded;
constexpr size_t length_max = regular_expression::bytes_max;

/// A text with a \ before each mark that an expression reads.
std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x80 && std::isalnum(byte) == 0 && c != '_') out += '\\';
    out += c;
  }
  return out;
}

std::string spelt(char32_t c) {
  std::string text;
  append_utf8(text, c);
  return escaped(text);
}

uint32_t characters_of(const std::string& text) {
  return static_cast<uint32_t>(lamella::code_points(text));
}

std::string counts_of(const grammar_part& x) {
  if (x.max == unbounded && x.min <= 1) return x.min == 0 ? "*" : "+";
  if (x.min == 0 && x.max == 1) return "?";
  return "{" + std::to_string(x.min) + ","
         + (x.max == unbounded ? std::string{} : std::to_string(x.max)) + "}";
}

} // namespace

terminals::terminals(const grammar_rules& all, std::string_view source) : source_{source} {
  for (const auto& rule : all.rules) rules_.emplace(rule.name, &rule);
  for (const auto& [name, rule] : rules_)
    if (rule->is_terminal) {
      refuse_loose_alternatives(rule->body);
      names_.try_emplace(body_of(meant(rule->body)), name);
    }
  std::vector<order> found;
  for (const auto& rule : all.rules)
    if (!rule.is_terminal) collect(rule.body, found);
  for (const auto& x : all.ignored) {
    refuse_loose_alternatives(x);
    found.push_back(order_of(x));
  }
  std::sort(found.begin(), found.end());
  for (auto& x : found) ranks_.try_emplace(std::move(x), static_cast<uint32_t>(ranks_.size()));
}

void terminals::collect(const grammar_part& x, std::vector<order>& found) const {
  const bool is_group =
      x.what == kind::sequence || x.what == kind::choice || x.what == kind::repeat;
  if (!is_group && (x.what != kind::reference || rule_of(x).is_terminal))
    found.push_back(order_of(x));
  for (const auto& inner : x.inner) collect(inner, found);
}

/// Lark writes the expressions of a terminal behind each other without groups.
void terminals::refuse_loose_alternatives(const grammar_part& x) const {
  for (const auto& inner : x.inner) {
    refuse_loose_alternatives(inner);
    const auto& sole = meant(inner);
    if (x.what == kind::sequence && x.inner.size() > 1 && sole.what == kind::expression
        && read(sole).has_alternatives)
      fail_at(source_, inner.at,
              "Lark takes the alternatives of an expression beside other parts of a terminal for "
              "those of the whole terminal: write it as /(a|b)/");
  }
}

/// What a terminal is, where it is nothing but a part of it or another one.
const grammar_part& terminals::meant(const grammar_part& x) const {
  const auto* at = &x;
  std::vector<const grammar_rule*> on_the_way;
  for (size_t steps = 0; steps < length_max; ++steps) { // terminals may be defined by themselves
    ++looked_at_;
    if (at->what == kind::reference) {
      const auto* rule = &rule_of(*at);
      const auto known = meant_.find(rule);
      if (known == meant_.end()) on_the_way.push_back(rule);
      at = known != meant_.end() ? known->second : &rule->body;
    } else if ((at->what == kind::sequence || at->what == kind::choice) && at->inner.size() == 1) {
      at = &at->inner[0];
    } else {
      break;
    }
  }
  for (const auto* rule : on_the_way) meant_.emplace(rule, at);
  return *at;
}

const terminals::expression& terminals::read(const grammar_part& x) const {
  const auto [known, is_new] = expressions_.try_emplace(&x);
  if (is_new) {
    looked_at_ += x.text.size();
    const auto parsed = parse_expression(x.text, x.at, source_);
    known->second = {{parsed.longest(), characters_of(x.text), parsed.is_lazy()},
                     parsed.alternatives().size() > 1};
  }
  return known->second;
}

terminals::order terminals::order_of(const grammar_part& x) const {
  const auto& sole = meant(x);
  const auto size = measured(x);
  order made;
  made.is_expression = sole.what != kind::text;
  made.any_case = sole.any_case;
  made.shorter = unbounded - size.longest;
  made.simpler = length_max - std::min(size.length, length_max);
  const auto named = names_.find(body_of(sole));
  const bool is_one = sole.what == kind::text || sole.what == kind::expression;
  if (is_one && named != names_.end())
    made.name = named->second;
  else if (x.what == kind::reference)
    made.name = x.text;
  else
    write(made.name = "__ANON ", sole);
  return made;
}

terminals::measure terminals::measured(const grammar_part& x) const {
  if (x.what == kind::text) return {characters_of(x.text), characters_of(escaped(x.text)), false};
  if (x.what == kind::characters) return {1, 5, false}; // [a-z]
  if (x.what == kind::expression) return read(x).size;
  if (x.what == kind::reference) {
    const auto* rule = &rule_of(x);
    const auto [known, is_new] = measures_.try_emplace(rule, measure{unbounded, 0, false});
    if (is_new) known->second = measured(rule->body);
    return known->second;
  }
  uint64_t together = 0, longest = 0;
  measure made;
  for (const auto& inner : x.inner) {
    const auto one = measured(inner);
    together += one.longest;
    longest = std::max<uint64_t>(longest, one.longest);
    made.length = std::min(made.length + one.length, length_max);
    made.is_lazy |= one.is_lazy;
  }
  if (x.what == kind::choice) together = longest;
  if (x.what == kind::repeat) together *= x.max;
  made.longest = static_cast<uint32_t>(std::min<uint64_t>(together, unbounded));
  if (x.what == kind::choice && x.inner.size() > 1) made.length += x.inner.size() + 3; // (?:a|b)
  if (x.what == kind::repeat) made.length += 4 + counts_of(x).size();
  return made;
}

std::string terminals::expression_of(const grammar_part& x) const {
  std::string made;
  write(made, x);
  if (made.size() > length_max)
    fail_at(source_, x.at,
            "a terminal with *?, +? or ?? has more than " + std::to_string(length_max)
                + " characters");
  return made;
}

/// In the order in which Lark tries alternatives.
std::vector<const grammar_part*> terminals::longest_first(const grammar_part& x) const {
  std::vector<std::pair<measure, const grammar_part*>> measured_ones;
  for (const auto& y : x.inner) measured_ones.emplace_back(measured(y), &y);
  std::stable_sort(measured_ones.begin(), measured_ones.end(), [](const auto& a, const auto& b) {
    return std::tie(b.first.longest, b.first.length) < std::tie(a.first.longest, a.first.length);
  });
  std::vector<const grammar_part*> inner;
  inner.reserve(measured_ones.size());
  for (const auto& [size, y] : measured_ones) inner.push_back(y);
  return inner;
}

/// Up to the length at which it is too long.
void terminals::write(std::string& out, const grammar_part& x) const {
  if (out.size() > length_max) return;
  switch (x.what) {
  case kind::text:
    for (const char c : x.text) {
      const auto byte = static_cast<unsigned char>(c);
      if (x.any_case && byte < 0x80 && std::isalpha(byte) != 0)
        out += {'[', static_cast<char>(std::tolower(byte)), static_cast<char>(std::toupper(byte)),
                ']'};
      else
        out += escaped({c});
    }
    return;
  case kind::characters:
    out += '[';
    for (const auto& [first, last] : x.set.ranges()) out += spelt(first) + "-" + spelt(last);
    out += ']';
    return;
  case kind::expression:
    out += "(?:" + x.text + ")";
    return;
  case kind::reference:
    write(out, rule_of(x).body);
    return;
  case kind::sequence:
    for (const auto& inner : x.inner) write(out, inner);
    return;
  case kind::choice:
  case kind::repeat: {
    const auto all = longest_first(x);
    out += "(?:";
    for (const auto* inner : all) {
      if (inner != all.front()) out += '|';
      write(out, *inner);
    }
    out += ')';
    if (x.what == kind::repeat) out += counts_of(x);
    return;
  }
  }
}

} // namespace lamella::model
