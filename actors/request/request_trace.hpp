/// The spans of a REQUEST: one for the whole, with children for its stages.
#pragma once

#include "actors/request/request_state.hpp"
#include "net/metrics/metrics.hpp"

namespace lamella::actors {

/// How a request ended, in the words of its line in the log.
struct request_ending {
  net::request_outcome outcome{};
  int status = 0;
  std::string code; ///< of its error; may be empty
  net::usage_counts usage;
  std::chrono::steady_clock::time_point when;
};

/// Decides whether the request gets spans: by its traceparent, else by chance.
void begin_trace(request_state& st);

/// Hands the spans over, where there shall be some: of the times that the request has noted.
void end_trace(const request_state& st, const request_ending& x);

} // namespace lamella::actors
