/// The supervisor tree of a running server as lines of text (reliability A8).
#pragma once

#include "model/json.hpp"

#include <string>

namespace lamella::cli {

/// Draws what GET /admin/status tells: the node, the gateway and its requests, membership, the
/// pipeline, and under it every pool with its seats, who sits there and how often it was started
/// again. Fields that are missing (of an older server) are left out. Ends with a line break.
std::string status_tree(const model::json_value& status);

} // namespace lamella::cli
