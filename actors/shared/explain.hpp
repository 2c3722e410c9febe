/// Why an actor ended or did not answer, as a sentence for logs and operators.
#pragma once

#include <caf/fwd.hpp>

#include <string>

namespace lamella::actors {

/// CAF's own errors in words, errors of `ec` by describe(). "it" is the actor that failed.
std::string explain(caf::actor_system& system, const caf::error& reason);

} // namespace lamella::actors
