/// Request traces: who comes when, with how long a prompt, wanting how many tokens.
#pragma once

#include "scheduler/planner/cost/csv.hpp"

#include <cstdint>
#include <istream>
#include <vector>

namespace lamella::scheduler {

struct trace_request {
  double arrival_s = 0; ///< since the first request
  uint32_t prompt_tokens = 0;
  uint32_t output_tokens = 0;
  std::vector<uint32_t> prefix_blocks; ///< ids of its 512-token prefix blocks, where known
  friend bool operator==(const trace_request&, const trace_request&) = default;
};

using request_trace = std::vector<trace_request>;

struct trace_limits {
  uint32_t tokens_max = 10'000'000; ///< of a prompt or an output
  size_t requests_max = 10'000'000;
};

/// Reads a trace: our own columns (arrival_s, prompt_tokens, output_tokens, optional hash_ids), the
/// Azure originals (TIMESTAMP, ContextTokens, GeneratedTokens) or Mooncake's JSON lines
/// (timestamp in ms, input_length, output_length, hash_ids); told apart by the first line. Sorted
/// by arrival, which begins at 0. Throws table_error, with the line where one is to blame.
request_trace read_trace(std::istream& in, const trace_limits& limits = {});

void write_trace(std::ostream& out, const request_trace& trace);

struct trace_summary {
  size_t requests = 0;
  double prompt_mean = 0, output_mean = 0, span_s = 0;
};
trace_summary summary_of(const request_trace& trace);

/// Lengths drawn evenly from [0.9 l, 1.1 l], in and out independently, all at time 0 (N-M25).
request_trace uniform_trace(size_t requests, uint32_t prompt, uint32_t output, uint64_t seed);

/// The same requests at Poisson arrivals of `rate` per second; `shape` below 1 makes bursts (gamma
/// gaps with the same mean), 1 is Poisson.
request_trace with_arrivals(request_trace trace, double rate, uint64_t seed, double shape = 1);

/// `share` of the requests begin with one of `prefixes` common prefixes of whole 512-token blocks.
request_trace with_shared_prefixes(request_trace trace, double share, uint32_t prefixes,
                                   uint64_t seed);

/// The same requests in another order; arrivals stay where they are.
request_trace shuffled(request_trace trace, uint64_t seed);

} // namespace lamella::scheduler
