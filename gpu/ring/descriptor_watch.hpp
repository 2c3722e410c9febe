/// Sockets that a waiting driver polls itself, without a thread in between that would have to wake
/// it.
#pragma once

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>

namespace lamella::gpu {

class listener;

/// Descriptors with listeners that are rung when a descriptor is readable or writable. The waiter
/// polls them while awake and sleeps on all of them at once. look() and sleep() must be called by
/// one thread at a time; the others are thread-safe.
class descriptor_watch {
public:
  /// Throws std::system_error.
  descriptor_watch();
  ~descriptor_watch();
  descriptor_watch(const descriptor_watch&) = delete;
  descriptor_watch& operator=(const descriptor_watch&) = delete;

  /// look() and sleep() ring `ready` as long as the descriptor is readable or the peer is gone.
  /// Throws std::system_error.
  void add(int descriptor, std::weak_ptr<listener> ready);

  /// Whether the listener is also rung when the descriptor is writable. The descriptor must be
  /// watched.
  void want_room(int descriptor, bool wanted);

  /// Call before the descriptor is closed. A concurrent look() may ring its listener once more.
  void remove(int descriptor);

  bool empty() const { return count_.load(std::memory_order_relaxed) == 0; }

  /// Rings the listeners of readable descriptors; false when there are none. One system call.
  bool look();

  /// As look(), but sleeps until a descriptor is readable, the waker is written, or the time is
  /// over.
  void sleep(std::chrono::steady_clock::time_point until);

  /// An eventfd: a write to it, from any process, ends the current or next sleep(). look() does not
  /// read it.
  int waker() const { return waker_; }

  /// For other pollers: readable when look() would ring a listener.
  int descriptor() const { return set_; }

private:
  bool serve(std::chrono::nanoseconds timeout);
  void ring(int descriptor);

  int set_, waker_;
  std::atomic<size_t> count_{0};
  std::mutex mutex_; ///< of the next
  std::map<int, std::weak_ptr<listener>> ready_;
};

} // namespace lamella::gpu
