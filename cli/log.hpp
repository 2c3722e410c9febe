/// Where log lines go and how they look.
#pragma once

#include "config/settings.hpp"

namespace lamella::cli {

/// Lines to standard error: text on a terminal, JSON elsewhere, unless the settings say otherwise.
/// `quiet` keeps warnings and errors only (for commands that print results).
void configure_log(const config::log_settings& settings, bool quiet = false);

} // namespace lamella::cli
