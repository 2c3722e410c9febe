/// The one table of options: reading, the schema, the reference, environment names and `--set` all
/// come from it.
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

/// Every option, in the order of the reference. Options of a cell, `pools.attention.cells.NAME.*`,
/// are those of `pools.attention.*`.
std::span<const option> options();

/// The option with this key, or nothing. Aliases (`pools.model.replicas`) are followed.
const option* find_option(std::string_view key);

/// A key that means another one: {alias, key}.
std::span<const std::pair<std::string, std::string>> aliases();

/// Cuts `pools.attention.cells.NAME.rest` into NAME and `pools.attention.rest`; nothing for other
/// keys.
struct cell_key {
  std::string cell;
  std::string key;
};
std::optional<cell_key> split_cell_key(std::string_view key);

/// Empty when `name` can name a cell, otherwise what is wrong.
std::string check_cell_name(const std::string& name);

/// The value of an option in a cell, and setting it.
value get_in_cell(const option& x, const attention_pool_settings& cell);
void set_in_cell(const option& x, attention_pool_settings& cell, const value& v);

/// The environment variable of a key: `http.listen` is `LAMELLA_HTTP__LISTEN`.
std::string environment_name(std::string_view key);

/// Reads one scalar. Returns what is wrong, in words with the value and the allowed range, or
/// nothing after storing to `out`.
std::optional<std::string> parse_value(const option& x, const std::string& text, value& out);

/// The same for a list option.
std::optional<std::string> parse_list(const option& x, const std::vector<std::string>& texts,
                                      value& out);

/// The value as it would be written in a file, quoted where YAML needs it.
std::string to_text(const option& x, const value& v);

/// The allowed values in words: `1 to 128`, `f16 or f32`.
std::string range_text(const option& x);

/// `text` as a YAML and JSON string in double quotes.
std::string in_quotes(std::string_view text);

} // namespace lamella::config
