#include "net/api/tool_use.hpp"

#include "base/json_writer.hpp"
#include "net/http/api_error.hpp"

#include <algorithm>

namespace lamella::net {

namespace {

constexpr size_t tools_max = 128, calls_max = 128, arguments_bytes_max = 1 << 20;

bool is_function_name(std::string_view name) {
  return std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'
           || c == '-' || c == '.';
  });
}

std::string function_name(json_object_reader& function) {
  const auto name = function.required_string("name", {1, 64});
  if (!is_function_name(name))
    throw invalid_value(function.path("name"),
                        function.path("name") + " is " + to_json(json_value(name))
                            + ": only letters, digits, _, - and . are allowed");
  return name;
}

void require_function(json_object_reader& item) {
  if (const auto type = item.required_string("type", {1, 64}); type != "function")
    throw unsupported_parameter(item.path("type"), item.path("type") + " must be function, not "
                                                       + to_json(json_value(type)));
}

tool read_tool(const json_value& value, const std::string& path) {
  json_object_reader item(value, path);
  require_function(item);
  json_object_reader function(item.require("function"), item.path("function"));
  tool out;
  out.name = function_name(function);
  out.definition = value;
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
  return out;
}

std::string chosen_name(json_object_reader& item) {
  require_function(item);
  json_object_reader function(item.require("function"), item.path("function"), item);
  return function_name(function);
}

/// Leaves the tools of these names, which stand at `field`.
void keep(tool_use& use, const std::vector<std::string>& names, const std::string& field) {
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

/// A choice that is an object: one function, or those that are allowed.
void choose_some(tool_use& use, const json_value& value, const json_object_reader& body) {
  json_object_reader wanted(value, "tool_choice", body);
  if (wanted.required_string("type", {1, 64}) == "allowed_tools") {
    json_object_reader allowed(wanted.require("allowed_tools"), wanted.path("allowed_tools"),
                               wanted);
    const auto mode = allowed.required_string("mode", {1, 64});
    if (mode != "auto" && mode != "required")
      throw invalid_value(allowed.path("mode"), allowed.path("mode")
                                                    + " must be auto or required, not "
                                                    + to_json(json_value(mode)));
    const auto path = allowed.path("tools");
    const auto& items = json_items(allowed.require("tools"), path, {1, tools_max});
    std::vector<std::string> names;
    for (size_t i = 0; i < items.size(); ++i) {
      json_object_reader item(items[i], json_index(path, i), allowed);
      names.push_back(chosen_name(item));
    }
    keep(use, names, path);
    use.what = mode == "auto" ? tool_use::choice::automatic : tool_use::choice::required;
    return;
  }
  keep(use, {chosen_name(wanted)}, wanted.path("function.name"));
  use.what = tool_use::choice::required;
  use.parallel = false;
}

void choose(tool_use& use, json_object_reader& body) {
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
    choose_some(use, *value, body);
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

tool_use read_tool_use(json_object_reader& body) {
  tool_use use;
  if (const auto* value = body.find("tools")) {
    const auto& items = json_items(*value, "tools", {0, tools_max});
    for (size_t i = 0; i < items.size(); ++i) {
      auto one = read_tool(items[i], json_index("tools", i));
      if (std::any_of(use.tools.begin(), use.tools.end(),
                      [&](const tool& x) { return x.name == one.name; }))
        throw invalid_value("tools", "tools has two functions " + one.name);
      use.tools.push_back(std::move(one));
    }
  }
  use.parallel = body.optional<bool>("parallel_tool_calls").value_or(true);
  choose(use, body);
  if (!use.active()) use.tools.clear();
  return use;
}

std::vector<tool_call> read_tool_calls(json_object_reader& message) {
  std::vector<tool_call> calls;
  const auto add = [&](std::string id, json_object_reader function) {
    calls.push_back({std::move(id), function_name(function),
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
