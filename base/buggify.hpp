/// Rare but allowed behaviour, triggered by a simulation (reliability D3, BUGGIFY).
///
/// A place takes another of its allowed paths: short slots, an early deadline. Off unless a
/// simulation arms them; off, a pass costs one relaxed load.
#pragma once

#include <atomic>
#include <cstdint>

namespace lamella {

enum class buggify_point : uint8_t {
  slots_short,    ///< an allocator says that slots are short, though some are free
  early_deadline, ///< an iteration of decoding gets a millisecond
  small_sweep,    ///< whoever keeps the parity gets one slot
  remake_fails,   ///< what a member has got of another one is not what that has sent
  other_pipeline, ///< an epoch's batches rotate where others would be chosen, or the reverse
  epoch_again,    ///< an epoch that is whole is opened once more, with the next number
  pipeline_fails, ///< the pipeline of a planned epoch cannot be made
};
constexpr uint32_t buggify_points = 7;

namespace odd {

/// One bit per place that may fire.
inline std::atomic<uint32_t> armed{0};

/// Which of them fire in a run, and at which pass, is a function of the seed: half of them may,
/// each at one pass in ten.
void arm(uint64_t seed);
void disarm();

/// Number of triggered passes since they were armed.
uint64_t fired();

bool draw(buggify_point what);

} // namespace odd

/// Shall this pass be odd?
inline bool buggify(buggify_point what) {
  return (odd::armed.load(std::memory_order_relaxed) >> static_cast<unsigned>(what) & 1) != 0
         && odd::draw(what);
}

} // namespace lamella
