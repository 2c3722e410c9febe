/// `lamella bench decode`: the pipeline without HTTP, measured from within.
#pragma once

#include "config/settings.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace lamella::cli {

struct bench_options {
  // Empty lists are filled: with a few sizes, or with all that a profile needs.
  std::vector<uint32_t> batches;
  std::vector<uint32_t> contexts;
  std::vector<uint32_t> prefills; ///< tokens of one prompt
  uint32_t iterations = 0;        ///< per row, after a warm-up of four; 0: 24, for a profile 48
  uint32_t repeats = 3;           ///< of each prefill
  std::string profile;            ///< write the measurements here, for simulations; or empty
  bool json = false;
};

/// Default sizes: for a profile they cover the expected load of the service.
void fill_batches(bench_options& options, uint32_t seats);
void fill_sizes(bench_options& options, uint32_t chunk_tokens, uint32_t context_tokens);

/// Real prompts of random tokens are prefilled, joined to a batch and decoded; best and median of
/// the iterations are printed with the machine's read bandwidth, measured before and after, and
/// with the processor time that the actors of this process took per iteration. For a profile every
/// batch is also measured concurrently with a prompt. Returns the exit code. Throws
/// actors::start_error, command_error.
int bench_decode(config::settings settings, bench_options options);

} // namespace lamella::cli
