/// The doorbell that a driver sleeps on. Threads of the process and other processes that map its
/// word ring it when they have work for the driver.
#pragma once

#include "gpu/ring/descriptor_watch.hpp"
#include "gpu/ring/listener.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>

namespace lamella::gpu {

/// A word in shared memory and a futex on it. One waiter; any number of ringers. While the waiter
/// is awake a ring costs a fence and a load.
///
///   const auto seen = bell.arm();
///   if (nothing to do, looked at once more) bell.wait(seen, until); else bell.disarm();
///
/// A waiter that attends to sockets also calls look() between two pieces of work; while there are
/// any, it sleeps on them and on an eventfd in place of the futex.
class doorbell final : public listener {
public:
  /// Creates a new word. Throws std::system_error.
  doorbell();

  /// The bell of another process, from its descriptors, which the caller keeps. It can be rung
  /// only. Throws std::system_error; std::runtime_error when the first is not a sealed segment of
  /// one page.
  explicit doorbell(std::array<int, 2> descriptors);

  ~doorbell() override;
  doorbell(const doorbell&) = delete;
  doorbell& operator=(const doorbell&) = delete;

  /// Wakes the waiter, if it sleeps or is about to. Thread-safe.
  void ring() override;

  /// From now on every ring counts. Look for work after this, not before.
  uint32_t arm();
  void disarm();

  /// Sleeps until the bell was rung since arm(), or until the time. Disarms. Spurious wake-ups
  /// happen.
  void wait(uint32_t seen, std::chrono::steady_clock::time_point until);

  /// For another process.
  std::array<int, 2> descriptors() const { return {word_, waker_}; }

  /// Declares, before the bell is shared, that the waiter reads sockets itself.
  void attend() { attended_ = true; }
  bool attended() const { return attended_; }

  /// Sockets that the waiter waits for. Where the waiter does not read them itself, another thread
  /// must poll them and ring. Of this process's own bell only.
  void watch(int descriptor, std::weak_ptr<listener> ready);
  void unwatch(int descriptor) { watch_->remove(descriptor); }
  descriptor_watch& watched() { return *watch_; }

  /// Polls the sockets that the waiter reads itself. Almost free without any.
  void look() {
    if (attended_ && !watch_->empty()) watch_->look();
  }

  /// Channels whose data arrives without a thread of this process in between. While there is one,
  /// the waiter polls for a while before it sleeps. Where a thread delivers the data (TCP that the
  /// waiter does not read), polling would only take its core.
  std::atomic<uint32_t> outside{0};

  /// Those of them whose peer cannot ring: an adapter only writes into our memory. While there is
  /// one, a waiting driver sleeps for `nap` at most.
  std::atomic<uint32_t> silent{0};
  static constexpr std::chrono::microseconds nap{100};

private:
  struct words;
  /// Value of the armed word: how the waiter sleeps.
  enum sleep : uint32_t { awake, on_word, on_descriptors };

  static words* map(int word);

  int word_ = -1, waker_ = -1;
  words* words_ = nullptr;
  std::unique_ptr<descriptor_watch> watch_; ///< null in other processes
  bool attended_ = false;
  sleep sleeps_ = awake; ///< since arm(); the waiter's
};

/// Counts as one outside channel during its lifetime.
class outside_channel {
public:
  /// `rings`: whether the peer rings the bell.
  explicit outside_channel(std::shared_ptr<doorbell> bell, bool rings = true);
  ~outside_channel();
  outside_channel(const outside_channel&) = delete;
  outside_channel& operator=(const outside_channel&) = delete;

private:
  std::shared_ptr<doorbell> bell_;
  bool rings_;
};

} // namespace lamella::gpu
