/// The list of requests that a console shows.
#pragma once

#include "actors/gateway/gateway_state.hpp"

#include <chrono>
#include <string>
#include <vector>

namespace lamella::actors {

constexpr size_t requests_listed_max = 50;

/// One request as of a moment.
struct listed_request {
  request_id number{}; ///< its own, where clients may give two the same id
  std::string id;      ///< its X-Request-Id
  net::api_route route{};
  request_note::state where{};
  double seconds = 0; ///< since it came
  double paused = 0;  ///< seconds of its present pause by a loss; 0: it goes on
  uint64_t prompt_tokens = 0, generated = 0;
  uint32_t recoveries = 0;
};

/// Those of a gateway, in the order of its map.
std::vector<listed_request> requests_of(const gateway_state& st,
                                        std::chrono::steady_clock::time_point now);

/// At most requests_listed_max of them: first those that are paused, the longest pause first, then
/// the others, the oldest first.
std::vector<listed_request> most_urgent(std::vector<listed_request> all);

/// As a JSON array.
std::string requests_json(const std::vector<listed_request>& all);

} // namespace lamella::actors
