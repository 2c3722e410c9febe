#include "net/api/tool_use.hpp"

#include "base/json_writer.hpp"
#include "net/http/api_error.hpp"

#include <algorithm>

namespace lamella::net {

namespace {

bool is_function_name(std::string_view name) {
  return std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'
           || c == '-' || c == '.';
  });
}

void require_function(json_object_reader& item) {
  if (const auto type = item.required_string("type", {1, 64}); type != "function")
    throw unsupported_parameter(item.path("type"), item.path("type") + " must be function, not "
                                                       + to_json(json_value(type)));
}

tool read_tool(const json_value& value, const std::string& path, tool_form form) {
  json_object_reader item(value, path);
  require_function(item);
  const bool flat = form == tool_form::flat;
  auto function = flat ? item : json_object_reader(item.require("function"), item.path("function"));
  tool out;
  out.name = read_function_name(function);
  function.optional_string("description");
  out.strict = function.optional<bool>("strict").value_or(false);
  if (const auto* parameters = function.find("parameters")) {
    if (parameters->get_if<json_value::object>() == nullptr)
      throw invalid_value(function.path("parameters"), function.path("parameters")
                                                           + " must be an object, not "
                                                           + std::string(parameters->kind()));
    out.parameters = *parameters;
    out.schema_field = function.path("parameters");
  }
  out.definition = flat ? function_definition(out.name, function.find("description"),
                                              function.find("parameters"), out.strict)
                        : value;
  return out;
}

size_t most_tools(tool_form form) { return form == tool_form::nested ? chat_tools_max : tools_max; }

/// The fields of a function that a choice names.
json_object_reader chosen_function(json_object_reader& item, tool_form form) {
  require_function(item);
  if (form == tool_form::flat) return item;
  return {item.require("function"), item.path("function"), item};
}

std::string chosen_name(json_object_reader& item, tool_form form) {
  auto function = chosen_function(item, form);
  return read_function_name(function);
}

/// A choice that is an object: one function, or those that are allowed.
void choose_some(tool_use& use, const json_value& value, const json_object_reader& body,
                 tool_form form) {
  json_object_reader wanted(value, "tool_choice", body);
  if (wanted.required_string("type", {1, 64}) == "allowed_tools") {
    auto allowed = form == tool_form::flat
                       ? wanted
                       : json_object_reader(wanted.require("allowed_tools"),
                                            wanted.path("allowed_tools"), wanted);
    const auto mode = allowed.required_string("mode", {1, 64});
    if (mode != "auto" && mode != "required")
      throw invalid_value(allowed.path("mode"), allowed.path("mode")
                                                    + " must be auto or required, not "
                                                    + to_json(json_value(mode)));
    const auto path = allowed.path("tools");
    const auto& items = json_items(allowed.require("tools"), path, {1, most_tools(form)});
    std::vector<std::string> names;
    for (size_t i = 0; i < items.size(); ++i) {
      json_object_reader item(items[i], json_index(path, i), allowed);
      names.push_back(chosen_name(item, form));
    }
    keep_tools(use, names, path);
    use.what = mode == "auto" ? tool_use::choice::automatic : tool_use::choice::required;
    return;
  }
  keep_tools(use, {chosen_name(wanted, form)},
             wanted.path(form == tool_form::flat ? "name" : "function.name"));
  use.what = tool_use::choice::required;
  use.parallel = false;
}

void choose(tool_use& use, json_object_reader& body, tool_form form) {
  const auto* value = body.find("tool_choice");
  if (value == nullptr) {
    use.what = use.tools.empty() ? tool_use::choice::none : tool_use::choice::automatic;
    return;
  }
  if (const auto* word = value->get_if<std::string>()) {
    if (*word == "none")
      use.what = tool_use::choice::none;
    else if (*word == "auto")
      use.what = tool_use::choice::automatic;
    else if (*word == "required")
      use.what = tool_use::choice::required;
    else
      throw invalid_value(
          "tool_choice",
          "tool_choice must be none, auto, required, a function or allowed_tools, not "
              + to_json(*value));
  } else {
    choose_some(use, *value, body, form);
  }
  if (!use.tools.empty()) return;
  if (use.what == tool_use::choice::required)
    throw invalid_value("tool_choice", "tool_choice requires a call, but tools is empty");
  use.what = tool_use::choice::none;
}

} // namespace

std::string tool_use::key() const {
  if (!active()) return {};
  json_value::array list;
  for (const auto& x : tools) list.push_back(x.definition);
  return (what == choice::required ? "must " : "may ") + std::string{parallel ? "many " : "one "}
         + to_json(json_value{std::move(list)});
}

std::string read_function_name(json_object_reader& function, size_t longest) {
  auto name = function.required_string("name", {1, longest});
  if (!is_function_name(name))
    throw invalid_value(function.path("name"),
                        function.path("name") + " is " + to_json(json_value(name))
                            + ": only letters, digits, _, - and . are allowed");
  return name;
}

json_value function_definition(const std::string& name, const json_value* description,
                               const json_value* parameters, bool strict) {
  json_value::object function{{"name", name}};
  if (description != nullptr) function.emplace_back("description", *description);
  if (parameters != nullptr) function.emplace_back("parameters", *parameters);
  if (strict) function.emplace_back("strict", true);
  return json_value::object{{"type", "function"}, {"function", std::move(function)}};
}

void add_tool(tool_use& use, tool one, const std::string& field) {
  if (std::any_of(use.tools.begin(), use.tools.end(),
                  [&](const tool& x) { return x.name == one.name; }))
    throw invalid_value(field, field + " has two functions " + one.name);
  use.tools.push_back(std::move(one));
}

void keep_tools(tool_use& use, const std::vector<std::string>& names, const std::string& field) {
  const auto is_named = [&](const tool& x) {
    return std::find(names.begin(), names.end(), x.name) != names.end();
  };
  for (const auto& name : names)
    if (std::none_of(use.tools.begin(), use.tools.end(),
                     [&](const tool& x) { return x.name == name; }))
      throw invalid_value(field, field + " is " + to_json(json_value(name))
                                     + ", which is not one of the tools");
  std::erase_if(use.tools, [&](const tool& x) { return !is_named(x); });
}

tool_use read_tool_use(json_object_reader& body, tool_form form) {
  tool_use use;
  if (const auto* value = body.find("tools")) {
    const auto& items = json_items(*value, "tools", {0, most_tools(form)});
    for (size_t i = 0; i < items.size(); ++i)
      add_tool(use, read_tool(items[i], json_index("tools", i), form), "tools");
  }
  use.parallel = body.optional<bool>("parallel_tool_calls").value_or(true);
  choose(use, body, form);
  if (!use.active()) use.tools.clear();
  return use;
}

std::vector<tool_call> read_tool_calls(json_object_reader& message) {
  std::vector<tool_call> calls;
  const auto add = [&](std::string id, json_object_reader function) {
    calls.push_back({std::move(id), read_function_name(function),
                     function.optional_string("arguments", {0, arguments_bytes_max}).value_or("")});
  };
  if (const auto* call = message.find("function_call"))
    add("", json_object_reader{*call, message.path("function_call"), message});
  const auto* value = message.find("tool_calls");
  if (value == nullptr) return calls;
  const auto path = message.path("tool_calls");
  const auto& items = json_items(*value, path, {0, calls_max});
  for (size_t i = 0; i < items.size(); ++i) {
    json_object_reader item(items[i], json_index(path, i), message);
    require_function(item);
    add(item.optional_string("id", {0, 128}).value_or(""),
        json_object_reader{item.require("function"), item.path("function"), item});
  }
  return calls;
}

} // namespace lamella::net
