/// The load of a serving benchmark: hundreds of streams on the thread of one event loop.
#pragma once

#include "cli/bench/bench_record.hpp"
#include "cli/interrupt.hpp"

namespace lamella::cli {

/// Runs it to its end, or to Ctrl-C. `exact`: the server takes ignore_eos, and an answer of another
/// length is a failure.
bench_result run_load(const net::http_url& url, const std::string& key,
                      const bench_serve_options& options, const prompt_source& prompts, bool exact,
                      interrupts& signals);

} // namespace lamella::cli
