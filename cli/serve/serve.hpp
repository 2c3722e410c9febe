/// `lamella serve`: the service in this process, until a signal.
#pragma once

#include "cli/configuration.hpp"

namespace lamella::cli {

/// Serves until SIGTERM or SIGINT (drains; a second one hurries), until an operator drains it
/// through the admin listener, or until the pipeline fails for good. SIGHUP rereads the
/// configuration, from these flags. Returns the exit code. Throws command_error and
/// actors::start_error.
int serve(const configuration_flags& flags);

} // namespace lamella::cli
