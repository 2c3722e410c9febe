#include "net/api/unsupported_fields.hpp"

#include "base/json_writer.hpp"
#include "net/http/api_error.hpp"

#include <algorithm>
#include <string>

namespace lamella::net {

std::span<const unsupported_field> generation_unsupported() {
  static constexpr unsupported_field fields[] = {
      {"priority", "0"},
      {"use_beam_search", "false"},
      {"length_penalty", "1 1.0"},
      {"early_stopping", "false"},
      {"allowed_token_ids", "[]"},
      {"bad_words", "[]"},
      {"logits_processors", "[]"},
      {"include_stop_str_in_output", "false"},
      {"spaces_between_special_tokens", "true"},
      {"truncate_prompt_tokens", ""},
      {"guided_whitespace_pattern", ""},
      {"return_token_ids", "false"},
  };
  return fields;
}

void refuse_unsupported(json_object_reader& body, std::span<const unsupported_field> fields) {
  for (const auto& [name, harmless] : fields) {
    const json_value* value = body.find(name);
    if (!value) continue;
    const std::string text = to_json(*value);
    std::string_view rest = harmless;
    bool off = false;
    while (!rest.empty() && !off) {
      const size_t end = rest.find(' ');
      off = rest.substr(0, end) == text;
      rest = end == std::string_view::npos ? std::string_view{} : rest.substr(end + 1);
    }
    if (!off)
      throw unsupported_parameter(body.path(name), body.path(name)
                                                       + " is not supported by this server: "
                                                         "leave it out");
  }
}

std::string header_list(const std::vector<std::string>& names) {
  constexpr size_t bytes_max = 1'024;
  const auto fits = [](const std::string& name) {
    return std::all_of(name.begin(), name.end(),
                       [](char c) { return c > 0x20 && c < 0x7F && c != ','; });
  };
  std::string list;
  for (const auto& name : names)
    if (fits(name) && list.size() + name.size() + 2 <= bytes_max)
      list += (list.empty() ? "" : ", ") + name;
  return list;
}

} // namespace lamella::net
