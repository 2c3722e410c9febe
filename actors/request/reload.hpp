/// RELOAD: rereads the configuration while the service serves.
#pragma once

#include "config/reload.hpp"
#include "config/yaml.hpp"

#include <functional>
#include <string>
#include <vector>

namespace lamella::actors {

/// Rereads the configuration from its original sources.
using configuration_source = std::function<config::loaded()>;

/// All or nothing: with any problem, no value is changed.
struct reload_report {
  std::vector<std::string> problems;
  bool passing = false;             ///< the problems are of the moment: the same may be taken later
  std::vector<std::string> applied; ///< keys with new values
  std::vector<std::string> pending; ///< keys with new values that are under way: pools' sizes
  std::vector<std::string> needs_restart; ///< keys whose new values need a restart
  size_t api_keys = 0, admin_keys = 0;    ///< in force
};

/// Without problems: {"version":1,"applied":[...],"pending":[...],
/// "needs_restart":[...],"api_keys":2,"admin_keys":1}.
std::string to_json(const reload_report& x);

} // namespace lamella::actors
