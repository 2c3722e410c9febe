/// `lamella bench serve`: load against an OpenAI-style server, measured from the client side.
#pragma once

#include "cli/bench/bench_record.hpp"

#include <functional>

namespace lamella::cli {

/// Warms up, checks the token counts of the server, and runs the load. Throws command_error.
bench_result run_bench(const server_choice& server, bench_serve_options& options);

/// The same with a run at each of options.rates, each with other prompts than those before it.
/// Calls `on_run` with the options and the result of each; a run that was interrupted is the last.
void run_sweep(const server_choice& server, bench_serve_options& options,
               const std::function<void(const bench_serve_options&, bench_result)>& on_run);

} // namespace lamella::cli
