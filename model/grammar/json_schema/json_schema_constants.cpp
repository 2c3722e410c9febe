// Whether a value of an enumeration is one that schemas take. `unknown` where that depends on how
// readers read it, or on what is not decided here.
#include "model/grammar/json_schema/json_schema_compiler.hpp"
#include "model/grammar/json_schema/string_formats.hpp"

#include "base/utf8.hpp"

#include <algorithm>
#include <cmath>

namespace lamella::model {

using part = demand::part;

namespace {

constexpr uint32_t depth_max = 32;

} // namespace

json_schema_compiler::verdict json_schema_compiler::holds(const json_value& value,
                                                          const demands& all, uint32_t depth) {
  auto result = verdict::yes;
  for (const auto& x : all) {
    const auto one = holds(value, x, depth);
    if (one == verdict::no) return one;
    if (one == verdict::unknown) result = one;
  }
  return result;
}

/// Does one list hold at least?
json_schema_compiler::verdict
json_schema_compiler::some_hold(const json_value& value, const std::vector<demands>& alternatives,
                                uint32_t depth) {
  auto result = verdict::no;
  for (const auto& way : alternatives) {
    const auto one = holds(value, way, depth);
    if (one == verdict::yes) return one;
    if (one == verdict::unknown) result = one;
  }
  return result;
}

json_schema_compiler::verdict json_schema_compiler::holds(const json_value& value, const demand& x,
                                                          uint32_t depth) {
  spend(x.place.pointer);
  if (depth > depth_max) return verdict::unknown;
  if (x.what == part::refuted) {
    const auto whole = holds(value, demand{x.place, part::whole}, depth + 1);
    return whole == verdict::yes  ? verdict::no
           : whole == verdict::no ? verdict::yes
                                  : verdict::unknown;
  }
  if (x.what == part::one_of) {
    const schema_view view{*x.place.schema, x.place.pointer};
    const auto& schemas = *view.array("oneOf");
    size_t yes = 0, unknown = 0;
    for (size_t i = 0; i < schemas.size(); ++i) {
      const auto one = holds(
          value, demand{{&schemas[i], view.below("oneOf") + "/" + std::to_string(i)}}, depth + 1);
      yes += one == verdict::yes ? 1 : 0;
      unknown += one == verdict::unknown ? 1 : 0;
    }
    if (yes > 1 || (yes == 0 && unknown == 0)) return verdict::no;
    return unknown > 0 ? verdict::unknown : verdict::yes;
  }
  if (x.what == part::whole) {
    if (const auto* any = x.place.schema->get_if<bool>()) return *any ? verdict::yes : verdict::no;
    demands to_do;
    flat_demands out;
    unfold(x, to_do, out);
    to_do.insert(to_do.end(), out.all.begin(), out.all.end());
    return holds(value, to_do, depth + 1);
  }
  if (x.what == part::own)
    return holds_own(value, schema_view{*x.place.schema, x.place.pointer}, depth);
  return some_hold(value, alternatives_of(x), depth + 1);
}

json_schema_compiler::verdict
json_schema_compiler::holds_own(const json_value& value, const schema_view& x, uint32_t depth) {
  auto result = verdict::yes;
  for (const auto& [keyword, said] : *x.schema().get_if<json_value::object>()) {
    if (!is_own_keyword(keyword)) continue;
    const auto one = keyword_holds(value, x, keyword, said, depth);
    if (one == verdict::no) return one;
    if (one == verdict::unknown) result = one;
  }
  return result;
}

json_schema_compiler::verdict json_schema_compiler::keyword_holds(const json_value& value,
                                                                  const schema_view& x,
                                                                  const std::string& keyword,
                                                                  const json_value& said,
                                                                  uint32_t depth) {
  const auto is = [](bool yes) { return yes ? verdict::yes : verdict::no; };
  if (keyword == "type") {
    const auto type = type_of(value);
    const bool is_excluded = type == json_type::integer && x.has(no_integers);
    return is(is_among(type, x.types()) && !is_excluded);
  }
  if (keyword == "const" || keyword == "enum") return is_one_of(value, x, keyword);
  if (const auto* text = value.get_if<std::string>()) return string_holds(*text, x, keyword, said);
  if (const auto* items = value.get_if<json_value::array>())
    return array_holds(*items, x, keyword, said, depth);
  if (value.get_if<json_value::object>() != nullptr)
    return object_holds(value, x, keyword, said, depth);
  if (value.is_null() || value.get_if<bool>() != nullptr) return verdict::yes;
  const auto number = number_of(value), bound = number_of(said);
  constexpr double exact_max = 9e15;
  const auto is_true = [&](const char* other) {
    const auto* flag = x.find(other);
    return flag != nullptr && *flag == json_value(true);
  };
  if (keyword == "minimum" || keyword == "maximum" || keyword == "exclusiveMinimum"
      || keyword == "exclusiveMaximum" || keyword == "multipleOf") {
    if (said.get_if<bool>() != nullptr) return verdict::yes;
    if (!number || !bound || std::abs(*number) > exact_max || std::abs(*bound) > exact_max)
      return verdict::unknown;
    if (keyword == "minimum")
      return is(is_true("exclusiveMinimum") ? *number > *bound : *number >= *bound);
    if (keyword == "maximum")
      return is(is_true("exclusiveMaximum") ? *number < *bound : *number <= *bound);
    if (keyword == "exclusiveMinimum") return is(*number > *bound);
    if (keyword == "exclusiveMaximum") return is(*number < *bound);
    const bool whole = *number == std::trunc(*number) && *bound == std::trunc(*bound);
    return whole && *bound > 0 ? is(std::fmod(*number, *bound) == 0) : verdict::unknown;
  }
  return verdict::yes;
}

/// Equal however numbers are read, in one way of reading them, or in none.
json_schema_compiler::verdict json_schema_compiler::is_one_of(const json_value& value,
                                                              const schema_view& x,
                                                              const std::string& keyword) {
  const auto* said = x.find(keyword);
  const auto key_of = [&](const json_value& one, number_reading how) {
    auto key = value_key(one, how);
    spend_on_bytes(x.pointer(), key.size());
    return key;
  };
  const auto [known, is_new] = keys_.try_emplace(said);
  auto& [exact, as_doubles] = known->second;
  if (is_new) {
    const auto add = [&](const json_value& one) {
      exact.insert(key_of(one, number_reading::exact));
      as_doubles.insert(key_of(one, number_reading::as_doubles));
    };
    if (keyword == "const")
      add(*said);
    else
      for (const auto& one : *x.array("enum")) add(one);
  }
  if (exact.contains(key_of(value, number_reading::exact))) return verdict::yes;
  const bool is_near = as_doubles.contains(key_of(value, number_reading::as_doubles));
  return is_near ? verdict::unknown : verdict::no;
}

json_schema_compiler::verdict json_schema_compiler::string_holds(const std::string& text,
                                                                 const schema_view& x,
                                                                 const std::string& keyword,
                                                                 const json_value& said) {
  const auto is = [](bool yes) { return yes ? verdict::yes : verdict::no; };
  using match = regular_expression::match;
  spend_on_bytes(x.pointer(), text.size());
  if (keyword == "minLength") return is(lamella::code_points(text) >= *x.count(keyword));
  if (keyword == "maxLength") return is(lamella::code_points(text) <= *x.count(keyword));
  if (keyword == "pattern")
    return is(automaton_of(x, x.text(keyword).value_or(""), match::somewhere).matches(text));
  if (keyword == not_pattern)
    return is(!automaton_of(x, x.text(keyword).value_or(""), match::somewhere).matches(text));
  if (keyword == not_among) {
    const auto& texts = *said.get_if<json_value::array>();
    spend_on_bytes(x.pointer(), texts.size());
    return is(std::find(texts.begin(), texts.end(), json_value(text)) == texts.end());
  }
  if (keyword != "format" || !is_format(x.text(keyword).value_or(""))) return verdict::yes;
  const auto expression = format_expression(*x.text(keyword));
  const bool fits =
      !expression.empty() && automaton_of(x, std::string(expression), match::whole).matches(text);
  return fits ? verdict::yes : verdict::unknown; // of those that are not written, too
}

json_schema_compiler::verdict json_schema_compiler::array_holds(const json_value::array& items,
                                                                const schema_view& x,
                                                                const std::string& keyword,
                                                                const json_value& said,
                                                                uint32_t depth) {
  const auto is = [](bool yes) { return yes ? verdict::yes : verdict::no; };
  if (keyword == "minItems") return is(items.size() >= *x.count(keyword));
  if (keyword == "maxItems") return is(items.size() <= *x.count(keyword));
  if (keyword == "uniqueItems") {
    if (!(said == json_value(true))) return verdict::yes;
    std::unordered_set<std::string> keys;
    for (const auto& item : items) {
      const auto [key, is_new] = keys.insert(value_key(item, number_reading::as_doubles));
      if (!is_new) return verdict::no;
      spend_on_bytes(x.pointer(), 16 + key->size());
    }
    return verdict::yes;
  }
  const auto all_of = [&](size_t from) {
    auto result = verdict::yes;
    for (size_t i = from; i < items.size(); ++i) {
      const auto one = holds(items[i], demand{{&said, x.below(keyword)}}, depth + 1);
      if (one == verdict::no) return one;
      if (one == verdict::unknown) result = one;
    }
    return result;
  };
  const auto* list = said.get_if<json_value::array>();
  if (keyword == "prefixItems" || (keyword == "items" && list != nullptr)) {
    auto result = verdict::yes;
    for (size_t i = 0; list != nullptr && i < std::min(items.size(), list->size()); ++i) {
      const auto one = holds(
          items[i], demand{{&(*list)[i], x.below(keyword) + "/" + std::to_string(i)}}, depth + 1);
      if (one == verdict::no) return one;
      if (one == verdict::unknown) result = one;
    }
    return result;
  }
  if (keyword == "items") {
    const auto* first = x.find("prefixItems");
    const auto* named = first != nullptr ? first->get_if<json_value::array>() : nullptr;
    return all_of(named != nullptr ? named->size() : 0);
  }
  return items.empty() && keyword != "contains" ? verdict::yes : verdict::unknown;
}

json_schema_compiler::verdict json_schema_compiler::object_holds(const json_value& value,
                                                                 const schema_view& x,
                                                                 const std::string& keyword,
                                                                 const json_value& said,
                                                                 uint32_t depth) {
  const auto is = [](bool yes) { return yes ? verdict::yes : verdict::no; };
  const auto& members = *value.get_if<json_value::object>();
  if (keyword == "minProperties") return is(members.size() >= *x.count(keyword));
  if (keyword == "maxProperties") return is(members.size() <= *x.count(keyword));
  if (keyword == "required") {
    const auto* names = said.get_if<json_value::array>();
    if (names != nullptr) spend_on_bytes(x.pointer(), names->size() * members.size());
    return is(names != nullptr && std::all_of(names->begin(), names->end(), [&](const auto& name) {
                const auto* text = name.template get_if<std::string>();
                return text != nullptr && value.find(*text) != nullptr;
              }));
  }
  if (keyword == other_member) {
    auto result = verdict::no;
    for (const auto& [name, member] : members) {
      if (!is_other_member(x, name)) continue;
      const auto* allowed = said.find("value");
      if (allowed == nullptr) return verdict::yes;
      const auto one = holds(member, demand{{allowed, x.pointer()}}, depth + 1);
      if (one == verdict::no) return verdict::yes;
      if (one == verdict::unknown) result = one;
    }
    return result;
  }
  if (keyword == "unevaluatedProperties") return members.empty() ? verdict::yes : verdict::unknown;
  // All of the others are about single members: they are looked at together, at the first one.
  const std::vector<schema_view> alone{x};
  auto result = verdict::yes;
  for (const auto& [name, member] : members) {
    const auto one = holds(member, member_demands(alone, name), depth + 1);
    if (one == verdict::no && !x.has("unevaluatedProperties")) return one;
    if (one != verdict::yes) result = verdict::unknown;
  }
  return result;
}

} // namespace lamella::model
