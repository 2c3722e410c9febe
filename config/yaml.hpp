/// From YAML files, the environment and the command line to settings.
#pragma once

#include "config/inputs.hpp"

namespace lamella::config {

/// Reads all inputs and reports every problem, not only the first. A relative path in a file is
/// relative to that file. No exception leaves it; memory and time are linear in the inputs.
loaded load(const inputs& from);

/// The environment of this process as a map.
std::map<std::string, std::string> process_environment();

} // namespace lamella::config
