/// MASK MAKER: finds out what may come next in answers that are held to a format.
#pragma once

#include "actors/protocol/mask_messages.hpp"

namespace lamella::actors {

struct mask_maker_state {
  const char* name = "mask_maker";
};

/// Computes for milliseconds at a time, so it needs a thread of its own wherever others serve
/// beside it: spawn it detached. Keeps nothing.
mask_maker_actor::behavior_type
mask_maker(mask_maker_actor::stateful_pointer<mask_maker_state> self);

} // namespace lamella::actors
