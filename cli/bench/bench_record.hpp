/// The options of a serving benchmark, and what it records.
#pragma once

#include "cli/bench/bench_load.hpp"
#include "cli/bench/load/lengths.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace lamella::cli {

/// Limits on the latencies of a request: ttft, tpot, e2el.
struct bench_slos {
  std::map<std::string, double> ms, slowdown;
  bool empty() const { return ms.empty() && slowdown.empty(); }
};

/// Where neither --requests nor --duration says otherwise.
constexpr uint64_t requests_default = 64;

struct bench_serve_options {
  bench_endpoint endpoint = bench_endpoint::completions;
  std::string model; ///< empty: the first one the server lists
  bool concurrency_given = false;
  uint32_t concurrency = 8;   ///< closed loop: users that each wait for their answer
  std::optional<double> rate; ///< open loop instead: Poisson arrivals per second
  std::vector<double> rates;  ///< a run at each of them, one after the other
  std::optional<uint64_t> requests;
  std::optional<double> duration_s; ///< no new requests after it
  uint64_t seed = 0;
  length_distribution input_len{128}, output_len{128};
  bool output_len_given = false; ///< else a trace or a dataset says how long answers are
  std::string prompt_file, trace, dataset;
  double trace_speed = 1;   ///< arrivals of a trace come so many times as fast
  uint32_t turns = 1;       ///< of a conversation of the dataset, each with the answers before it
  double think_s = 0;       ///< mean pause between an answer and the next turn
  uint64_t first_index = 0; ///< of the workload; another run has other prompts
  uint32_t warm_up = 1;
  uint32_t max_in_flight = 4096; ///< open loop: later arrivals wait, and waiting counts as latency
  double timeout_s = 600;
  bench_slos goodput;
  bool slowdowns = false; ///< measure requests that are alone before the load
  bool json = false;
  std::string save, save_format, svg;
  std::string command_line;

  /// An open loop with the arrivals of the trace.
  bool trace_arrivals() const {
    return !trace.empty() && !concurrency_given && !rate && rates.empty();
  }
};

/// One request as seen by the client; times since the start of the run.
struct bench_record {
  using time = std::chrono::nanoseconds;
  time intended{}, sent{}, first{}, last{}, end{};
  std::vector<float> gaps_ms; ///< between pieces of text
  uint64_t prompt_tokens = 0, completion_tokens = 0;
  uint64_t cached_tokens = 0; ///< prompt tokens from the prefix cache of the server
  uint64_t conversation = 0;  ///< number of the request; all turns of a conversation have the same
  uint32_t turn = 1;          ///< of its conversation
  uint32_t pieces = 0;        ///< events with text
  bool usage = false;         ///< the server reported token counts
  std::string finish;         ///< finish_reason
  std::string error;          ///< code; empty for a success
};

struct bench_result {
  std::vector<bench_record> records; ///< in the order they were begun
  std::vector<bench_record> alone;   ///< of requests that had the server for themselves
  double began_unix_s = 0;           ///< the start, in seconds since 1970
  double duration_s = 0;             ///< from the start to the last answer's end
  uint64_t begun = 0;                ///< requests or, where they have turns, conversations
  double arrivals_s = 0;             ///< from the start to the last intended send of a first turn
  double cpu_share = 0;              ///< of one core, by this program
  double lag_p99_ms = 0;             ///< how late this program served its timers
  std::vector<std::string> notes;    ///< what a reader must know to trust the numbers
  bool interrupted = false;
  bool shares_prefixes = false; ///< prompts begin alike, as a trace or conversations have it
};

} // namespace lamella::cli
