/// The options of a serving benchmark, and what it records.
#pragma once

#include "cli/bench/bench_load.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace lamella::cli {

struct bench_serve_options {
  bench_endpoint endpoint = bench_endpoint::completions;
  std::string model;          ///< empty: the first one the server lists
  uint32_t concurrency = 8;   ///< closed loop: users that each wait for their answer
  std::optional<double> rate; ///< open loop instead: Poisson arrivals per second
  std::optional<uint64_t> requests;
  std::optional<double> duration_s; ///< no new requests after it
  uint64_t seed = 0;
  uint32_t input_tokens = 128;
  uint32_t output_tokens = 128;
  std::string prompt_file;
  uint32_t warm_up = 1;
  uint32_t max_in_flight = 4096; ///< open loop: later arrivals wait, and waiting counts as latency
  double timeout_s = 600;
  std::map<std::string, double> goodput; ///< ttft, tpot, e2el: milliseconds
  bool json = false;
  std::string save;
  std::string command_line;
};

/// One request as seen by the client; times since the start of the run.
struct bench_record {
  using time = std::chrono::nanoseconds;
  time intended{}, sent{}, first{}, last{}, end{};
  std::vector<float> gaps_ms; ///< between pieces of text
  uint64_t prompt_tokens = 0, completion_tokens = 0;
  uint64_t cached_tokens = 0; ///< prompt tokens from the prefix cache of the server
  uint32_t pieces = 0;        ///< events with text
  bool usage = false;         ///< the server reported token counts
  std::string finish;         ///< finish_reason
  std::string error;          ///< code; empty for a success
};

struct bench_result {
  std::vector<bench_record> records; ///< in the order they were begun
  double duration_s = 0;             ///< from the start to the last answer's end
  double arrivals_s = 0;             ///< from the start to the last intended send
  double cpu_share = 0;              ///< of one core, by this program
  double lag_p99_ms = 0;             ///< how late this program served its timers
  std::vector<std::string> notes;    ///< what a reader must know to trust the numbers
  bool interrupted = false;
};

} // namespace lamella::cli
