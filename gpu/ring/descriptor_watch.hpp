/// Sockets that a waiter reads itself, without a thread in between that would have to wake it.
#pragma once

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>

namespace lamella::gpu {

class listener;

/// Descriptors, and who is told when one of them has something to read or room to write. Whoever
/// waits looks at them while awake and sleeps on all of them at once. look() and sleep() are one
/// thread's at a time; the others are thread-safe.
class descriptor_watch {
public:
  /// Throws std::system_error.
  descriptor_watch();
  ~descriptor_watch();
  descriptor_watch(const descriptor_watch&) = delete;
  descriptor_watch& operator=(const descriptor_watch&) = delete;

  /// `ready` is rung, by look() or sleep(), as long as there is something to read or the other
  /// side has gone. Throws std::system_error.
  void add(int descriptor, std::weak_ptr<listener> ready);

  /// Whether the listener is also to be told when there is room to write. The descriptor is
  /// watched.
  void want_room(int descriptor, bool wanted);

  /// Before the descriptor is closed. Its listener may be told once more, by a look under way.
  void remove(int descriptor);

  bool empty() const { return count_.load(std::memory_order_relaxed) == 0; }

  /// Rings those who have something to read. False when there are none. One system call.
  bool look();

  /// As look(), but sleeps for something to read, for the waker, or for the time.
  void sleep(std::chrono::steady_clock::time_point until);

  /// An eventfd: to write to it, in whatever process, ends a sleep, or the next one. A look leaves
  /// it as it is.
  int waker() const { return waker_; }

  /// To be waited for elsewhere: readable when look() would find something.
  int descriptor() const { return set_; }

private:
  bool serve(std::chrono::nanoseconds patience);
  void ring(int descriptor);

  int set_, waker_;
  std::atomic<size_t> count_{0};
  std::mutex mutex_; ///< of the next
  std::map<int, std::weak_ptr<listener>> ready_;
};

} // namespace lamella::gpu
