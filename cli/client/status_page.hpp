/// The status of a running server as tables of text.
#pragma once

#include "base/json.hpp"

#include <string>

namespace lamella::cli {

/// Writes the reply of GET /admin/status as tables: workers, links, pools and requests. Missing
/// fields (of an older server) are shown as "-" or 0. Ends with a line break.
std::string status_page(const json_value& status);

} // namespace lamella::cli
