/// What `lamella bench serve` and `lamella bench compare` have in common: the flags of their load,
/// and how they record what they measured.
#pragma once

#include "cli/app.hpp"
#include "cli/bench/bench_record.hpp"

namespace lamella::cli {

/// Adds the flags that say which requests are sent, and when. `options` must outlive the parsing.
void add_load_flags(CLI::App& app, bench_serve_options& options);

/// How this program was called, for the record.
std::string own_command_line();

/// Writes the file that `flag` names. Throws command_error (1).
void save_result(const std::string& path, const std::string& text, const char* flag = "--save");

} // namespace lamella::cli
