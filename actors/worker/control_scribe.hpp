/// CAF's side of an authenticated control connection (net/data_plane/control_gate.hpp).
#pragma once

#include "net/link/shm_segment.hpp"

#include <caf/io/scribe.hpp>

#include <string_view>

namespace caf {
class actor_system;
}

namespace lamella::actors {

enum class control_side { accepted, connected };

/// Bytes of a message, and messages within a message (an error carries one). CAF reads a message as
/// long and as deep as its peer says, on the stack; the longest and the deepest of Lamella are far
/// below: a trace of seconds has some MiB, an error in a reply is the second level.
constexpr size_t control_message_max = 64 << 20, control_nesting_max = 32;

/// Whether the payload of a message in CAF's binary format nests more than control_nesting_max
/// messages, or has a value of a configuration, which nests without a bound. A message of Lamella's
/// own types nests nothing: numbers of users (seeds, penalties, token masks) may look like
/// anything. In any other message, lists of types are counted, wherever they are. Linear.
bool nests_too_deeply(std::string_view payload);

/// Adds the socket to CAF's event loop, with mutual TLS first if `tls`. The certificates are read
/// here, so that their errors are thrown here and not in CAF's thread. The connection ends, with an
/// error in the log, where the peer sends a message beyond the limits above. Throws
/// std::runtime_error.
caf::io::scribe_ptr make_scribe(caf::actor_system& system, net::owned_descriptor socket,
                                control_side side, bool tls);

} // namespace lamella::actors
