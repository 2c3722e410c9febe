/// The supervisor tree of a running server as lines of text (reliability A8).
#pragma once

#include "base/json.hpp"

#include <string>

namespace lamella::cli {

/// Draws the reply of GET /admin/status: the node, the gateway and its requests, membership, child
/// processes, the pipeline with its strategy, used restarts and actors by kind, and every pool with
/// its seats, their workers, devices and restart counts. At most 64 lines of a kind; the rest are
/// counted. Missing fields (of an older server) are omitted. Ends with a line break.
std::string status_tree(const json_value& status);

} // namespace lamella::cli
