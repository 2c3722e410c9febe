/// `lamella chaos`: injures workers of a running service under load and checks every answer.
#pragma once

#include "cli/client.hpp"
#include "cli/interrupt.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace lamella::cli {

struct chaos_options {
  std::string admin = "127.0.0.1:8001";
  std::string admin_key_file;
  std::string action = "kill";
  std::string target;            ///< a seat, a role, role/name, or empty: any worker
  double every_s = 5;            ///< between injuries
  double for_s = 30;             ///< no injury after this
  std::optional<double> after_s; ///< before the first one; nothing: every_s, two seconds at most
  std::optional<uint32_t> count; ///< injuries at most
  double duration_s = 0.5;       ///< of pause and slow
  uint32_t streams = 16;         ///< answers asked for at the same time
  uint32_t tokens = 256;         ///< of each
  uint64_t seed = 1;
};

/// One injury, and what the streams felt of it.
struct chaos_injury {
  std::string seat;
  std::chrono::nanoseconds at{0}; ///< since the begin
  uint32_t streams = 0;           ///< that were being answered
  /// Longest silence of each of them that began before and ended after the injury, or began within
  /// the time to the next one, in milliseconds.
  std::vector<double> pauses_ms;
  uint64_t rebuilt_tokens = 0; ///< whose KV was computed again, until the next injury
};

struct chaos_report {
  std::vector<chaos_injury> injuries;
  uint64_t answers = 0;    ///< complete ones, with the right text
  uint64_t lost = 0;       ///< accepted and not answered to the end
  uint64_t wrong = 0;      ///< with another text than without injuries
  uint64_t duplicates = 0; ///< with more tokens than asked for
  uint64_t refused = 0;    ///< not accepted (429, 503): asked again
  double calm_gap_ms = 0;  ///< longest silence of a stream before the first injury
  std::map<std::string, uint64_t> recoveries; ///< of requests, by each method the service knows
  double prefill_rate = 0;         ///< tokens/s of the service alone; 0: no KV was computed again
  std::vector<std::string> errors; ///< of what was lost, the first few
  bool interrupted = false;
  bool passed() const { return lost + wrong + duplicates == 0 && !injuries.empty(); }
};

/// What the last of the streams may be silent for after its KV was lost: a second to see the loss
/// and begin, and 1.3 times the tokens at the rate of prefill alone. In milliseconds.
double rebuild_limit_ms(uint64_t tokens, double tokens_per_s);

/// Asks for each answer once without injuries, then again and again while it injures. Where
/// KV was computed again, prompts of that length are timed afterwards. Throws command_error,
/// http_call_error.
chaos_report run_chaos(const server_choice& server, const chaos_options& options,
                       interrupts& signals);

/// The page for people; its last line is one JSON object (decisions, Interfaces).
std::string chaos_page(const chaos_report& x, const chaos_options& options);

} // namespace lamella::cli
