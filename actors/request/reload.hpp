/// RELOAD: a configuration that is read again while the service serves (api-and-ops 13).
#pragma once

#include "config/reload.hpp"
#include "config/yaml.hpp"

#include <functional>
#include <string>
#include <vector>

namespace lamella::actors {

/// Reads the configuration again, from where it came at the start.
using configuration_source = std::function<config::loaded()>;

/// All or nothing: with a problem nothing has changed.
struct reload_report {
  std::vector<std::string> problems;
  std::vector<std::string> applied;       ///< keys that have new values now
  std::vector<std::string> needs_restart; ///< keys that would have some after a restart
  size_t api_keys = 0, admin_keys = 0;    ///< in force
};

/// Where there was no problem: {"version":1,"applied":[...],"needs_restart":[...],
/// "api_keys":2,"admin_keys":1}.
std::string to_json(const reload_report& x);

} // namespace lamella::actors
