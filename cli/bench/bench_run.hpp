/// The load of a serving benchmark: hundreds of streams on the thread of one event loop.
#pragma once

#include "cli/bench/load/workload.hpp"
#include "cli/interrupt.hpp"

namespace lamella::cli {

/// How many requests a run with these options begins, where --duration does not end it before.
uint64_t requests_of(const bench_serve_options& options, const workload& work);

/// Runs it to its end, or to Ctrl-C, with the requests of `work` from options.first_index on.
/// `exact`: the server takes ignore_eos, and an answer of another length is a failure.
bench_result run_load(const net::http_url& url, const std::string& key,
                      const bench_serve_options& options, const workload& work, bool exact,
                      interrupts& signals);

} // namespace lamella::cli
