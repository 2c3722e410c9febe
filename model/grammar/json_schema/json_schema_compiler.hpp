/// From a JSON Schema to nodes of a grammar; for json_schema*.cpp.
#pragma once

#include "model/grammar/json_schema/json_grammar.hpp"
#include "model/grammar/json_schema/json_schema_demands.hpp"
#include "model/grammar/json_schema/json_schema_keywords.hpp"
#include "model/grammar/json_schema/json_schema_references.hpp"
#include "model/grammar/json_schema/number_grammar.hpp"
#include "model/grammar/json_schema/schema_reading.hpp"
#include "model/grammar/regular_expression.hpp"
#include "model/grammar/text_automaton.hpp"

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace lamella::model {

/// No value is possible there.
inline bool is_false(const schema_place& x) {
  return x.schema != nullptr && *x.schema == json_value(false);
}

/// A value is described by demands that hold together. $ref, allOf and the like put more of them
/// on the list, anyOf and the like are a choice between lists, and what is left of each list is
/// about single keywords, by type. So any keyword may stand beside any other.
class json_schema_compiler {
public:
  using node_id = grammar::node_id;

  /// `root`: the document, of which references tell. Throws json_schema_error where its places
  /// cannot be looked at within the bound of the grammar's work.
  json_schema_compiler(grammar& g, const json_value& root, schema_reading reading);

  /// The first node of a value of `schema`, which is at `pointer`.
  node_id value(const json_value& schema, const std::string& pointer, node_id next) {
    return value(demands{{{&schema, pointer}}}, next);
  }
  /// The first node of a value of which all of them hold. A list that is met again is a rule, and
  /// so is one that is nested deeply: so recursion is bounded, and every list is compiled twice at
  /// most.
  node_id value(const demands& all, node_id next) { return value(flat(all), next); }

  /// Makes the rules met so far, and those they meet.
  void finish();

  /// Where no value is possible, if that was met.
  const std::optional<json_schema_error>& conflict() const { return conflict_; }

private:
  using rule_id = grammar::rule_id;
  enum class verdict : uint8_t { no, yes, unknown };
  /// What may be demanded: what surely is, or more than that.
  enum class certainty : uint8_t { sure, narrow };

  /// Lists compiled within each other; deeper ones are rules. Bounds the stack: the tests compile
  /// on one of 256 KiB.
  static constexpr uint32_t inline_depth_max = 10;
  /// Schemas, members and pieces of pointers looked at, for all schemas of one grammar.
  static constexpr uint64_t steps_max = 2'000'000;
  /// Choices that are made again beside others.
  static constexpr uint32_t combinations_max = 200;

  // json_schema.cpp
  node_id value(const flat_demands& lists, node_id next);
  flat_demands flat(const demands& all);
  void unfold(const demand& x, demands& to_do, flat_demands& out);
  std::optional<demands> narrowed(const demands& all);
  node_id compiled(const demands& all, node_id next);
  node_id choice_of(const demands& all, size_t site, node_id next);
  node_id of_types(const demands& all, node_id next);
  node_id of_type(const std::vector<schema_view>& views, type_set types, json_type type,
                  node_id next);
  node_id constants(const demands& all, node_id next);
  node_id literals(const std::vector<const json_value*>& values, const std::string& pointer,
                   node_id next);
  rule_id rule_of(const demands& all, const std::string& key);
  node_id nothing(const schema_place& place, const std::string& why);
  std::optional<type_set> types_said(const demands& all);
  static type_set types_written(const std::vector<schema_view>& views, schema_reading reading);

  // json_schema_choices.cpp
  std::vector<demands> alternatives_of(const demand& x);
  std::vector<demands> one_of(const demand& x);
  std::vector<demands> refuted(const demand& x);
  void refute_own(const schema_view& x, std::vector<demands>& out);
  void refute_list(const schema_view& x, const std::string& keyword, const json_value::array& list,
                   std::vector<demands>& out);
  demands refuted_keyword(const schema_view& x, const std::string& keyword,
                          const json_value& value);
  void refute_constants(const schema_view& x, const json_value::array& values,
                        std::vector<demands>& out);
  bool disjoint(const demands& a, const demands& b, uint32_t depth);
  bool told_apart_by_member(const demands& a, const demands& b, uint32_t depth);
  demand made(const schema_view& x, const std::string& keyword, json_value schema);

  // json_schema_scalars.cpp
  node_id number(const std::vector<schema_view>& views, number_form form, node_id next);
  std::optional<decimal_step> step_of(const std::vector<schema_view>& views, number_form form);
  std::optional<node_id> few_multiples(const decimal_step& step, const number_bounds& bounds,
                                       node_id next);
  node_id multiples_from(int64_t step, node_id next);
  node_id multiples(const schema_view& x, const decimal_step& step, const number_bounds& bounds,
                    node_id next);
  number_bounds bounds_of(const std::vector<schema_view>& views, number_form form);
  node_id string(const std::vector<schema_view>& views, node_id next);
  struct string_demands;
  string_demands strings_of(const std::vector<schema_view>& views);
  text_automaton texts_of(const std::vector<schema_view>& views);
  text_automaton texts_of(const string_demands& all);
  const text_automaton& automaton_of(const schema_view& x, const std::string& expression,
                                     regular_expression::match how);

  // json_schema_objects.cpp
  /// What schemas together say about an object.
  struct object_members {
    struct member {
      std::string name;
      demands value;
      std::string required; ///< where it is said; empty: the member may be absent
    };
    std::vector<member> named; ///< in the order of the members
    bool has_properties = false;
    bool says_others = false; ///< something about members of other names
    uint32_t min = 0, max = grammar::unbounded;
    schema_place min_at;
  };
  node_id object(const std::vector<schema_view>& views, node_id next);
  node_id object_with_other(const std::vector<schema_view>& views, size_t at, node_id next);
  bool is_other_member(const schema_view& x, const std::string& name);
  object_members members_of(const std::vector<schema_view>& views);
  void add_names(const schema_view& x, object_members& out);
  demands member_demands(const std::vector<schema_view>& views, const std::string& name,
                         certainty known = certainty::narrow);
  bool matches_name(const schema_view& x, const std::string& expression, const std::string& name);
  json_value member_needed(const schema_view& x, const std::string& name);
  using matched_views = std::unordered_set<const schema_view*>;
  std::optional<demand> others_of(const schema_view& x, const std::vector<schema_view>& views,
                                  const std::string* name, const matched_views& matched);
  bool closes_unsaid(const object_members& all, const std::vector<schema_view>& views) const;
  std::optional<text_automaton> names_of(const schema_view& x, const json_value& schema);
  struct member_names;
  member_names names_of_others(const object_members& members,
                               const std::vector<schema_view>& views);
  demands value_of_other(const object_members& members, const std::vector<schema_view>& views,
                         const member_names& names, text_automaton::mark mark);
  node_id other_key(const object_members& members, const std::vector<schema_view>& views,
                    node_id next);
  node_id members(const object_members& all, const std::vector<schema_view>& views, node_id close);
  std::vector<node_id> counted_others(const object_members& all,
                                      const std::vector<schema_view>& views, uint32_t limit,
                                      bool bounded, node_id close);
  node_id counted_members(const object_members& all, const std::vector<schema_view>& views,
                          node_id close);

  // json_schema_evaluated.cpp
  using schema_set = std::unordered_set<const json_value*>;
  const schema_set& applied_by(const schema_view& x);
  bool is_evaluated(const schema_view& x, const std::vector<schema_view>& views,
                    const std::string* name, const matched_views& matched);
  std::optional<size_t> evaluated_items(const schema_view& x,
                                        const std::vector<schema_view>& views);

  // json_schema_arrays.cpp
  struct array_items;
  node_id array(const std::vector<schema_view>& views, node_id next);
  array_items items_of(const std::vector<schema_view>& views);
  node_id item(const array_items& all, size_t i, uint32_t matched, node_id next);
  node_id items(const array_items& all, node_id next);
  node_id containing(const array_items& all, node_id next);
  node_id unique_items(const array_items& all, node_id next);
  std::optional<std::vector<const json_value*>> values_of(const demands& all);

  // json_schema_constants.cpp
  verdict holds(const json_value& value, const demands& all, uint32_t depth = 0);
  verdict holds(const json_value& value, const demand& x, uint32_t depth);
  verdict holds_own(const json_value& value, const schema_view& x, uint32_t depth);
  verdict keyword_holds(const json_value& value, const schema_view& x, const std::string& keyword,
                        const json_value& said, uint32_t depth);
  verdict is_one_of(const json_value& value, const schema_view& x, const std::string& keyword);
  verdict string_holds(const std::string& text, const schema_view& x, const std::string& keyword,
                       const json_value& said);
  verdict array_holds(const json_value::array& items, const schema_view& x,
                      const std::string& keyword, const json_value& said, uint32_t depth);
  verdict object_holds(const json_value& value, const schema_view& x, const std::string& keyword,
                       const json_value& said, uint32_t depth);
  verdict some_hold(const json_value& value, const std::vector<demands>& alternatives,
                    uint32_t depth);

  /// A call of the rule that `build`, given its end, makes once for all that have this key.
  node_id shared(const std::string& key, const std::function<node_id(node_id)>& build,
                 node_id next);
  /// Counts work that was done for the schema at `pointer`; an error beyond the bound.
  void spend(const std::string& pointer, uint64_t steps = 1);
  /// The same for a list of so many places below `x`, each with a pointer of its own.
  void spend_on_places(const schema_view& x, uint64_t places);
  /// The same for so many bytes of values, texts or their keys that are gone through.
  void spend_on_bytes(const std::string& pointer, uint64_t bytes);
  /// Counts what it cost to make the automaton, and so what it takes to keep or copy it.
  text_automaton spent(const schema_view& x, text_automaton made);

  struct pending_rule {
    rule_id rule;
    demands all;
  };

  grammar& grammar_;
  json_grammar json_;
  schema_references references_;
  schema_reading reading_;
  uint32_t depth_ = 0, combinations_ = 0;
  std::unordered_set<std::string> inlined_;
  std::unordered_map<std::string, rule_id> rules_;
  std::unordered_map<std::string, rule_id> shared_;
  std::unordered_map<std::string, text_automaton> automata_;
  std::vector<pending_rule> pending_;
  std::deque<json_value> made_; ///< schemas that the document does not have: opposites of keywords
  std::map<std::pair<const json_value*, std::string>, const json_value*> made_of_;
  struct constant_keys {
    std::unordered_set<std::string> exact, as_doubles;
  };
  std::unordered_map<const json_value*, constant_keys> keys_; ///< of const and enum
  std::unordered_map<const json_value*, schema_set> applied_; ///< by schemas with unevaluated…
  std::optional<json_schema_error> conflict_;
};

} // namespace lamella::model
