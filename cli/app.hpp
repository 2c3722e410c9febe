/// The tree of commands in CLI11, and the run of a command line.
#pragma once

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace lamella::cli {

/// Builds the tree from commands(). The chosen command is stored to `chosen` by parsing.
std::unique_ptr<CLI::App> make_app(std::function<int()>& chosen);

/// Runs one command line, program name first. Prints errors; returns the exit code. No exception
/// leaves it.
int run(int argc, const char* const* argv);

/// What is wrong with a word of this command line, if it is an unknown command or flag: the message
/// and the nearest known one. Empty message otherwise.
struct unknown_word {
  std::string message;
  std::string hint;
};
unknown_word find_unknown_word(const CLI::App& app, const std::vector<std::string>& words);

/// Whether this stream may be coloured: a terminal, and neither NO_COLOR nor TERM=dumb.
bool use_color(int descriptor);

/// `lamella: error: ...` and `hint: ...` on standard error.
void print_error(const std::string& message, const std::string& hint);
void print_warning(const std::string& message);

} // namespace lamella::cli
