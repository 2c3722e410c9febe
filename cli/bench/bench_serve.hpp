/// `lamella bench serve`: load against an OpenAI-style server, measured from the client side.
#pragma once

#include "cli/bench/bench_record.hpp"

namespace lamella::cli {

/// Warms up, checks the token counts of the server, and runs the load. Throws command_error.
bench_result run_bench(const server_choice& server, bench_serve_options& options);

} // namespace lamella::cli
