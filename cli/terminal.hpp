/// What commands show on a terminal: progress bars, and nothing where there is no terminal.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace lamella::cli {

/// Is this file descriptor a terminal that may be drawn on?
bool is_terminal(int descriptor);

/// Progress of loading: one bar that is redrawn on a terminal, a line every five seconds elsewhere.
class progress_bar {
public:
  /// Draws on standard error.
  progress_bar();
  ~progress_bar();
  progress_bar(const progress_bar&) = delete;
  progress_bar& operator=(const progress_bar&) = delete;

  void update(const std::string& phase, uint64_t done, uint64_t total);

private:
  bool terminal_;
  std::chrono::steady_clock::time_point began_, drawn_;
  std::string phase_;
  bool open_ = false; ///< a bar stands on the current line
};

} // namespace lamella::cli
