/// MASK MAKER: computes token masks of structured output.
#pragma once

#include "actors/shared/mask_messages.hpp"

namespace lamella::actors {

struct mask_maker_state {
  const char* name = "mask_maker";
};

/// Computes for milliseconds at a time, so it needs a thread of its own: spawn it detached.
/// Stateless. Answers `ec::mask_refused` where one mask would take too much work.
mask_maker_actor::behavior_type
mask_maker(mask_maker_actor::stateful_pointer<mask_maker_state> self);

} // namespace lamella::actors
