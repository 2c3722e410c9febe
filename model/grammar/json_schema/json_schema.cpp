#include "model/grammar/json_schema/json_schema.hpp"

#include "base/json_writer.hpp"
#include "model/grammar/hash_index.hpp"
#include "model/grammar/json_schema/json_schema_compiler.hpp"

#include <algorithm>
#include <tuple>

namespace lamella::model {

using node_id = grammar::node_id;
using part = demand::part;

namespace {

constexpr size_t values_max = 20'000; ///< of an enumeration

bool has_own(const schema_view& x) {
  for (const auto& [keyword, value] : *x.schema().get_if<json_value::object>())
    if (is_own_keyword(keyword)) return true;
  return false;
}

std::vector<schema_view> views_of(const demands& all) {
  std::vector<schema_view> views;
  for (const auto& x : all)
    if (x.what == part::own) views.emplace_back(*x.place.schema, x.place.pointer);
  return views;
}

} // namespace

node_id json_schema_grammar(grammar& g, const json_value& schema, node_id next,
                            schema_reading reading) {
  return json_schema_grammar(g, schema, {&schema, ""}, next, reading);
}

node_id json_schema_grammar(grammar& g, const json_value& document, const schema_place& place,
                            node_id next, schema_reading reading) {
  json_schema_compiler compiler{g, document, reading};
  if (is_false(place)) throw json_schema_error(place.pointer, "is false: no value is possible");
  const auto rule = g.rule(); // whose texts can be told before what comes behind is made
  g.begin(rule, compiler.value(*place.schema, place.pointer, g.end()));
  compiler.finish();
  if (compiler.conflict() && !productive_nodes(g, byte_set{}.set())[g.first_of(rule)])
    throw *compiler.conflict();
  return g.call(rule, next);
}

node_id json_schema_compiler::nothing(const schema_place& place, const std::string& why) {
  if (!conflict_) conflict_.emplace(place.pointer, why);
  return grammar_.choice();
}

// --- lists ---------------------------------------------------------------------------------------

/// Puts what `x` comes to on one of the lists; a schema on its way is met before those beside it.
void json_schema_compiler::unfold(const demand& x, demands& to_do, flat_demands& out) {
  if (const auto* any = x.place.schema->get_if<bool>()) {
    if (*any == (x.what == part::whole)) return;
    out.impossible = x.place;
    out.why = *any ? "is to be refuted, and takes everything" : "is false: no value is possible";
    return;
  }
  const schema_view view{*x.place.schema, x.place.pointer};
  if (x.what == part::refuted) {
    const auto ways = refuted(x);
    if (ways.empty()) {
      out.impossible = x.place;
      out.why = "is to be refuted, and takes everything";
    } else if (ways.size() == 1 && !has_container_constants(*x.place.schema)) {
      to_do.insert(to_do.end(), ways[0].rbegin(), ways[0].rend());
    } else {
      out.all.push_back(x);
    }
    return;
  }
  demands parts;
  const auto add = [&](part what, uint32_t index = 0, const char* keyword = "") {
    parts.push_back({x.place, what, index, keyword});
  };
  for (auto& place : references_.targets(view)) parts.push_back({std::move(place)});
  if (const auto* schemas = view.array("allOf")) spend_on_places(view, schemas->size());
  if (const auto* schemas = view.array("allOf"))
    for (size_t i = 0; i < schemas->size(); ++i)
      parts.push_back({{&(*schemas)[i], view.below("allOf") + "/" + std::to_string(i)}});
  if (const auto* schema = view.find("not"))
    parts.push_back({{schema, view.below("not")}, part::refuted});
  if (has_own(view)) add(part::own);
  if (view.has("anyOf")) add(part::any_of);
  if (view.has("oneOf")) add(part::one_of);
  if (view.has("if") && (view.has("then") || view.has("else") || references_.has_unevaluated()))
    add(part::conditional); // without them, too, it tells what is evaluated
  uint32_t kind = 0;
  for (const auto* keyword : {"dependentRequired", "dependentSchemas", "dependencies"}) {
    if (const auto* members = view.object(keyword)) {
      spend_on_places(view, members->size());
      for (uint32_t i = 0; i < members->size(); ++i) add(part::dependent, kind | i, keyword);
    }
    kind += demand::members_max;
  }
  to_do.insert(to_do.end(), parts.rbegin(), parts.rend());
}

flat_demands json_schema_compiler::flat(const demands& all) {
  flat_demands out;
  struct one {
    demand what;
    bool is_open; ///< those behind it are not done yet
  };
  std::vector<one> met;
  hash_index of_met;
  struct leave {
    size_t below, met;
  };
  std::vector<leave> open; // whose parts are on the list
  demands to_do(all.rbegin(), all.rend());
  while (!to_do.empty() && out.impossible.schema == nullptr) {
    auto x = std::move(to_do.back());
    to_do.pop_back();
    while (!open.empty() && to_do.size() < open.back().below) {
      met[open.back().met].is_open = false;
      open.pop_back();
    }
    const auto hash = demand_hash{}(x);
    const auto known = of_met.find(hash, [&](uint32_t i) { return met[i].what == x; });
    if (known != hash_index::none) {
      if (met[known].is_open && (x.what == part::whole || x.what == part::refuted))
        throw json_schema_error(x.place.pointer, "holds where it holds itself: it is met again "
                                                 "behind its own $ref or allOf");
      continue;
    }
    spend(x.place.pointer);
    const auto at = met.size();
    of_met.add(hash, static_cast<uint32_t>(at));
    met.push_back({std::move(x), true});
    open.push_back({to_do.size(), at});
    if (met[at].what.what == part::whole || met[at].what.what == part::refuted) {
      const auto before = to_do.size();
      unfold(met[at].what, to_do, out);
      if (to_do.size() == before) {
        met[at].is_open = false;
        open.pop_back();
      }
    } else {
      out.all.push_back(met[at].what);
    }
  }
  if (out.impossible.schema != nullptr) return out;
  const auto types = types_said(out.all);
  if (types && types->none()) {
    for (const auto& x : out.all)
      if (x.what == part::own) out.impossible = x.place;
    out.why = "leaves no type of value that all it is combined with allow";
  }
  return out;
}

/// Where one of them says so.
std::optional<type_set> json_schema_compiler::types_said(const demands& all) {
  std::optional<type_set> result;
  for (const auto& x : all) {
    if (x.what != part::own || x.place.schema->find("type") == nullptr) continue;
    const auto set = types_of(schema_view{*x.place.schema, x.place.pointer});
    result = result ? *result & set : set;
  }
  return result;
}

node_id json_schema_compiler::value(const flat_demands& lists, node_id next) {
  if (lists.impossible.schema != nullptr) return nothing(lists.impossible, lists.why);
  if (lists.all.empty()) return json_.any_value(next);
  auto key = key_of(lists.all);
  if (depth_ == inline_depth_max || !inlined_.insert(key).second)
    return grammar_.call(rule_of(lists.all, key), next);
  ++depth_;
  const auto first = compiled(lists.all, next);
  --depth_;
  return first;
}

grammar::rule_id json_schema_compiler::rule_of(const demands& all, const std::string& key) {
  const auto [known, is_new] = rules_.try_emplace(key);
  if (is_new) {
    spend(all[0].place.pointer);
    known->second = grammar_.rule();
    pending_.push_back({known->second, all});
  }
  return known->second;
}

void json_schema_compiler::finish() {
  while (!pending_.empty()) {
    const auto x = std::move(pending_.back());
    pending_.pop_back();
    grammar_.begin(x.rule, compiled(x.all, grammar_.end()));
  }
}

node_id json_schema_compiler::shared(const std::string& key,
                                     const std::function<node_id(node_id)>& build, node_id next) {
  auto known = shared_.find(key);
  if (known == shared_.end()) {
    known = shared_.emplace(key, grammar_.rule()).first;
    const auto rule = known->second; // `build` may add others
    grammar_.begin(rule, build(grammar_.end()));
    return grammar_.call(rule, next);
  }
  return grammar_.call(known->second, next);
}

/// With what is compiled for refuted objects and arrays, all at once; nothing where there are none.
std::optional<demands> json_schema_compiler::narrowed(const demands& all) {
  demands out;
  bool is_narrower = false;
  for (const auto& x : all) {
    std::vector<demands> ways;
    if (x.what == part::refuted && has_container_constants(*x.place.schema)) ways = refuted(x);
    if (ways.size() == 1)
      out.insert(out.end(), ways[0].begin(), ways[0].end());
    else
      out.push_back(x);
    is_narrower = is_narrower || ways.size() == 1;
  }
  return is_narrower ? std::optional{std::move(out)} : std::nullopt;
}

node_id json_schema_compiler::compiled(const demands& all, node_id next) {
  const auto has_constants = [](const demand& x) {
    return x.what == part::own
           && (x.place.schema->find("const") != nullptr || x.place.schema->find("enum") != nullptr);
  };
  if (std::any_of(all.begin(), all.end(), has_constants)) return constants(all, next);
  if (const auto narrower = narrowed(all)) return value(*narrower, next);
  for (size_t i = 0; i < all.size(); ++i)
    if (all[i].what != part::own) return choice_of(all, i, next);
  return of_types(all, next);
}

namespace {

bool has_unevaluated(const demand& x) {
  return x.what == part::own
         && (x.place.schema->find("unevaluatedProperties") != nullptr
             || x.place.schema->find("unevaluatedItems") != nullptr);
}

/// Several of them may hold at once, and more is evaluated then.
std::vector<demands> together(const std::vector<demands>& ways) {
  constexpr size_t together_max = 4;
  if (ways.size() > together_max) return ways;
  std::vector<demands> out;
  for (size_t set = 1; set < size_t{1} << ways.size(); ++set) {
    auto& all = out.emplace_back();
    for (size_t i = 0; i < ways.size(); ++i)
      if ((set >> i & 1) != 0) all.insert(all.end(), ways[i].begin(), ways[i].end());
  }
  return out;
}

} // namespace

/// One of the ways in which a demand can be met, with all others.
node_id json_schema_compiler::choice_of(const demands& all, size_t site, node_id next) {
  auto rest = all;
  rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(site));
  std::vector<node_id> branches;
  schema_place none; // of the first that is impossible
  std::string why;
  auto ways = alternatives_of(all[site]);
  if (all[site].what == part::any_of && std::any_of(all.begin(), all.end(), has_unevaluated))
    ways = together(ways);
  for (const auto& way : ways) {
    if (!rest.empty() && ++combinations_ > combinations_max)
      throw json_schema_error(all[site].place.pointer,
                              "has more alternatives than can be combined with what is beside "
                              "them: more than "
                                  + std::to_string(combinations_max) + " combinations");
    auto both = rest;
    both.insert(both.end(), way.begin(), way.end());
    const auto lists = flat(both);
    if (lists.impossible.schema == nullptr)
      branches.push_back(value(lists, next));
    else if (none.schema == nullptr)
      std::tie(none, why) = std::tie(lists.impossible, lists.why);
  }
  if (branches.empty() && none.schema != nullptr) return nothing(none, why);
  if (branches.size() == 1) return branches[0];
  return grammar_.choice(std::move(branches));
}

// --- values by type ------------------------------------------------------------------------------

type_set json_schema_compiler::types_written(const std::vector<schema_view>& views,
                                             schema_reading reading) {
  auto said = type_set{}.set();
  type_set about;
  bool is_said = false;
  for (const auto& x : views) {
    if (x.has("type")) {
      said &= types_of(x);
      is_said = true;
    }
    about |= set_of(x.types_about());
  }
  if (is_said || reading == schema_reading::standard || about.none()) return said;
  return about;
}

node_id json_schema_compiler::of_types(const demands& all, node_id next) {
  const auto views = views_of(all);
  const auto types = types_written(views, reading_);
  std::vector<node_id> branches;
  for (size_t bit = 0; bit < types_count; ++bit) {
    const auto type = static_cast<json_type>(bit);
    // A number that has no fraction is an integer as well.
    if (!types[bit] || (type == json_type::integer && types[bit_of(json_type::number)])) continue;
    if (type == json_type::number && !types[bit_of(json_type::integer)]) continue;
    branches.push_back(of_type(views, types, type, next));
  }
  if (branches.empty()) return nothing(all[0].place, "leaves no type of value");
  return branches.size() == 1 ? branches[0] : grammar_.choice(std::move(branches));
}

node_id json_schema_compiler::of_type(const std::vector<schema_view>& views, type_set types,
                                      json_type type, node_id next) {
  switch (type) {
  case json_type::object:
    return object(views, next);
  case json_type::array:
    return array(views, next);
  case json_type::string:
    return string(views, next);
  case json_type::number:
  case json_type::integer:
    return number(views, types[bit_of(json_type::number)] ? number_form::any : number_form::integer,
                  next);
  case json_type::boolean:
    return grammar_.choice({grammar_.text("true", next), grammar_.text("false", next)});
  case json_type::null:
    return grammar_.text("null", next);
  }
  return next;
}

/// Of the values of one enumeration, those of which all the rest holds.
node_id json_schema_compiler::constants(const demands& all, node_id next) {
  std::vector<const json_value*> values;
  std::string pointer, why = "has no value that all it is combined with allow";
  for (const auto& x : all) {
    if (x.what != part::own) continue;
    const schema_view view{*x.place.schema, x.place.pointer};
    std::vector<const json_value*> these;
    const auto* list = view.array("enum");
    if (list != nullptr && list->size() > values_max)
      view.fail("enum", "has " + std::to_string(list->size()) + " values, at most "
                            + std::to_string(values_max) + " are read");
    if (const auto* one = view.find("const"))
      these.push_back(one);
    else if (list != nullptr)
      for (const auto& value : *list) these.push_back(&value);
    if (these.empty() || (!values.empty() && values.size() <= these.size())) continue;
    values = std::move(these);
    pointer = view.below(view.has("const") ? "const" : "enum");
  }
  std::erase_if(values, [&](const auto* value) { return holds(*value, all) != verdict::yes; });
  if (values.empty()) return nothing({all[0].place.schema, pointer}, why);
  return literals(values, pointer, next);
}

/// Values of one text share what they share; arrays and objects have spaces in them.
node_id json_schema_compiler::literals(const std::vector<const json_value*>& values,
                                       const std::string& pointer, node_id next) {
  std::vector<std::string> texts;
  std::vector<node_id> branches;
  for (const auto* value : values) {
    const auto type = type_of(*value);
    if (type == json_type::array || type == json_type::object)
      branches.push_back(json_.literal(*value, next));
    else
      texts.push_back(to_json(*value));
  }
  try {
    if (!texts.empty()) branches.push_back(grammar_.texts(std::move(texts), next));
  } catch (const grammar_error& e) {
    throw json_schema_error(pointer, std::string{"cannot be read: "} + e.what());
  }
  return grammar_.choice(std::move(branches));
}

} // namespace lamella::model
