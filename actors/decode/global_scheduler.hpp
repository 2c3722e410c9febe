/// GLOBAL SCHEDULER: admission and placement.
#pragma once

#include "actors/decode/global_scheduler_state.hpp"

namespace lamella::actors {

global_scheduler_actor::behavior_type
global_scheduler(scheduler_ptr self, global_scheduler_config config, kv_allocator_actor allocator);

} // namespace lamella::actors
