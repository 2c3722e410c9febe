/// What a lexer knows of the terminals of a grammar.
#pragma once

#include "model/grammar/text/grammar_parts.hpp"

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace lamella::model {

/// Terminals are the rules that are said to be some, what is ignored, and all texts, characters and
/// expressions of other rules. `all` and `source` outlive it.
class terminals {
public:
  /// Throws grammar_text_error.
  terminals(const grammar_rules& all, std::string_view source);

  /// Where two terminals are the same text, the one of the lower rank is meant: a text in quotation
  /// marks before an expression, and of expressions the one that Lark tries first, which is the one
  /// with the longer texts, then the one that is longer itself.
  uint32_t rank_of(const grammar_part& x) const { return ranks_.at(order_of(x)); }

  /// Has it a repeat that comes as few times as possible?
  bool is_lazy(const grammar_part& x) const { return measured(x).is_lazy; }

  /// The whole terminal as one regular expression. Throws grammar_text_error where that is longer
  /// than one may be.
  std::string expression_of(const grammar_part& x) const;

  /// Parts that were followed and bytes of expressions that were read: linear in the grammar.
  uint64_t looked_at() const { return looked_at_; }

private:
  struct measure {
    uint32_t longest = 0; ///< most characters of its texts
    size_t length = 0;    ///< of the expression that Lark makes of it
    bool is_lazy = false;
  };
  struct expression {
    measure size;
    bool has_alternatives = false;
  };
  struct order {
    bool is_expression = false, any_case = false;
    uint32_t shorter = 0; ///< less for longer texts
    size_t simpler = 0;   ///< less for longer expressions
    std::string name;
    auto operator<=>(const order&) const = default;
  };

  const grammar_rule& rule_of(const grammar_part& x) const { return *rules_.at(x.text); }
  const grammar_part& meant(const grammar_part& x) const;
  const expression& read(const grammar_part& x) const;
  measure measured(const grammar_part& x) const;
  order order_of(const grammar_part& x) const;
  std::vector<const grammar_part*> longest_first(const grammar_part& x) const;
  void refuse_loose_alternatives(const grammar_part& x) const;
  void collect(const grammar_part& x, std::vector<order>& found) const;
  void write(std::string& out, const grammar_part& x) const;

  using body = std::tuple<grammar_part::kind, bool, std::string>;
  static body body_of(const grammar_part& x) { return {x.what, x.any_case, x.text}; }

  std::string_view source_;
  std::map<std::string, const grammar_rule*> rules_;
  std::map<body, std::string> names_; ///< of terminals that are one text or expression
  mutable std::map<const grammar_rule*, measure> measures_; ///< of terminals that are rules
  std::map<order, uint32_t> ranks_;
  mutable std::map<const grammar_rule*, const grammar_part*> meant_; ///< by terminals of one part
  mutable std::map<const grammar_part*, expression> expressions_;    ///< each is read once
  mutable uint64_t looked_at_ = 0;
};

} // namespace lamella::model
