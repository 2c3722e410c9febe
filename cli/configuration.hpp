/// The flags by which commands are configured, and the settings that come of them.
#pragma once

#include "config/yaml.hpp"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace lamella::cli {

/// `--config`, `--set` and dedicated flags of one command; shared with CLI11, which fills it.
struct configuration_flags {
  std::string config;
  std::vector<std::string> set;
  std::map<std::string, std::pair<std::string, std::string>> dedicated; ///< flag to key and value

  /// What config::load reads: these flags and this process's environment.
  config::inputs inputs() const;
};

/// Adds `--config` and `--set` to a command.
std::shared_ptr<configuration_flags> add_configuration_flags(CLI::App& app);

/// Adds a flag that stands for a key, such as `--listen` for `http.listen`.
void add_key_flag(CLI::App& app, configuration_flags& flags, const std::string& flag,
                  const std::string& key, const std::string& value_name);

/// Adds `--failpoint`; what it was given comes with parsing.
std::shared_ptr<std::vector<std::string>> add_failpoint_flag(CLI::App& app);

/// Arms them, for this process and those that it starts. Throws command_error (2).
void arm_failpoints(const std::vector<std::string>& texts);

/// Reads everything; prints warnings. Throws command_error with all problems (66 when a file is
/// missing, else 78).
config::loaded load_configuration(const configuration_flags& flags);

/// The same for given inputs.
config::loaded load_configuration(const config::inputs& from);

} // namespace lamella::cli
