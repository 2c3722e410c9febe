/// A page of text that is shown again and again.
#pragma once

#include "cli/client.hpp"

#include <chrono>
#include <functional>
#include <string>

namespace lamella::cli {

/// Of `--watch [SECONDS]`: two seconds where none are written. Throws command_error (2).
std::chrono::milliseconds watch_interval(const std::string& text);

/// What redraws a terminal of so many lines with a page: from its top left corner, each line
/// cleared to its end, and all below it. Nothing is cleared before it is written, so nothing
/// flickers. Of a page with more lines than the terminal the last one says how many are left out.
std::string redraw(const std::string& page, size_t lines);

/// Shows `page` every so often until Ctrl-C, which also aborts a call of `client`; then it is 0. A
/// terminal is redrawn if `draws`, anything else gets one page after the other, with an empty line
/// between two. What `page` throws ends it.
int watch(net::http_client& client, std::chrono::milliseconds every, bool draws,
          const std::function<std::string()>& page);

} // namespace lamella::cli
