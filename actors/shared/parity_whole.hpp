/// What a PARITY KEEPER tells MEMBERSHIP.
#pragma once

#include <caf/all.hpp>

namespace lamella::actors {

/// Sent with an epoch and a cell (uint64_t, uint32_t), once: all KV in use there has had its
/// parity, so that a shard of it can be reconstructed. Not part of MEMBERSHIP's interface: the
/// keeper has its handle as that of any actor.
using parity_whole_atom = caf::atom_constant<caf::atom("whole")>;
constexpr parity_whole_atom parity_whole_atom_v{};

} // namespace lamella::actors
