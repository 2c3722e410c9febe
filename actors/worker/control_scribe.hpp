/// CAF's side of an authenticated control connection (net/data_plane/control_gate.hpp).
#pragma once

#include "net/link/shm_segment.hpp"

#include <caf/io/scribe.hpp>

namespace caf {
class actor_system;
}

namespace lamella::actors {

enum class control_side { accepted, connected };

/// Adds the socket to CAF's event loop, with mutual TLS first if `tls`. The certificates are read
/// here, so that their errors are thrown here and not in CAF's thread. Throws std::runtime_error.
caf::io::scribe_ptr make_scribe(caf::actor_system& system, net::owned_descriptor socket,
                                control_side side, bool tls);

} // namespace lamella::actors
