/// `lamella bench perplexity`: how well a model predicts a text, and what number types change.
#pragma once

#include "actors/protocol/values.hpp"
#include "config/settings.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace lamella::cli {

struct perplexity_options {
  std::string text;                 ///< file
  std::vector<std::string> against; ///< other model files, of other number types
  /// Of K and V, and of what is sent where that must be alike; empty: the configured one.
  std::vector<config::number_type> kv;
  uint32_t window = 2048; ///< tokens that are computed together; or the context
  bool json = false;
};

/// Tokens of a text that are computed together, of which the last `scored` count.
struct text_window {
  size_t first = 0, tokens = 0, scored = 0;
};

/// Windows over `tokens` tokens, each half over the one before: every token but the first counts
/// once, and all behind the first half window have half a window before them. `window`: at least 2.
std::vector<text_window> windows_of(size_t tokens, uint32_t window);

/// How the tokens of a text are predicted.
struct predictions {
  std::string model, kv;                     ///< of what
  std::vector<actors::sampled_token> tokens; ///< all but the first
};

/// e to the mean of the negative log probabilities.
double perplexity_of(std::span<const actors::sampled_token> tokens);

/// How far the log probabilities of two predictions of one text are apart.
struct prediction_difference {
  double mean = 0, largest = 0; ///< magnitudes
  double same_best = 1;         ///< share of tokens in whose place both have the same best one
};
prediction_difference difference_of(std::span<const actors::sampled_token> a,
                                    std::span<const actors::sampled_token> b);

/// Computes the text with each model and each type of K and V, by the service's own pipeline in
/// this process, and prints the perplexities and their differences from the first one. Returns the
/// exit code. Throws actors::start_error, command_error.
int bench_perplexity(const config::settings& settings, const perplexity_options& options);

} // namespace lamella::cli
