/// `lamella serve`: the service in this process, until a signal.
#pragma once

#include "config/settings.hpp"

namespace lamella::cli {

/// Serves until SIGTERM or SIGINT (drains; a second one hurries), until an operator drains it
/// through the admin listener, or until the pipeline cannot be kept alive. Returns the exit code.
/// Throws actors::start_error.
int serve(const config::settings& options);

} // namespace lamella::cli
