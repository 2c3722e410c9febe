// Numbers and strings. What several keywords say about one string is an intersection of automata.
#include "model/grammar/json_schema/json_schema_compiler.hpp"
#include "model/grammar/json_schema/string_formats.hpp"

#include "base/json_writer.hpp"

#include <algorithm>
#include <cmath>

namespace lamella::model {

using node_id = grammar::node_id;

namespace {

std::string name_of(const std::optional<decimal>& bound) {
  return bound ? (bound->negative ? "-" : "") + std::to_string(bound->whole) + "." + bound->fraction
               : "";
}

} // namespace

// --- numbers -------------------------------------------------------------------------------------

/// The narrowest bounds. Draft 4 has an exclusiveMinimum that is true beside a minimum.
number_bounds json_schema_compiler::bounds_of(const std::vector<schema_view>& views,
                                              number_form form) {
  constexpr double written_max = 1e18; // numbers with bounds have fewer digits
  static const decimal largest{false, 999'999'999'999'999'999, ""};
  static const decimal smallest{true, 999'999'999'999'999'999, ""};
  number_bounds bounds;
  const auto read = [&](const schema_view& x, const char* keyword, bool excluded, bound_side side) {
    const auto* value = x.find(keyword);
    if (value == nullptr || value->get_if<bool>() != nullptr) return;
    const auto nearest = number_of(*value);
    auto bound = bound_of(*value, form, side, excluded);
    if (!bound && nearest && side == bound_side::high && *nearest >= written_max) bound = largest;
    if (!bound && nearest && side == bound_side::low && *nearest <= -written_max) bound = smallest;
    if (!bound) x.fail(keyword, "must be a number of at most 18 digits before the point");
    auto& known = side == bound_side::low ? bounds.low : bounds.high;
    if (!known || (side == bound_side::low ? *known < *bound : *bound < *known)) known = bound;
  };
  const auto is_true = [](const schema_view& x, const char* keyword) {
    const auto* value = x.find(keyword);
    return value != nullptr && *value == json_value(true);
  };
  for (const auto& x : views) {
    read(x, "minimum", is_true(x, "exclusiveMinimum"), bound_side::low);
    read(x, "exclusiveMinimum", true, bound_side::low);
    read(x, "maximum", is_true(x, "exclusiveMaximum"), bound_side::high);
    read(x, "exclusiveMaximum", true, bound_side::high);
  }
  return bounds;
}

node_id json_schema_compiler::number(const std::vector<schema_view>& views, number_form form,
                                     node_id next) {
  auto step = step_of(views, form);
  if (step && step->size == 1 && step->places == 0) {
    form = number_form::integer;
    step.reset();
  }
  const auto bounds = bounds_of(views, form);
  if (!any_within(form, bounds))
    return nothing({nullptr, views[0].pointer()},
                   std::string{"leaves no "} + (form == number_form::integer ? "whole " : "")
                       + "number between its bounds");
  if (step) {
    const auto said =
        std::find_if(views.begin(), views.end(), [](const auto& x) { return x.has("multipleOf"); });
    return multiples(*said, *step, bounds, next);
  }
  const auto key = (form == number_form::integer ? "integer from " : "number from ")
                   + name_of(bounds.low) + " to " + name_of(bounds.high);
  return shared(
      key, [&](node_id end) { return number_within(grammar_, form, bounds, end); }, next);
}

// --- strings -------------------------------------------------------------------------------------

struct json_schema_compiler::string_demands {
  uint32_t min = 0, max = grammar::unbounded;
  struct expression {
    const schema_view* view;
    std::string text;
    regular_expression::match how;
    bool not_matched = false;
    std::string format; ///< whose expression it is
  };
  std::vector<expression> expressions;
  std::vector<std::string> excluded;
  const schema_view* at = nullptr; ///< of the last demand
};

const text_automaton& json_schema_compiler::automaton_of(const schema_view& x,
                                                         const std::string& expression,
                                                         regular_expression::match how) {
  const auto key = (how == regular_expression::match::whole ? "w" : "s") + expression;
  if (const auto known = automata_.find(key); known != automata_.end()) return known->second;
  try {
    spend(x.pointer(), 100 + expression.size());
    auto made = text_automaton::of(regular_expression::parse(expression), how);
    return automata_.emplace(key, spent(x, std::move(made))).first->second;
  } catch (const std::runtime_error& e) { // of the expression or its automaton
    if (dynamic_cast<const json_schema_error*>(&e) != nullptr) throw;
    throw json_schema_error(x.pointer(), "has the expression " + to_json(json_value(expression))
                                             + ", which is not supported: " + e.what());
  }
}

json_schema_compiler::string_demands
json_schema_compiler::strings_of(const std::vector<schema_view>& views) {
  using match = regular_expression::match;
  string_demands all;
  const auto add = [&](const schema_view& x, std::string text, match how, bool is_opposite,
                       std::string format = "") {
    for (const auto& known : all.expressions)
      if (known.text == text && known.how == how && known.not_matched == is_opposite) return;
    all.expressions.push_back({&x, std::move(text), how, is_opposite, std::move(format)});
  };
  for (const auto& x : views) {
    all.min = std::max(all.min, x.count("minLength").value_or(0));
    all.max = std::min(all.max, x.count("maxLength").value_or(grammar::unbounded));
    for (const auto keyword :
         {std::string_view{"minLength"}, std::string_view{"maxLength"}, std::string_view{"pattern"},
          std::string_view{"format"}, not_pattern, not_among})
      if (x.has(keyword)) all.at = &x;
    if (const auto pattern = x.text("pattern")) add(x, *pattern, match::somewhere, false);
    if (const auto pattern = x.text(not_pattern)) add(x, *pattern, match::somewhere, true);
    if (const auto format = x.text("format"); format && is_format(*format)) {
      add(x, std::string(format_expression(*format)), match::whole, false, *format);
    }
    if (const auto* texts = x.find(not_among))
      for (const auto& text : *texts->get_if<json_value::array>())
        all.excluded.push_back(*text.get_if<std::string>());
  }
  return all;
}

text_automaton json_schema_compiler::texts_of(const std::vector<schema_view>& views) {
  return texts_of(strings_of(views));
}

/// All of it at once. Where lengths would make too many states, texts are shorter than they may be.
text_automaton json_schema_compiler::texts_of(const string_demands& all) {
  constexpr size_t counted_states_max = 2'000;
  constexpr uint32_t format_least = 3, format_most = 254; // what formats have anyway
  if (all.expressions.empty() && all.excluded.empty())
    return text_automaton::of_length(all.min, all.max);
  const bool has_format = std::any_of(all.expressions.begin(), all.expressions.end(),
                                      [](const auto& x) { return !x.format.empty(); });
  const bool simple = has_format && (all.min > format_least || all.max < format_most);
  std::vector<text_automaton> sets;
  for (const auto& x : all.expressions) {
    const auto& set = automaton_of(
        *x.view,
        simple && !x.format.empty() ? std::string(simple_format_expression(x.format)) : x.text,
        x.how);
    sets.push_back(x.not_matched ? set.complement() : set);
  }
  if (!all.excluded.empty()) sets.push_back(text_automaton::of_texts(all.excluded).complement());
  auto set = sets.size() == 1 ? std::move(sets[0]) : text_automaton::intersection(sets);
  set = spent(*all.at, std::move(set));
  const auto has = set.lengths();
  if (!has || (has->first >= all.min && has->second <= all.max && !simple)) return set;
  auto max = simple ? std::min(all.max, simple_characters) : all.max;
  if (has->second <= max) max = grammar::unbounded;
  const auto counted = static_cast<uint32_t>(counted_states_max / set.states());
  if (max != grammar::unbounded || all.min > counted)
    max = std::min(max, std::max(counted, 2 * all.min + 16));
  const std::array both{std::move(set), text_automaton::of_length(all.min, max)};
  return spent(*all.at, text_automaton::intersection(both));
}

node_id json_schema_compiler::string(const std::vector<schema_view>& views, node_id next) {
  const auto all = strings_of(views);
  if (all.max < all.min)
    return nothing({nullptr, views[0].pointer()}, "has a maxLength below its minLength");
  const bool lengths = all.min > 0 || all.max != grammar::unbounded;
  if (all.expressions.empty() && all.excluded.empty())
    return json_.string_of(all.min, all.max, next);
  if (all.expressions.empty() && !lengths) return json_.other_key(all.excluded, next);
  std::string key = std::to_string(all.min) + " to " + std::to_string(all.max);
  for (const auto& x : all.expressions)
    key += (x.not_matched ? "\nnot " : "\n")
           + std::string(x.how == regular_expression::match::whole ? "whole " : "somewhere ")
           + x.text;
  for (const auto& text : all.excluded) key += "\nbut " + text;
  const auto& first = all.expressions.empty() ? views[0] : *all.expressions[0].view;
  spend_on_bytes(first.pointer(), key.size());
  const bool single = all.expressions.size() == 1 && !all.expressions[0].not_matched && !lengths
                      && all.excluded.empty();
  try {
    return shared(
        key,
        [&](node_id end) {
          const auto quote = grammar_.text("\"", end);
          if (single)
            return grammar_.text(
                "\"", regular_expression::parse(all.expressions[0].text)
                          .compile(grammar_, all.expressions[0].how, spelling::json, quote));
          const auto set = texts_of(all);
          if (set.empty())
            return nothing({nullptr, first.pointer()}, "leaves no text that all of it allows");
          return grammar_.text("\"",
                               set.compile(grammar_, spelling::json, [&](auto) { return quote; }));
        },
        next);
  } catch (const regular_expression_error& e) {
    first.fail("pattern", std::string{"is not supported: "} + e.what());
  } catch (const automaton_error& e) {
    first.fail(first.has("pattern") ? "pattern" : "format",
               std::string{"is not supported beside what else is said about the text: "}
                   + e.what());
  }
}

} // namespace lamella::model
