/// The log line and the metrics of a request.
#pragma once

#include "actors/request/request_state.hpp"

#include <string>

namespace lamella::actors {

/// Tokens counted so far: prompts once, whatever the number of choices.
net::usage_counts usage_of(const request_state& st);

/// Logs the line of the request and counts its metrics. Call once, before the client can read the
/// end of its answer, so that metrics read afterwards include the request.
void report(request_ptr self, net::request_outcome outcome, int status, const std::string& code);

} // namespace lamella::actors
