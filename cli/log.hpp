/// Where log lines go and how they look.
#pragma once

#include "config/settings.hpp"

#include <string>

namespace lamella::cli {

/// Lines to standard error: text on a terminal, JSON elsewhere, unless the settings say otherwise.
/// `quiet` keeps warnings and errors only (for commands that print results). `name` stands in every
/// line: processes that share a terminal are told apart by it; empty for none. Visible ASCII only.
/// Nobody waits for a line to be written: where nobody reads them, lines are dropped and counted
/// (actors/shared/log_drops.hpp).
void configure_log(const config::log_settings& settings, bool quiet = false,
                   const std::string& name = {});

/// The same lines from now on, but those of another level. Thread-safe.
void set_log_level(config::log_level level);

} // namespace lamella::cli
