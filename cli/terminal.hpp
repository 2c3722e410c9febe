/// What commands show on a terminal: progress bars, and nothing where there is no terminal.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

namespace lamella::cli {

/// Is this file descriptor a terminal that may be drawn on?
bool is_terminal(int descriptor);

/// Takes a line without its end.
using line_writer = std::function<void(const std::string&)>;

/// Progress of loading: one bar that is redrawn on a terminal, a line every five seconds elsewhere.
class progress_bar {
public:
  /// Draws on standard error.
  progress_bar();
  /// Says lines, wherever that is.
  explicit progress_bar(line_writer says);
  ~progress_bar();
  progress_bar(const progress_bar&) = delete;
  progress_bar& operator=(const progress_bar&) = delete;

  void update(const std::string& phase, uint64_t done, uint64_t total);

private:
  bool terminal_;
  line_writer says_;
  std::chrono::steady_clock::time_point began_, drawn_;
  std::string phase_;
  bool open_ = false; ///< a bar stands on the current line
};

} // namespace lamella::cli
