/// Ctrl-C as an event that a command answers, instead of the end of the process.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace lamella::cli {

/// While it lives, SIGINT goes to a descriptor. Make it before other threads, which inherit the
/// mask; at most one at a time.
class interrupts {
public:
  interrupts();
  ~interrupts();
  interrupts(const interrupts&) = delete;
  interrupts& operator=(const interrupts&) = delete;

  /// Readable when Ctrl-C was pressed.
  int descriptor() const { return signals_; }
  /// Takes all pending ones; true if there was one.
  bool take();

private:
  int signals_;
};

/// Calls `on_interrupt` on a thread of its own, at most once, if Ctrl-C is pressed while this
/// lives.
class interrupt_watch {
public:
  interrupt_watch(interrupts& from, std::function<void()> on_interrupt);
  ~interrupt_watch();
  interrupt_watch(const interrupt_watch&) = delete;
  interrupt_watch& operator=(const interrupt_watch&) = delete;

  bool interrupted() const { return interrupted_; }

  /// Waits that long, or until Ctrl-C is pressed; true if it was. Not for `on_interrupt`.
  bool wait_for(std::chrono::milliseconds time);

private:
  int end_; ///< an eventfd that wakes the thread
  std::atomic<bool> interrupted_{false};
  std::mutex mutex_;
  std::condition_variable wakes_; ///< once it is interrupted
  std::thread thread_;
};

} // namespace lamella::cli
