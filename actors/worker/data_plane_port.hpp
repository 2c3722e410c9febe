/// The link port over the real data plane: shared memory on one host, TCP between hosts.
#pragma once

#include "actors/machine/link_port.hpp"

#include <string>

namespace lamella::actors {

/// Each port listens on a unix socket of this host and on `listen` (ADDRESS:PORT, port 0: any).
/// Ends are usable at once; streams wait until both sides are connected. Link events are logged.
link_port_maker data_plane_links(std::string listen);

} // namespace lamella::actors
