/// The table of options for readers: people, editors and other programs.
#pragma once

#include "config/yaml.hpp"

#include <string>
#include <vector>

namespace lamella::config {

/// JSON Schema 2020-12 of the configuration file, with `default` and `x-reload: live|restart` on
/// each option. Two spaces of indentation, keys in the order of the table, a newline at the end.
std::string schema_json();

/// The reference page: each key with its sentence, allowed values, default, reload rule and
/// environment name, as Markdown.
std::string reference_text();

struct show_options {
  bool effective = false; ///< every key, including defaults
  bool with_origin = false;
};

/// The configuration as YAML that loads to the same settings.
std::string show_yaml(const loaded& from, const show_options& how);

/// The same as one JSON object: {"version":1,"options":[{"key","value","origin","reload"}]}. Of a
/// cell without options of its own there is the cell's key, with {} as its value.
std::string show_json(const loaded& from, const show_options& how);

/// A key whose value differs.
struct difference {
  std::string key;
  std::string before;
  std::string after;
  bool needs_restart = false;
};

/// What differs from `a` to `b`, cells included, in the order of the table. A cell that is not
/// there shows as an empty text.
std::vector<difference> diff(const settings& a, const settings& b);

} // namespace lamella::config
