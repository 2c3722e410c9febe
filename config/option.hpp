/// An option: its key, its kind, and its member of the settings.
#pragma once

#include "config/settings.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace lamella::config {

/// What kind of text an option is written as.
enum class option_kind : uint8_t {
  boolean,  ///< true, false
  integer,  ///< a whole number
  bytes,    ///< a whole number of bytes, or with a suffix: 64KiB, 16MiB, 2GB
  seconds,  ///< seconds, or with a suffix: 500ms, 2s, 5m, 1h
  text,     ///< any one line; `allowed` says more
  address,  ///< host:port
  path,     ///< a file; relative to the configuration file that names it
  choice,   ///< one word of `choices`
  text_list ///< a list of texts
};

/// Whether a running process can take a new value.
enum class reload : uint8_t { live, restart };

/// `auto`: the option decides by itself.
struct automatic {
  friend bool operator==(automatic, automatic) = default;
};

/// A value of any option: durations in milliseconds, choices by their word.
using value = std::variant<automatic, bool, uint64_t, std::string, std::vector<std::string>>;

struct option {
  std::string key; ///< the path, such as `http.max_body_bytes`
  option_kind kind;
  reload when;
  std::string sentence;
  uint64_t minimum = 0; ///< of numbers, in the unit of `value`
  uint64_t maximum = 0;
  bool accepts_auto = false;
  std::vector<std::string> choices;
  std::string pattern;                             ///< of texts, for the schema; may be empty
  std::string (*allowed)(const std::string&) = {}; ///< empty or what is wrong with a text
  std::function<value(const settings&)> get;
  std::function<void(settings&, const value&)> set; ///< the value must have come from parse_value
};

} // namespace lamella::config
