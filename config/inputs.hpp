/// What settings are made from, and what comes of it.
#pragma once

#include "config/document.hpp"
#include "config/settings.hpp"

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace lamella::config {

/// Something wrong with the configuration.
struct problem {
  std::string source; ///< the file, the environment variable or the flag
  position at;        ///< in a file
  std::string key;    ///< may be empty
  std::string message;
  std::string hint; ///< may be empty

  /// `file:line:column: key: message`; the hint is left to the caller.
  std::string text() const;
};

/// Where the value of a key comes from. Keys with default values have no origin: their value is
/// built in.
struct origin {
  enum class kind : uint8_t { file, environment, set, flag };
  kind from = kind::file;
  std::string source;
  position at;

  /// `lamella.yaml:12`, `LAMELLA_HTTP__LISTEN`, `--set`, `--listen`.
  std::string text() const;
};

/// A dedicated flag of a command that stands for a key: `--listen ADDRESS` is `http.listen`.
struct flag_value {
  std::string flag;
  std::string key;
  std::string text;
};

/// Everything that settings are made from, weakest first: built-in, file and conf.d, environment,
/// `--set`, dedicated flags.
struct inputs {
  /// The file to read. Nothing: the first that exists of LAMELLA_CONFIG, lamella.yaml in
  /// `working_directory`, lamella/lamella.yaml in XDG_CONFIG_HOME, lamella.yaml in
  /// `system_directory`.
  std::optional<std::filesystem::path> file;
  std::map<std::string, std::string> environment;
  std::vector<std::string> set; ///< `key=value`; the value is YAML
  std::vector<flag_value> flags;
  std::filesystem::path working_directory = ".";
  std::filesystem::path system_directory = "/etc/lamella";
};

struct loaded {
  settings value; ///< meaningful only without problems
  std::vector<problem> problems;
  std::vector<std::string> warnings;
  std::map<std::string, origin> origins;    ///< by key, cells included
  std::vector<std::filesystem::path> files; ///< read, weakest first
  bool missing_file = false;                ///< a file that was asked for cannot be opened
};

} // namespace lamella::config
