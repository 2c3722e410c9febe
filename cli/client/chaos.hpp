/// `lamella chaos`: injects faults into workers of a running service under load and checks every
/// answer.
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
  double every_s = 5;            ///< between faults
  double for_s = 30;             ///< no fault after this
  std::optional<double> after_s; ///< before the first one; nothing: every_s, two seconds at most
  std::optional<uint32_t> count; ///< maximum number of faults
  double duration_s = 0.5;       ///< of pause and slow
  uint32_t streams = 16;         ///< concurrent streams
  uint32_t tokens = 256;         ///< of each
  uint64_t seed = 1;
};

/// One fault, and its effect on the streams.
struct chaos_injury {
  std::string seat;
  std::chrono::nanoseconds at{0}; ///< since the start
  uint32_t streams = 0;           ///< active streams
  /// Longest silence of each of them that started before and ended after the fault, or started
  /// before the next one, in milliseconds.
  std::vector<double> pauses_ms;
  uint64_t rebuilt_tokens = 0; ///< whose KV was recomputed, until the next fault
};

struct chaos_report {
  std::vector<chaos_injury> injuries;
  uint64_t answers = 0;    ///< complete ones, with the right text
  uint64_t lost = 0;       ///< accepted, but the answer is incomplete
  uint64_t wrong = 0;      ///< with another text than without faults
  uint64_t duplicates = 0; ///< with more tokens than requested
  uint64_t refused = 0;    ///< not accepted (429, 503): retried
  double calm_gap_ms = 0;  ///< longest silence of a stream before the first fault
  std::map<std::string, uint64_t> recoveries; ///< of requests, by method
  double prefill_rate = 0;         ///< tokens/s of prefill alone; 0: no KV was recomputed
  std::vector<std::string> errors; ///< the first few errors of lost answers
  bool interrupted = false;
  bool passed() const { return lost + wrong + duplicates == 0 && !injuries.empty(); }
};

/// Limit of the silence of the last stream after its KV was lost: a second to detect the loss and
/// start, and 1.3 times the tokens at the rate of prefill alone. In milliseconds.
double rebuild_limit_ms(uint64_t tokens, double tokens_per_s);

/// Requests each answer once without faults, then repeatedly while it injects faults. Where KV was
/// recomputed, prefill of that length is timed afterwards. Throws command_error, http_call_error.
chaos_report run_chaos(const server_choice& server, const chaos_options& options,
                       interrupts& signals);

/// The report as text; its last line is one JSON object (decisions, Interfaces).
std::string chaos_page(const chaos_report& x, const chaos_options& options);

} // namespace lamella::cli
