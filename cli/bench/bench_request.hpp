/// One request of a serving benchmark, and its result.
#pragma once

#include "cli/bench/load/workload.hpp"

#include <string>
#include <string_view>

namespace lamella::cli {

/// What is sent; `exact` asks the server to stop at the token limit and nowhere before.
std::string request_body(const bench_serve_options& x, const bench_item& item, bool exact);

/// Where it is sent to.
std::string path_of(bench_endpoint endpoint);

/// One event of a stream, into its record. An error event and what is not JSON set the error, and
/// so does an answer of more than 16 MiB where `answer` takes its text.
void read_event(bench_record& r, std::string_view data, std::chrono::nanoseconds now,
                std::string* answer = nullptr);

/// The word by which a failure is counted: of a call that got no answer, and of an answer that is
/// no success ("429 queue_full").
std::string code_of(net::http_call_error::reason why);
std::string code_of(const net::http_reply& reply);

} // namespace lamella::cli
