#include "model/grammar/text/grammar_rules.hpp"

#include "model/grammar/text/nullable_rules.hpp"
#include "model/grammar/text/terminals.hpp"
#include "model/grammar/text_automaton.hpp"

#include <algorithm>
#include <cctype>
#include <map>
#include <optional>
#include <utility>

namespace lamella::model {

namespace {

using kind = grammar_part::kind;
using node_id = grammar::node_id;

constexpr size_t rules_max = 2'000;

class compiler {
public:
  compiler(grammar& g, grammar_rules rules, std::string_view source)
      : grammar_{g}, all_{std::move(rules)}, source_{source} {}

  node_id compile(node_id next) {
    if (all_.rules.size() > rules_max)
      fail_at(source_, all_.rules.back().at,
              "there are more than " + std::to_string(rules_max) + " rules");
    for (size_t i = 0; i < all_.rules.size(); ++i) {
      const auto& rule = all_.rules[i];
      if (!number_.emplace(rule.name, i).second)
        fail_at(source_, rule.at, "rule " + rule.name + " is defined twice");
    }
    const auto start = number_.find(all_.start);
    if (start == number_.end())
      fail_at(source_, 0, "there is no rule " + all_.start + ", with which texts begin");
    for (auto& rule : all_.rules) {
      know_references(rule.body);
      repeat_instead_of_begin(rule);
    }
    for (const auto& x : all_.ignored) know_references(x);
    find_nullable();
    refuse_left_recursion();
    const auto made_before = grammar_.nodes().size();
    if (all_.has_lexer) terminals_.emplace(all_, source_);
    for (size_t i = 0; i < all_.rules.size(); ++i) ids_.push_back(grammar_.rule());
    if (!all_.ignored.empty()) make_ignored();
    for (size_t i = 0; i < all_.rules.size(); ++i) {
      const auto& rule = all_.rules[i];
      grammar_.begin(ids_[i], rule.is_terminal ? in_terminal(rule.body, grammar_.end())
                                               : part(rule.body, false, grammar_.end()));
    }
    const auto first = behind_terminal(grammar_.call(ids_[start->second], next));
    if (all_.has_lexer) {
      grammar_.are_terminals(made_before);
      grammar_.add_work(terminals_->looked_at());
    }
    return first;
  }

private:
  void know_references(const grammar_part& x) const {
    if (x.what == kind::reference && !number_.contains(x.text))
      fail_at(source_, x.at, "there is no rule " + x.text);
    for (const auto& inner : x.inner) know_references(inner);
  }

  size_t rule_of(const grammar_part& x) const { return number_.at(x.text); }

  // --- rules that begin with themselves

  /// a: a x | y becomes a: y x*.
  static void repeat_instead_of_begin(grammar_rule& rule) {
    auto alternatives = rule.body.what == kind::choice ? std::move(rule.body.inner)
                                                       : std::vector{std::move(rule.body)};
    std::vector<grammar_part> first, again;
    for (auto& x : alternatives) {
      const auto* begin = x.what == kind::sequence && !x.inner.empty() ? &x.inner.front() : &x;
      const bool begins = begin->what == kind::reference && begin->text == rule.name;
      if (!begins) {
        first.push_back(std::move(x));
      } else if (x.what == kind::sequence && x.inner.size() > 1) {
        x.inner.erase(x.inner.begin());
        again.push_back(std::move(x));
      } // else it says of itself that it is itself
    }
    const auto at = rule.at;
    rule.body = {kind::choice, at};
    rule.body.inner = std::move(first);
    if (again.empty()) return;
    grammar_part more{kind::repeat, at};
    more.max = grammar::unbounded;
    more.inner.push_back({kind::choice, at});
    more.inner[0].inner = std::move(again);
    grammar_part both{kind::sequence, at};
    both.inner.push_back(std::move(rule.body));
    both.inner.push_back(std::move(more));
    rule.body = std::move(both);
  }

  bool is_nullable(const grammar_part& x) const {
    const auto inner = [this](const grammar_part& y) { return is_nullable(y); };
    switch (x.what) {
    case kind::text:
      return x.text.empty();
    case kind::characters:
      return false;
    case kind::expression: {
      const auto [known, is_new] = nullable_expressions_.try_emplace(&x, false);
      if (is_new) {
        grammar alone;
        alone.begin(0, expression(alone, x, alone.end()));
        known->second = productive_nodes(alone, {})[alone.first_of(0)];
      }
      return known->second;
    }
    case kind::sequence:
      return std::all_of(x.inner.begin(), x.inner.end(), inner);
    case kind::choice:
      return std::any_of(x.inner.begin(), x.inner.end(), inner);
    case kind::repeat:
      return x.min == 0 || inner(x.inner[0]);
    case kind::reference:
      return nullable_[rule_of(x)];
    }
    return false;
  }

  void find_nullable() {
    auto found = model::find_nullable(all_.rules, number_,
                                      [this](const grammar_part& x) { return is_nullable(x); });
    nullable_ = std::move(found.are);
    grammar_.add_work(found.looked_at);
  }

  /// Rules that a part may begin with.
  void begins_with(const grammar_part& x, std::vector<const grammar_part*>& found) const {
    if (x.what == kind::reference) found.push_back(&x);
    for (const auto& inner : x.inner) {
      begins_with(inner, found);
      if (x.what == kind::sequence && !is_nullable(inner)) return;
    }
  }

  void refuse_left_recursion() const {
    std::vector<std::vector<const grammar_part*>> first(all_.rules.size());
    for (size_t i = 0; i < first.size(); ++i) begins_with(all_.rules[i].body, first[i]);
    enum class seen : uint8_t { no, open, done };
    std::vector<seen> known(first.size(), seen::no);
    std::vector<std::pair<size_t, size_t>> way; // a rule, and which of those it begins with is next
    for (size_t start = 0; start < first.size(); ++start) {
      if (known[start] == seen::no) way.emplace_back(start, 0);
      while (!way.empty()) {
        const auto rule = way.back().first;
        known[rule] = seen::open;
        if (way.back().second == first[rule].size()) {
          known[rule] = seen::done;
          way.pop_back();
          continue;
        }
        const auto* x = first[rule][way.back().second++];
        const auto to = rule_of(*x);
        if (known[to] == seen::open)
          fail_at(source_, x->at,
                  "rule " + x->text
                      + " begins with itself by way of other rules, or behind "
                        "what may be empty: write what comes again as a repetition, such as "
                        "x (\"+\" x)*");
        if (known[to] == seen::no) way.emplace_back(to, 0);
      }
    }
  }

  // --- nodes

  /// What is ignored, any number of times.
  void make_ignored() {
    const auto again = grammar_.choice();
    std::vector<node_id> branches{grammar_.end()};
    for (const auto& x : all_.ignored)
      branches.push_back(in_terminal(x, grammar_.terminal_end(terminals_->rank_of(x), again)));
    grammar_.branch(again, std::move(branches));
    ignored_ = grammar_.rule();
    grammar_.begin(ignored_, again);
  }

  node_id behind_terminal(node_id next) {
    return all_.ignored.empty() ? next : grammar_.call(ignored_, next);
  }

  /// `within`: a terminal.
  node_id part(const grammar_part& x, bool within, node_id next) {
    switch (x.what) {
    case kind::text:
    case kind::characters:
    case kind::expression:
      return within || !all_.has_lexer ? atom(x, next) : terminal(x, next);
    case kind::sequence:
      for (auto i = x.inner.size(); i-- > 0;) next = part(x.inner[i], within, next);
      return next;
    case kind::choice: {
      std::vector<node_id> branches;
      for (const auto& inner : x.inner) branches.push_back(part(inner, within, next));
      return branches.size() == 1 ? branches[0] : grammar_.choice(std::move(branches));
    }
    case kind::repeat:
      return repeat(x, within, next);
    case kind::reference: {
      const auto to = rule_of(x);
      return all_.rules[to].is_terminal && !within ? terminal(x, next)
                                                   : grammar_.call(ids_[to], next);
    }
    }
    return next;
  }

  /// One that a lexer reads, and what is ignored behind it. It reads none of no characters.
  node_id terminal(const grammar_part& x, node_id next) {
    const auto end = grammar_.terminal_end(terminals_->rank_of(x), behind_terminal(next));
    const auto first = in_terminal(x, end);
    return is_nullable(x) ? grammar_.maybe(first, next) : first;
  }

  /// All of a terminal. With a lazy repeat in it, it is what an expression finds, else the longest.
  node_id in_terminal(const grammar_part& x, node_id next) {
    if (x.what == kind::reference || !terminals_->is_lazy(x)) return part(x, true, next);
    try {
      return text_automaton::of_first_matches(
                 parse_expression(terminals_->expression_of(x), x.at, source_))
          .compile(grammar_, spelling::plain, [next](auto) { return next; });
    } catch (const regular_expression_error& e) {
      fail_at(source_, x.at, std::string{"in the expression: "} + e.what());
    } catch (const automaton_error& e) {
      fail_at(source_, x.at,
              std::string{"a terminal with a lazy repeat is too large: "} + e.what());
    }
  }

  node_id repeat(const grammar_part& x, bool within, node_id next) {
    const auto& body = x.inner[0];
    if (x.max == 1)
      return x.min == 1 ? part(body, within, next) : grammar_.maybe(part(body, within, next), next);
    if (x.max == grammar::unbounded && x.min <= 1) {
      const auto again = grammar_.choice();
      const auto once = part(body, within, again);
      grammar_.branch(again, {once, next});
      return x.min == 0 ? again : once;
    }
    const auto rule = grammar_.rule();
    grammar_.begin(rule, part(body, within, grammar_.end()));
    return grammar_.repeat(rule, x.min, x.max, next);
  }

  node_id expression(grammar& g, const grammar_part& x, node_id next) const {
    try {
      return parse_expression(x.text, x.at, source_)
          .compile(g, regular_expression::match::whole, spelling::plain, next);
    } catch (const regular_expression_error& e) {
      fail_at(source_, x.at, std::string{"in the expression: "} + e.what());
    }
  }

  node_id atom(const grammar_part& x, node_id next) {
    if (x.what == kind::characters) return one_of(grammar_, x.set, spelling::plain, next);
    if (x.what == kind::expression) return expression(grammar_, x, next);
    if (!x.any_case) return grammar_.text(x.text, next);
    for (auto i = x.text.size(); i-- > 0;) {
      const auto c = static_cast<unsigned char>(x.text[i]);
      byte_set set;
      set.set(c);
      if (c < 0x80)
        set.set(static_cast<size_t>(std::tolower(c))).set(static_cast<size_t>(std::toupper(c)));
      next = grammar_.bytes(set, next);
    }
    return next;
  }

  grammar& grammar_;
  grammar_rules all_;
  std::string_view source_;
  std::map<std::string, size_t> number_;
  std::vector<bool> nullable_;
  mutable std::map<const grammar_part*, bool> nullable_expressions_;
  std::vector<grammar::rule_id> ids_;
  std::optional<terminals> terminals_; ///< none: there is no lexer
  grammar::rule_id ignored_ = 0;
};

} // namespace

node_id compile_rules(grammar& g, grammar_rules rules, std::string_view source, node_id next) {
  return compiler{g, std::move(rules), source}.compile(next);
}

} // namespace lamella::model
