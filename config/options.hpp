/// The one table of options: reading, the schema, the reference, environment names and `--set` all
/// come from it.
#pragma once

#include "config/option.hpp"

namespace lamella::config {

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
