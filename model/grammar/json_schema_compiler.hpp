/// From a JSON Schema to nodes of a grammar; for json_schema*.cpp.
#pragma once

#include "model/grammar/json_grammar.hpp"
#include "model/grammar/json_schema_keywords.hpp"
#include "model/grammar/number_grammar.hpp"
#include "model/grammar/regular_expression.hpp"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace lamella::model {

class json_schema_compiler {
public:
  using node_id = grammar::node_id;

  json_schema_compiler(grammar& g, const json_value& root) : grammar_{g}, json_{g}, root_{root} {}

  /// The first node of a value of `schema`, which is at `pointer`.
  node_id value(const json_value& schema, const std::string& pointer, node_id next);

  /// Makes the rules of the references met so far.
  void finish();

private:
  /// Members of an object, of all schemas that say something about it.
  struct object_members {
    struct property {
      std::string name;
      const json_value* schema;
      std::string pointer;
    };
    std::vector<property> properties;
    std::set<std::string> required;
    const json_value* others = nullptr; ///< the schema of other members
    std::string others_pointer;
    bool closed = false; ///< there are no others
  };

  node_id of_type(const schema_view& x, json_type type, node_id next);
  node_id reference(const schema_view& x, node_id next);
  node_id constants(const schema_view& x, node_id next);
  node_id any_of(const schema_view& x, std::string_view keyword, node_id next);
  node_id all_of(const schema_view& x, node_id next);
  node_id number(const schema_view& x, number_form form, node_id next);
  node_id string(const schema_view& x, node_id next);

  // json_schema_containers.cpp
  node_id object(const schema_view& x, node_id next);
  node_id array(const schema_view& x, node_id next);
  void add_members(const schema_view& x, object_members& members) const;
  node_id object_of(const schema_view& x, object_members& members, node_id next);
  node_id map_of(const schema_view& x, const object_members& members, node_id next);
  node_id property(const object_members::property& p, node_id next);
  node_id other_members(const object_members& members, node_id behind, node_id close);

  const json_value& target(const schema_view& x) const;
  const json_value& behind_references(const json_value& schema, const std::string& pointer) const;
  void check_exclusive(const schema_view& x) const;
  bool tell_apart(const std::vector<const json_value*>& objects) const;
  bool has_own_constants(const json_value& object, const std::string& member,
                         std::vector<json_value>& seen) const;

  struct pending_rule {
    grammar::rule_id rule;
    const json_value* schema;
    std::string pointer;
  };

  grammar& grammar_;
  json_grammar json_;
  const json_value& root_;
  std::map<std::string, grammar::rule_id> rules_; ///< of references, by pointer
  std::vector<pending_rule> pending_;
};

} // namespace lamella::model
