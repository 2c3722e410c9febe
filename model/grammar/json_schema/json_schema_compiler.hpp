/// From a JSON Schema to nodes of a grammar; for json_schema*.cpp.
#pragma once

#include "model/grammar/json_schema/json_grammar.hpp"
#include "model/grammar/json_schema/json_schema_keywords.hpp"
#include "model/grammar/json_schema/json_schema_references.hpp"
#include "model/grammar/json_schema/number_grammar.hpp"
#include "model/grammar/regular_expression.hpp"

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

class json_schema_compiler {
public:
  using node_id = grammar::node_id;

  json_schema_compiler(grammar& g, const json_value& root)
      : grammar_{g}, json_{g}, references_{root} {}

  /// The first node of a value of `schema`, which is at `pointer`. A schema that is met again is a
  /// rule, and so is one that is nested deeply: so recursion is bounded, and every schema is
  /// compiled twice at most.
  node_id value(const json_value& schema, const std::string& pointer, node_id next);

  /// Makes the rules met so far, and those they meet.
  void finish();

private:
  using rule_id = grammar::rule_id;

  /// Schemas compiled within each other; deeper ones are rules. Bounds the stack: the tests compile
  /// on one of 256 KiB.
  static constexpr uint32_t inline_depth_max = 16;
  /// Schemas, members and pieces of pointers looked at.
  static constexpr uint64_t steps_max = 2'000'000;

  /// What schemas together say about an object.
  struct object_members {
    struct property {
      std::string name;
      schema_place value;   ///< no schema: any value
      std::string required; ///< where it is said; empty: the member may be absent
      bool impossible() const { return is_false(value); }
    };
    std::vector<property> properties; ///< in the order of their members
    schema_place others;              ///< of members of other names; no schema: nothing is said
    bool closed() const { return is_false(others); } ///< there are none
    bool silent() const { return properties.empty() && others.schema == nullptr; }
  };

  node_id compiled(const json_value& schema, const std::string& pointer, node_id next);
  node_id of_type(const schema_view& x, json_type type, node_id next);
  rule_id rule_of(const json_value& schema, const std::string& pointer);
  node_id constants(const schema_view& x, node_id next);
  node_id any_of(const schema_view& x, std::string_view keyword, node_id next);
  node_id all_of(const schema_view& x, node_id next);
  node_id number(const schema_view& x, number_form form, node_id next);
  node_id string(const schema_view& x, node_id next);
  /// A call of the rule that `build`, given its end, makes once for all that have this key.
  template <class Build> node_id shared(const std::string& key, const Build& build, node_id next);

  // json_schema_members.cpp
  class part_of_object;
  object_members members_of(const std::vector<schema_view>& schemas);
  static schema_place both(const std::vector<schema_place>& said);

  // json_schema_containers.cpp
  node_id object(const schema_view& x, node_id next);
  node_id array(const schema_view& x, node_id next);
  node_id object_of(const object_members& members, node_id next);
  node_id map_of(const schema_view& x, const object_members& members, node_id next);
  node_id property(const object_members::property& p, node_id next);
  node_id value_at(const schema_place& place, node_id next);

  // json_schema_alternatives.cpp
  struct alternative;
  void check_exclusive(const schema_view& x);
  alternative alternative_of(const schema_place& place);
  bool tell_apart(const std::vector<schema_place>& schemas, bool objects);
  schema_place required_member(const schema_place& object, const std::string& name);
  bool has_own_constants(const schema_place& place, std::unordered_set<std::string>& seen);

  /// The schema behind references.
  schema_place behind_references(schema_place place);
  /// Counts work that was done for the schema at `pointer`; an error beyond the bound.
  void spend(const std::string& pointer, uint64_t steps = 1);

  struct pending_rule {
    rule_id rule;
    schema_place place;
  };

  grammar& grammar_;
  json_grammar json_;
  schema_references references_;
  uint32_t depth_ = 0;
  uint64_t steps_ = 0;
  std::unordered_set<const json_value*> inlined_;
  std::unordered_map<const json_value*, rule_id> rules_;
  std::unordered_map<std::string, rule_id> shared_;
  std::vector<pending_rule> pending_;
};

} // namespace lamella::model
