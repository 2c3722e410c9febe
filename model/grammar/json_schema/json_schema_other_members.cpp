// Members that have no schema of their own: the automaton of a name tells which patterns it has,
// and so what must hold of the value.
#include "model/grammar/json_schema/json_schema_compiler.hpp"

namespace lamella::model {

using node_id = grammar::node_id;
using part = demand::part;

/// Names of members that have no schema of their own, as automata.
struct json_schema_compiler::member_names {
  struct pattern {
    const schema_view* view;
    demand value;
  };
  std::vector<pattern> patterns;
  std::vector<text_automaton> automata; ///< of the patterns, and then of what all names must be
};

json_schema_compiler::member_names
json_schema_compiler::names_of_others(const object_members& members,
                                      const std::vector<schema_view>& views) {
  member_names out;
  for (const auto& x : views)
    if (const auto* all = x.object("patternProperties"))
      for (const auto& [expression, schema] : *all) {
        out.patterns.push_back(
            {&x, {{&schema, x.below("patternProperties") + "/" + pointer_part(expression)}}});
        out.automata.push_back(automaton_of(x, expression, regular_expression::match::somewhere));
      }
  for (const auto& x : views)
    if (const auto* schema = x.find("propertyNames"))
      if (auto set = names_of(x, *schema)) out.automata.push_back(std::move(*set));
  if (out.automata.empty() || members.named.empty()) return out;
  std::vector<std::string> taken;
  for (const auto& m : members.named) taken.push_back(m.name);
  out.automata.push_back(text_automaton::of_texts(taken).complement());
  return out;
}

/// What must hold of a member whose name has these patterns.
demands json_schema_compiler::value_of_other(const object_members& members,
                                             const std::vector<schema_view>& views,
                                             const member_names& names, text_automaton::mark mark) {
  static const json_value never{false};
  demands all;
  matched_views matched;
  for (size_t i = 0; i < names.patterns.size(); ++i)
    if ((mark >> i & 1) != 0) {
      all.push_back(names.patterns[i].value);
      matched.insert(names.patterns[i].view);
    }
  bool said =
      !matched.empty() || reading_ == schema_reading::standard || !closes_unsaid(members, views);
  for (const auto& x : views)
    if (!matched.contains(&x))
      if (const auto others = others_of(x, views, nullptr, matched)) {
        all.push_back(*others);
        said = true;
      }
  if (!said) all.push_back({{&never, views[0].pointer()}});
  return all;
}

/// The key of a member that has no name of its own, and its value; behind it comes `next`.
node_id json_schema_compiler::other_key(const object_members& members,
                                        const std::vector<schema_view>& views, node_id next) {
  const auto behind_key = [&](const demands& all) {
    return grammar_.text(":", json_.space(value(all, next)));
  };
  try {
    const auto names = names_of_others(members, views);
    if (names.automata.empty()) {
      std::vector<std::string> taken;
      for (const auto& m : members.named) taken.push_back(m.name);
      return json_.other_key(taken, behind_key(value_of_other(members, views, names, 0)));
    }
    const auto count = names.patterns.size();
    const auto needed = ((text_automaton::mark{1} << (names.automata.size() - count)) - 1) << count;
    constexpr auto is_key = text_automaton::mark{1} << 63;
    const auto all = spent(views[0], text_automaton::product(names.automata));
    const auto keys = all.marked([&](auto mark) {
      return (mark & needed) == needed ? (mark & ~needed) | is_key : text_automaton::mark{0};
    });
    return grammar_.text("\"", keys.compile(grammar_, spelling::json, [&](auto mark) {
      return grammar_.text("\"", behind_key(value_of_other(members, views, names, mark & ~is_key)));
    }));
  } catch (const automaton_error& e) {
    throw json_schema_error(views[0].pointer(), std::string{"has names of members that cannot be "
                                                            "told apart: "}
                                                    + e.what());
  }
}

/// Does nothing say that there may be others, beside patterns?
bool json_schema_compiler::closes_unsaid(const object_members& all,
                                         const std::vector<schema_view>& views) const {
  bool has_patterns = false;
  for (const auto& x : views) has_patterns = has_patterns || x.has("patternProperties");
  return all.has_properties || has_patterns;
}

/// The names that a schema of names takes; nothing: all.
std::optional<text_automaton> json_schema_compiler::names_of(const schema_view& x,
                                                             const json_value& schema) {
  const auto pointer = x.below("propertyNames");
  const auto lists = flat({{{&schema, pointer}}});
  if (lists.impossible.schema != nullptr) return text_automaton::of_texts({});
  std::vector<schema_view> views;
  for (const auto& d : lists.all) {
    if (d.what != part::own)
      x.fail("propertyNames", "is only supported with keywords of strings, not with anyOf, oneOf, "
                              "if and not");
    views.emplace_back(*d.place.schema, d.place.pointer);
  }
  if (const auto types = types_said(lists.all); types && !(*types)[bit_of(json_type::string)])
    return text_automaton::of_texts({});
  if (const auto values = values_of(lists.all)) {
    std::vector<std::string> texts;
    for (const auto* value : *values)
      if (const auto* text = value->get_if<std::string>()) texts.push_back(*text);
    return text_automaton::of_texts(texts);
  }
  return texts_of(views);
}

} // namespace lamella::model
