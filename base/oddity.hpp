/// Rare but allowed behaviour, triggered by a simulation (reliability D3, BUGGIFY).
///
/// A place takes another of its allowed paths: short slots, an early deadline. Off unless a
/// simulation arms them; off, a pass costs one relaxed load.
#pragma once

#include <atomic>
#include <cstdint>

namespace lamella {

enum class oddity : uint8_t {
  slots_short,    ///< an allocator reports a shortage although slots are free
  early_deadline, ///< a decode iteration gets a timeout of a millisecond
  small_sweep,    ///< the parity keeper gets one slot
  remake_fails,   ///< digests of a transfer between members differ
  epoch_again,    ///< a complete epoch is opened once more, with the next number
};
constexpr uint32_t oddities = 5;

namespace odd {

/// One bit per place that may fire.
inline std::atomic<uint32_t> armed{0};

/// Which of them fire in a run, and at which pass, is a function of the seed: half of them may,
/// each at one pass in ten.
void arm(uint64_t seed);
void disarm();

/// Number of triggered passes since they were armed.
uint64_t fired();

bool draw(oddity what);

} // namespace odd

/// Whether this pass is triggered.
inline bool is_odd(oddity what) {
  return (odd::armed.load(std::memory_order_relaxed) >> static_cast<unsigned>(what) & 1) != 0
         && odd::draw(what);
}

} // namespace lamella
