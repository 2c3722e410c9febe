/// `lamella events`: what has happened to a running server, as lines.
#pragma once

#include "base/json.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace lamella::cli {

/// A reply of GET /admin/events.
struct event_lines {
  std::vector<std::string> lines; ///< one for each event, without a line break
  uint64_t newest = 0;            ///< number of the newest event that there is
  uint64_t missed = 0;            ///< events that the server does not have any more
};

/// Lines of a reply: time and text, or where `json` is set the events as JSON. Throws command_error
/// (1) where it is no such reply.
event_lines event_lines_of(const json_value& reply, bool json);

/// Seconds of "90", "90s", "10m", "2h" or "1d". Throws command_error (2).
uint64_t event_age(const std::string& text);

} // namespace lamella::cli
