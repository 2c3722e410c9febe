/// Numbers that the live service and its simulators share.
#pragma once

#include <cstdint>

namespace lamella::scheduler::limits {

/// Slots that a sequence gets beyond its prompt, and again whenever it runs short.
constexpr uint32_t window_slots = 32;

/// Slots are asked for when so few are left, so that the answer comes before they are needed.
constexpr uint32_t grow_below = 8;

/// Prompts in one iteration: bounds the spans of a launch.
constexpr uint32_t prompts_per_iteration = 64;

/// Prompts of a batch that have begun and have not ended: bounds their seats, which come on top of
/// those of the sequences that decode (gpu::seats_max is enough for both).
constexpr uint32_t prompts_begun = 4096;

/// Slots of a table that new work leaves free while other sequences run, so that these can grow: a
/// twentieth.
constexpr uint32_t kept_free_of(uint32_t slots) { return slots / 20; }

/// Slots that a prompt needs to start: its tokens and a window for each of its choices.
constexpr uint32_t slots_to_start(uint32_t tokens, uint32_t window, uint32_t choices = 1) {
  return tokens + choices * window;
}

} // namespace lamella::scheduler::limits
