/// Flags whose values are names.
#pragma once

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include <cstdint>
#include <map>
#include <string>

namespace lamella::cli {

/// Takes the names of an enumeration's values, and says what they are when there is another one.
template <class Enum> CLI::Validator one_of(std::map<std::string, Enum> names) {
  const auto convert = [names](std::string& text) -> std::string {
    if (const auto found = names.find(text); found != names.end()) {
      text = std::to_string(static_cast<int64_t>(found->second));
      return {};
    }
    std::string list;
    for (const auto& [name, value] : names)
      list += (list.empty() ? "" : name == names.rbegin()->first ? " or " : ", ") + name;
    return "'" + text + "' is not one of " + list;
  };
  return CLI::Validator{convert, ""};
}

} // namespace lamella::cli
