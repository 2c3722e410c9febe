/// JSON texts as grammars.
#pragma once

#include "base/json.hpp"
#include "model/grammar/code_points.hpp"
#include "model/grammar/grammar.hpp"

#include <optional>
#include <string>
#include <vector>

namespace lamella::model {

/// White space is where models put it, and no more of it: nothing, one blank, or a line feed with
/// up to 32 blanks, behind brackets, commas and colons and before closing brackets. So an answer
/// cannot run on in white space for ever.
class json_grammar {
public:
  using node_id = grammar::node_id;

  explicit json_grammar(grammar& g) : grammar_{g} {}

  node_id space(node_id next);

  node_id any_value(node_id next);
  node_id any_object(node_id next);
  node_id any_string(node_id next);
  /// Of `min` to `max` characters, however they are spelt.
  node_id string_of(uint32_t min, uint32_t max, node_id next);
  /// The value: its members and items in their order, strings escaped only where they must be.
  node_id literal(const json_value& value, node_id next);

  /// A key that is none of `taken`, quotes included.
  node_id other_key(const std::vector<std::string>& taken, node_id next);

private:
  using rule_id = grammar::rule_id;

  node_id characters(node_id next);
  rule_id character_rule();
  rule_id escape_rule(); ///< of a character that must be escaped, in its shortest form
  rule_id string_rule();
  rule_id object_rule();
  rule_id array_rule();
  rule_id value_rule();

  grammar& grammar_;
  std::optional<rule_id> space_, character_, escape_, string_, object_, array_, value_;
};

} // namespace lamella::model
