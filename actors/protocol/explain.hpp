/// Why an actor ended or did not answer, as a sentence for logs and operators.
#pragma once

#include <caf/fwd.hpp>

#include <string>

namespace lamella::actors {

/// CAF's own errors in words, ours as they describe themselves. "it" is whom the error is about.
std::string explain(caf::actor_system& system, const caf::error& reason);

} // namespace lamella::actors
