// Choices between lists of demands. oneOf is a choice where its alternatives exclude each other;
// where they may not, those beside the one that holds are refuted.
#include "model/grammar/json_schema/json_schema_compiler.hpp"
#include "model/grammar/json_schema/string_formats.hpp"

#include <algorithm>

namespace lamella::model {

using part = demand::part;

namespace {

[[noreturn]] void fail_refuted(const schema_view& x, const std::string& keyword) {
  x.fail(keyword, "is not supported where it must not hold: within not, if, or a oneOf whose "
                  "alternatives may hold together");
}

} // namespace

std::vector<demands> json_schema_compiler::alternatives_of(const demand& x) {
  if (x.what == part::refuted) return refuted(x);
  if (x.what == part::one_of) return one_of(x);
  const schema_view view{*x.place.schema, x.place.pointer};
  std::vector<demands> ways;
  const auto place = [&](const char* keyword) {
    return schema_place{view.find(keyword), view.below(keyword)};
  };
  if (x.what == part::any_of) {
    const auto& schemas = *view.array("anyOf");
    spend_on_places(view, schemas.size());
    for (size_t i = 0; i < schemas.size(); ++i)
      ways.push_back({{{&schemas[i], view.below("anyOf") + "/" + std::to_string(i)}}});
  } else if (x.what == part::conditional) {
    ways.push_back({{place("if")}});
    if (view.has("then")) ways[0].push_back({place("then")});
    ways.push_back({{place("if"), part::refuted}});
    if (view.has("else")) ways[1].push_back({place("else")});
  } else { // dependent
    const auto& [name, schema] = (*view.object(x.keyword))[x.index % demand::members_max];
    json_value::object absent, there;
    absent.emplace_back("properties", json_value::object{{name, json_value(false)}});
    json_value::array names{json_value(name)};
    const auto* listed = schema.get_if<json_value::array>();
    if (listed != nullptr) names.insert(names.end(), listed->begin(), listed->end());
    there.emplace_back("type", "object");
    there.emplace_back("required", std::move(names));
    const auto key = std::string(x.keyword) + "/" + name;
    ways.push_back({made(view, key + " absent", json_value(std::move(absent)))});
    ways.push_back({made(view, key + " there", json_value(std::move(there)))});
    if (listed == nullptr)
      ways[1].push_back({{&schema, view.below(x.keyword) + "/" + pointer_part(name)}});
  }
  return ways;
}

demand json_schema_compiler::made(const schema_view& x, const std::string& keyword,
                                  json_value schema) {
  auto& known = made_of_[{&x.schema(), keyword}];
  if (known == nullptr) {
    spend(x.pointer());
    made_.push_back(std::move(schema));
    known = &made_.back();
  }
  return {{known, x.pointer()}};
}

std::vector<demands> json_schema_compiler::one_of(const demand& x) {
  const schema_view view{*x.place.schema, x.place.pointer};
  const auto& schemas = *view.array("oneOf");
  spend_on_places(view, schemas.size());
  std::vector<schema_place> places;
  std::vector<flat_demands> lists;
  for (size_t i = 0; i < schemas.size(); ++i) {
    places.push_back({&schemas[i], view.below("oneOf") + "/" + std::to_string(i)});
    lists.push_back(flat({{places[i]}}));
  }
  std::vector<demands> ways;
  for (size_t i = 0; i < schemas.size(); ++i) {
    if (lists[i].impossible.schema != nullptr) continue;
    auto& way = ways.emplace_back(demands{{places[i]}});
    for (size_t j = 0; j < schemas.size(); ++j) {
      if (j == i || lists[j].impossible.schema != nullptr) continue;
      spend(view.pointer());
      if (!disjoint(lists[i].all, lists[j].all, 3)) way.push_back({places[j], part::refuted});
    }
  }
  return ways;
}

// --- opposites -----------------------------------------------------------------------------------

/// Each way in which the schema does not hold.
std::vector<demands> json_schema_compiler::refuted(const demand& x) {
  if (const auto* any = x.place.schema->get_if<bool>())
    return *any ? std::vector<demands>{} : std::vector<demands>{{}};
  const schema_view view{*x.place.schema, x.place.pointer};
  std::vector<demands> ways;
  const auto at = [&](const char* keyword) {
    return schema_place{view.find(keyword), view.below(keyword)};
  };
  const auto each = [&](const char* keyword) {
    std::vector<schema_place> places;
    const auto& schemas = *view.array(keyword);
    spend_on_places(view, schemas.size());
    for (size_t i = 0; i < schemas.size(); ++i)
      places.push_back({&schemas[i], view.below(keyword) + "/" + std::to_string(i)});
    return places;
  };
  for (const auto& place : references_.targets(view)) ways.push_back({{place, part::refuted}});
  if (view.has("allOf"))
    for (const auto& place : each("allOf")) ways.push_back({{place, part::refuted}});
  for (const auto* keyword : {"anyOf", "oneOf"}) {
    if (!view.has(keyword)) continue;
    demands none;
    const auto places = each(keyword);
    for (const auto& place : places) none.push_back({place, part::refuted});
    ways.push_back(std::move(none));
    if (*keyword == 'o') spend_on_places(view, places.size() * places.size());
    for (size_t i = 0; i < places.size() && *keyword == 'o'; ++i)
      for (size_t j = i + 1; j < places.size(); ++j) ways.push_back({{places[i]}, {places[j]}});
  }
  if (view.has("not")) ways.push_back({{at("not")}});
  if (view.has("if") && view.has("then")) ways.push_back({{at("if")}, {at("then"), part::refuted}});
  if (view.has("if") && view.has("else"))
    ways.push_back({{at("if"), part::refuted}, {at("else"), part::refuted}});
  for (const auto* keyword : {"dependentRequired", "dependentSchemas", "dependencies"})
    if (const auto* members = view.object(keyword); members != nullptr && !members->empty())
      fail_refuted(view, keyword);
  refute_own(view, ways);
  return ways;
}

namespace {

json_value::object only(json_value::object members) { return members; }

/// Is it flat enough, and of the resource around it?
bool may_be_copied(const json_value& schema, uint32_t depth) {
  if (const auto* items = schema.get_if<json_value::array>())
    return depth > 0 && std::all_of(items->begin(), items->end(), [&](const auto& x) {
             return may_be_copied(x, depth - 1);
           });
  const auto* members = schema.get_if<json_value::object>();
  return members == nullptr
         || (depth > 0 && schema.find("$id") == nullptr && schema.find("id") == nullptr
             && std::all_of(members->begin(), members->end(),
                            [&](const auto& x) { return may_be_copied(x.second, depth - 1); }));
}

/// Values of these types, one at least.
json_value::object only_types(type_set types) {
  static constexpr const char* names[] = {"object",  "array",   "string", "number",
                                          "integer", "boolean", "null"};
  json_value::array list;
  for (size_t i = 0; i < types_count; ++i)
    if (types[i]) list.emplace_back(names[i]);
  json_value::object schema{{"type", std::move(list)}};
  if (types[bit_of(json_type::number)] && !types[bit_of(json_type::integer)])
    schema.emplace_back(std::string(no_integers), json_value(true));
  return schema;
}

} // namespace

void json_schema_compiler::refute_own(const schema_view& x, std::vector<demands>& out) {
  for (const auto& [keyword, value] : *x.schema().get_if<json_value::object>()) {
    if (!is_own_keyword(keyword)) continue;
    if (keyword == "type") {
      if (const auto types = ~types_of(x); types.any())
        out.push_back({made(x, "not type", only_types(types))});
    } else if (keyword == "enum") {
      refute_constants(x, *x.array("enum"), out);
    } else if (keyword == "const") {
      refute_constants(x, {value}, out);
    } else if (keyword == "required") {
      const auto* names = value.get_if<json_value::array>();
      if (names == nullptr) x.fail("required", "must be an array of names");
      for (const auto& name : *names)
        if (const auto* text = name.get_if<std::string>()) {
          auto schema = only({{"type", "object"}});
          schema.emplace_back("properties", only({{*text, json_value(false)}}));
          out.push_back({made(x, "not required " + *text, std::move(schema))});
        }
    } else if (keyword == "properties") {
      for (const auto& [name, member] : *x.object("properties")) {
        if (takes_anything(member)) continue;
        auto schema = only({{"type", "object"}, {"required", json_value::array{name}}});
        if (!may_be_copied(member, 32))
          x.fail("properties", "is too deep, or has a resource of its own, where it must not hold");
        schema.emplace_back("properties", only({{name, json_value(only({{"not", member}}))}}));
        out.push_back({made(x, "not property " + name, std::move(schema))});
      }
    } else if (const auto* list = value.get_if<json_value::array>();
               keyword == "prefixItems" || (keyword == "items" && list != nullptr)) {
      refute_list(x, keyword, *x.array(keyword), out);
    } else if (keyword == "patternProperties") {
      for (const auto& [pattern, member] : *x.object(keyword)) {
        if (takes_anything(member)) continue;
        if (!may_be_copied(member, 32)) fail_refuted(x, keyword);
        auto said = only({{"pattern", json_value(pattern)}, {"value", member}});
        auto schema = only({{"type", "object"}});
        schema.emplace_back(std::string(other_member), std::move(said));
        out.push_back({made(x, "not pattern " + pattern, std::move(schema))});
      }
    } else {
      out.push_back(refuted_keyword(x, keyword, value));
      if (out.back().empty()) out.pop_back(); // it always holds
    }
  }
}

/// One of the first items is there, and is not what it must be.
void json_schema_compiler::refute_list(const schema_view& x, const std::string& keyword,
                                       const json_value::array& list, std::vector<demands>& out) {
  spend_on_places(x, list.size() * list.size()); // each way has those before it
  for (size_t i = 0; i < list.size(); ++i) {
    if (takes_anything(list[i])) continue;
    if (!may_be_copied(list[i], 32)) fail_refuted(x, keyword);
    json_value::array first(i, json_value(true));
    first.emplace_back(only({{"not", list[i]}}));
    auto schema = only({{"type", "array"}});
    schema.emplace_back("minItems", json_value(static_cast<int64_t>(i + 1)));
    schema.emplace_back("prefixItems", std::move(first));
    out.push_back({made(x, "not item " + std::to_string(i), std::move(schema))});
  }
}

/// One way in which the keyword does not hold; empty: there is none.
demands json_schema_compiler::refuted_keyword(const schema_view& x, const std::string& keyword,
                                              const json_value& value) {
  const auto with = [&](const char* type, std::string_view other, json_value bound) {
    auto schema = only({{"type", type}});
    schema.emplace_back(std::string(other), std::move(bound));
    return demands{made(x, "not " + keyword, std::move(schema))};
  };
  const auto flipped = [&](const char* type, const char* other, int64_t step) {
    const int64_t count = *x.count(keyword);
    return count + step < 0 ? demands{} : with(type, other, json_value(count + step));
  };
  if (keyword == "minLength") return flipped("string", "maxLength", -1);
  if (keyword == "maxLength") return flipped("string", "minLength", 1);
  if (keyword == "minItems") return flipped("array", "maxItems", -1);
  if (keyword == "maxItems") return flipped("array", "minItems", 1);
  if (keyword == "minProperties") return flipped("object", "maxProperties", -1);
  if (keyword == "maxProperties") return flipped("object", "minProperties", 1);
  const bool old = x.has("exclusiveMinimum") && x.find("exclusiveMinimum")->get_if<bool>();
  const bool old_most = x.has("exclusiveMaximum") && x.find("exclusiveMaximum")->get_if<bool>();
  if (keyword == "minimum" && !old) return with("number", "exclusiveMaximum", value);
  if (keyword == "maximum" && !old_most) return with("number", "exclusiveMinimum", value);
  if (keyword == "exclusiveMinimum" && !old) return with("number", "maximum", value);
  if (keyword == "exclusiveMaximum" && !old_most) return with("number", "minimum", value);
  if (keyword == "pattern") return with("string", not_pattern, value);
  if (keyword == not_pattern) return with("string", "pattern", value);
  const bool copied = may_be_copied(value, 32);
  if (keyword == "items" && value.get_if<json_value::array>() == nullptr && !x.has("prefixItems")
      && !takes_anything(value) && copied)
    return with("array", "contains", json_value(only({{"not", value}})));
  if (keyword == "contains" && !x.has("minContains") && !x.has("maxContains") && copied)
    return with("array", "items", json_value(only({{"not", value}})));
  if (keyword == "uniqueItems" && value == json_value(false)) return {};
  if ((keyword == "items" || keyword == "additionalProperties") && takes_anything(value)) return {};
  if (keyword == "propertyNames" && copied)
    return with("object", other_member, json_value(only({{"named", value}})));
  if (keyword == "additionalProperties" && copied) {
    json_value::array names, patterns;
    for (const auto& [of, to] : {std::pair{"properties", &names}, {"patternProperties", &patterns}})
      if (const auto* members = x.object(of))
        for (const auto& [name, schema] : *members) to->emplace_back(name);
    auto said = only({{"names", std::move(names)}, {"patterns", std::move(patterns)}});
    if (!(value == json_value(false))) said.emplace_back("value", value);
    return with("object", other_member, json_value(std::move(said)));
  }
  if (keyword == "format" && !is_format(x.text("format").value_or(""))) return {};
  fail_refuted(x, keyword);
}

/// Values that are none of these: of other types, other texts, numbers between them. Of objects and
/// arrays there are none, though others may be valid: flat() keeps such a schema as part::refuted.
void json_schema_compiler::refute_constants(const schema_view& x, const json_value::array& values,
                                            std::vector<demands>& out) {
  const std::string key = values.size() == 1 && x.has("const") ? "not const " : "not enum ";
  spend_on_places(x, values.size());
  type_set types;
  json_value::array texts, numbers;
  bool yes = false, no = false;
  for (const auto& value : values) {
    const auto type = type_of(value);
    types.set(bit_of(type));
    if (type == json_type::string) texts.push_back(value);
    if (type == json_type::number || type == json_type::integer) numbers.push_back(value);
    if (const auto* b = value.get_if<bool>()) (*b ? yes : no) = true;
  }
  auto rest = ~types;
  if (!numbers.empty()) rest.reset(bit_of(json_type::number)).reset(bit_of(json_type::integer));
  const auto add = [&](const std::string& name, json_value::object schema) {
    out.push_back({made(x, key + name, json_value(std::move(schema)))});
  };
  if (rest.any()) add("types", only_types(rest));
  if (!texts.empty()) add("texts", {{"type", "string"}, {std::string(not_among), texts}});
  if (yes != no) add("truth", {{"type", "boolean"}, {"const", json_value(no)}});
  if (numbers.empty()) return;
  const auto number_of = [](const json_value& v) {
    const auto* i = v.get_if<int64_t>();
    const auto* d = v.get_if<double>();
    return i != nullptr ? static_cast<double>(*i) : d != nullptr ? *d : 1e300;
  };
  std::sort(numbers.begin(), numbers.end(),
            [&](const auto& a, const auto& b) { return number_of(a) < number_of(b); });
  for (size_t i = 0; i <= numbers.size(); ++i) {
    json_value::object between{{"type", "number"}};
    if (i > 0) between.emplace_back("exclusiveMinimum", numbers[i - 1]);
    if (i < numbers.size()) between.emplace_back("exclusiveMaximum", numbers[i]);
    add("numbers " + std::to_string(i), std::move(between));
  }
}

// --- exclusion -----------------------------------------------------------------------------------

namespace {

/// What one of them says to be all its values; none where none does.
std::vector<const json_value*> constants_of(const demands& all) {
  std::vector<const json_value*> values;
  for (const auto& x : all) {
    if (x.what != part::own) continue;
    const auto* list = x.place.schema->find("enum");
    const auto* items = list != nullptr ? list->get_if<json_value::array>() : nullptr;
    if (const auto* one = x.place.schema->find("const"))
      values.push_back(one);
    else if (items != nullptr)
      for (const auto& value : *items) values.push_back(&value);
    if (!values.empty()) return values;
  }
  return values;
}

} // namespace

/// Is every value that meets `a` one that does not meet `b`? false: that is not known.
bool json_schema_compiler::disjoint(const demands& a, const demands& b, uint32_t depth) {
  if (a.empty() || b.empty()) return false;
  const auto types_of = [&](const demands& all) {
    auto set = types_said(all).value_or(type_set{}.set());
    if (const auto values = constants_of(all); !values.empty()) {
      type_set own;
      for (const auto* value : values) own.set(bit_of(type_of(*value)));
      set &= own;
    }
    return set;
  };
  const auto shared_types = types_of(a) & types_of(b);
  if (shared_types.none()) return true;
  for (const auto& [values, others] : {std::pair{constants_of(a), &b}, {constants_of(b), &a}})
    if (!values.empty()) {
      spend(a[0].place.pointer, values.size() / 4);
      if (std::all_of(values.begin(), values.end(),
                      [&](const auto* value) { return holds(*value, *others) == verdict::no; }))
        return true;
    }
  if (depth == 0 || shared_types != type_set{}.set(bit_of(json_type::object))) return false;
  return told_apart_by_member(a, b, depth) || told_apart_by_member(b, a, depth);
}

/// Does a member that `a` requires have no value in common?
bool json_schema_compiler::told_apart_by_member(const demands& a, const demands& b,
                                                uint32_t depth) {
  std::vector<schema_view> of_a, of_b;
  for (const auto& [all, views] : {std::pair{&a, &of_a}, {&b, &of_b}})
    for (const auto& x : *all)
      if (x.what == part::own) views->emplace_back(*x.place.schema, x.place.pointer);
  size_t looked_at = 0;
  for (const auto& x : of_a) {
    const auto* required = x.find("required");
    const auto* names = required != nullptr ? required->get_if<json_value::array>() : nullptr;
    if (names == nullptr) continue;
    for (const auto& one : *names) {
      const auto* name = one.get_if<std::string>();
      if (name == nullptr || ++looked_at > 32) continue;
      spend(x.pointer());
      const auto first = flat(member_demands(of_a, *name, certainty::sure));
      const auto second = flat(member_demands(of_b, *name, certainty::sure));
      if (second.impossible.schema != nullptr || first.impossible.schema != nullptr) return true;
      if (!first.all.empty() && !second.all.empty() && disjoint(first.all, second.all, depth - 1))
        return true;
    }
  }
  return false;
}

} // namespace lamella::model
