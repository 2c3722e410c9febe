/// The load of a serving benchmark: prompts and arrivals.
#pragma once

#include "cli/client.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

namespace lamella::cli {

/// Arrivals of an open loop: a Poisson process, so gaps are exponential and users do not wait for
/// one another. The same seed gives the same arrivals.
class poisson_arrivals {
public:
  /// `rate` in requests per second, > 0.
  poisson_arrivals(double rate, uint64_t seed) : rate_{rate}, random_{seed} {}
  /// Time of the next arrival since the start.
  std::chrono::nanoseconds next();

private:
  double rate_;
  std::mt19937_64 random_;
  double seconds_ = 0;
};

/// The route that is measured.
enum class bench_endpoint { completions, chat };

/// Beginnings that prompts share: equal ids are equal tokens in all prompts of the same `text`.
struct shared_blocks {
  /// Of a block in a trace (Mooncake's `hash_ids`), in tokens.
  static constexpr uint32_t tokens = 512;
  std::span<const uint32_t> ids;
  uint64_t text = 0;
};

/// Prompts of one length in tokens, or those of a file. Prompt i depends on the seed and on i only;
/// but for blocks that are asked for, no two share a prefix, so that the prefix cache has no hits.
class prompt_source {
public:
  /// Each line that is not empty is a prompt; they are used in turn. Throws command_error (66, 65).
  static prompt_source from_file(const std::string& path);

  /// Random words. Where the server has /tokenize, exactly as long as asked, as the server counts
  /// them; elsewhere approximately, and counted() is false. Throws command_error when a length of
  /// `tokens` cannot be met with the server's tokeniser.
  static prompt_source synthetic(net::http_client& server, const std::string& model,
                                 bench_endpoint endpoint, uint32_t tokens, uint64_t seed);

  /// With so many tokens, least() at least; those of a file are as they are. The first words are
  /// those of `shared`, as far as its ids and the length go.
  std::string prompt(uint64_t index, uint32_t tokens = 0, const shared_blocks& shared = {}) const;
  /// Tokens of one word with those that the server adds to each prompt.
  uint32_t least() const { return least_; }
  bool from_file() const { return from_file_; }
  /// Whether the length is exact.
  bool counted() const { return counted_; }

private:
  std::vector<std::string> texts_;  ///< of a file; else words
  std::vector<std::string> starts_; ///< words to begin with
  bool from_file_ = false, counted_ = false;
  uint32_t least_ = 1;
  uint64_t seed_ = 0;
};

/// Tokens of a prompt as the server's /tokenize counts them, special tokens and chat template
/// included unless `special` is false; nothing where there is no such route.
std::optional<uint64_t> count_tokens(net::http_client& server, const std::string& model,
                                     bench_endpoint endpoint, const std::string& prompt,
                                     bool special = true);

} // namespace lamella::cli
