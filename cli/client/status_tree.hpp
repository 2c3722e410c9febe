/// The supervisor tree of a running server as lines of text (reliability A8).
#pragma once

#include "base/json.hpp"

#include <string>

namespace lamella::cli {

/// Draws what GET /admin/status tells: the node, the gateway and its requests, membership, child
/// processes, the pipeline with its strategy, the restarts that are used up and its actors by kind,
/// and under it every pool with its seats, who sits there, on which device, and how often it was
/// started again. At most 64 lines of a kind; the rest are counted. Fields that are missing (of an
/// older server) are left out. Ends with a line break.
std::string status_tree(const json_value& status);

} // namespace lamella::cli
