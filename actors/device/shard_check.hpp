/// An attention shard's side of a parity check.
#pragma once

#include "actors/device/attention_shard_state.hpp"
#include "actors/protocol/parity.hpp"

namespace lamella::actors {

/// Reads the slots in the gaps of attention; answered when the device is done (reliability A6).
caf::result<kv_checked> check(shard_ptr self, const kv_check& x);

} // namespace lamella::actors
