/// Ctrl-C as an event that a command answers, instead of the end of the process.
#pragma once

#include <atomic>
#include <functional>
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

private:
  int end_; ///< an eventfd that wakes the thread
  std::atomic<bool> interrupted_{false};
  std::thread thread_;
};

} // namespace lamella::cli
