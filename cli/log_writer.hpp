/// Log lines on their way to a descriptor that may take them late or never.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

namespace lamella::cli {

/// Writes on a thread of its own: who logs never waits for who reads. What does not fit into the
/// room for waiting lines is dropped and counted, and so are lines that the descriptor refuses
/// (a full disk, a pipe without a reader). Thread-safe.
class log_writer {
public:
  static constexpr size_t room = size_t{1} << 20; ///< bytes of lines that wait

  explicit log_writer(int descriptor);
  /// Gives what waits a second to be written.
  ~log_writer();
  log_writer(const log_writer&) = delete;
  log_writer& operator=(const log_writer&) = delete;

  /// One line with its end. False: it was dropped.
  bool put(std::string_view line);

  /// Waits until all is written that was put before, at most so long. False: it is not.
  bool flush(std::chrono::milliseconds timeout);

  /// Lines dropped so far.
  uint64_t dropped() const;

private:
  struct shared;
  const std::shared_ptr<shared> shared_; ///< with the thread, which may hang in a write for ever
};

} // namespace lamella::cli
