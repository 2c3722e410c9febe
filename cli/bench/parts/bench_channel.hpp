/// `lamella bench channel`: latency and bandwidth of links, compared with plain sockets in the same
/// run.
#pragma once

#include <string>
#include <vector>

namespace lamella::cli {

struct bench_channel_options {
  /// As in net.transport; none: all that this machine has.
  std::vector<std::string> tiers;
  size_t bytes_max = size_t{4} << 20;
  bool json = false;
};

/// One size on one way of sending.
struct bench_channel_row {
  std::string kind; ///< "tier" or "baseline"
  std::string tier; ///< as in net.transport; or plain_tcp, plain_unix
  size_t bytes = 0;
  double p50_us = 0, p99_us = 0; ///< of a round trip with as many bytes each way
  double gb_per_s = 0;           ///< of many frames one way, copied in by the sender; best of 3
};

/// Measures round trips and bandwidth between two processes (in_process: two threads), from 64
/// bytes to 4 MiB, and prints a line or a JSON row for each. Payloads are checked at both ends.
/// Takes some ten seconds. Returns the exit code. Throws std::runtime_error when a wait takes a
/// minute or a requested tier is not available.
int bench_channel(const bench_channel_options& options);

} // namespace lamella::cli
