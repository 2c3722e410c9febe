/// `lamella bench decode` and `bench prefill`: the pipeline without HTTP, measured from within.
#pragma once

#include "config/settings.hpp"

#include <cstdint>
#include <vector>

namespace lamella::cli {

struct bench_options {
  std::vector<uint32_t> batches{1, 8, 32, 64};
  std::vector<uint32_t> contexts{128, 1024};
  std::vector<uint32_t> prefills{512, 2048}; ///< tokens of one prompt; empty: not measured
  uint32_t iterations = 24;                  ///< per row, after a warm-up of four
  uint32_t repeats = 3;                      ///< of each prefill
  bool json = false;
};

/// Real prompts of random tokens are prefilled, joined to a batch and decoded; best and median of
/// the iterations are printed beside the machine's read bandwidth, measured before and after.
/// Returns the exit code. Throws actors::start_error.
int bench_decode(config::settings settings, const bench_options& options);

} // namespace lamella::cli
