/// Chat templates, their input from JSON, and what comes of them.
#pragma once

#include "base/json.hpp"
#include "model/chat/chat_template.hpp"
#include "tests/folders.hpp"

#include <doctest/doctest.h>

#include <fstream>
#include <iterator>

namespace lamella::model::test {

using kind = chat_template_error::kind;

inline json_value read(const std::string& name) {
  std::ifstream in{std::string{tests::source_folder} + "/tests/data/" + name, std::ios::binary};
  const std::string text{std::istreambuf_iterator<char>{in}, {}};
  REQUIRE_FALSE(text.empty());
  return parse_json(text);
}

inline template_data data_of(const json_value& x) {
  if (const auto* b = x.get_if<bool>()) return *b;
  if (const auto* n = x.get_if<int64_t>()) return *n;
  if (const auto* big = x.get_if<big_integer>()) return *big;
  if (const auto* d = x.get_if<double>()) return *d;
  if (const auto* s = x.get_if<std::string>()) return *s;
  if (const auto* a = x.get_if<json_value::array>()) {
    template_data::list made;
    for (const auto& item : *a) made.push_back(data_of(item));
    return made;
  }
  if (const auto* o = x.get_if<json_value::object>()) {
    template_data::object made;
    for (const auto& [key, item] : *o) made.emplace_back(key, data_of(item));
    return made;
  }
  return {};
}

inline std::string text_at(const json_value& x, const char* key) {
  return *x.find(key)->get_if<std::string>();
}

inline template_input input_of(const json_value& file, const json_value& variables) {
  template_input input;
  input.bos_token = text_at(file, "bos_token");
  input.eos_token = text_at(file, "eos_token");
  input.now = std::chrono::sys_seconds{std::chrono::seconds{*file.find("now")->get_if<int64_t>()}};
  for (const auto& [key, item] : *variables.get_if<json_value::object>()) {
    if (key == "messages")
      input.messages = data_of(item);
    else if (key == "add_generation_prompt")
      input.add_generation_prompt = *item.get_if<bool>();
    else
      input.more.emplace_back(key, data_of(item));
  }
  return input;
}

/// What came of it, in the form of the golden files.
inline std::string outcome(const std::string& source, const template_input& input) {
  try {
    return "output: " + chat_template::compile(source).render_text(input);
  } catch (const chat_template_error& e) {
    if (e.why() == kind::raised) return std::string{"raised: "} + e.what();
    INFO(e.what());
    CHECK(e.line() >= 1);
    CHECK(std::string{e.what()}.size() > 5);
    return "error";
  }
}

inline std::string expected(const json_value& x) {
  if (x.find("output")) return "output: " + text_at(x, "output");
  if (x.find("raised")) return "raised: " + text_at(x, "raised");
  return "error";
}

inline kind why(const std::string& source, const template_input& input = {},
                const template_limits& limits = {}) {
  try {
    chat_template::compile(source).render(input, limits);
  } catch (const chat_template_error& e) {
    return e.why();
  }
  FAIL("the template rendered");
  return kind::raised;
}

inline std::string render(const std::string& source, const template_input& input = {}) {
  return chat_template::compile(source).render_text(input);
}

inline template_data message(const std::string& role, const std::string& content) {
  return template_data::object{{"role", role}, {"content", content}};
}

} // namespace lamella::model::test
