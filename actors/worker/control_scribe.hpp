/// CAF's side of a control connection whose peer has proved itself
/// (net/data_plane/control_gate.hpp).
#pragma once

#include "net/link/shm_segment.hpp"

#include <caf/io/scribe.hpp>

namespace caf {
class actor_system;
}

namespace lamella::actors {

enum class control_side { accepted, connected };

/// Takes the socket into CAF's event loop, with mutual TLS before anything else where `tls`; the
/// certificates are read here, so what is wrong with them is thrown here and never in CAF's thread.
/// Throws std::runtime_error.
caf::io::scribe_ptr make_scribe(caf::actor_system& system, net::owned_descriptor socket,
                                control_side side, bool tls);

} // namespace lamella::actors
