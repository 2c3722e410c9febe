#include "base/team.hpp"

#include "base/float_mode.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <thread>
#include <vector>

namespace lamella {

namespace {

/// How long a thread waits awake. Between two operators of a step a few microseconds pass, waking a
/// sleeper takes about ten; a thread that spins longer only takes a core away from somebody.
constexpr std::chrono::microseconds spin_time{40};

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// Waits until ready() holds, awake for at most spin_time. Returns whether it held.
template <class F> bool spin_until(F&& ready) {
  auto end = std::chrono::steady_clock::time_point{};
  for (unsigned round = 0;; ++round) {
    if (ready()) return true;
    relax();
    if (round % 64 != 63) continue;
    auto now = std::chrono::steady_clock::now();
    if (end == std::chrono::steady_clock::time_point{})
      end = now + spin_time;
    else if (now >= end)
      return false;
  }
}

constexpr uint64_t remaining_mask = std::numeric_limits<uint32_t>::max();

} // namespace

/// A loop is open while its ticket (loop number, indices not yet handed out) has indices left. A
/// thread takes one by lowering the ticket; because the number is part of the word, a thread that
/// slept through a loop can never take an index of it, and nobody waits for threads that did not
/// come.
struct team::state {
  explicit state(unsigned helpers) {
    threads.reserve(helpers);
    for (unsigned i = 0; i < helpers; ++i) threads.emplace_back([this] { help(); });
  }

  ~state() {
    stop.store(true, std::memory_order_relaxed);
    wake.fetch_add(1, std::memory_order_release);
    wake.notify_all();
    for (auto& t : threads) t.join();
  }

  /// Runs indices of the open loop until none is left. An exception of the loop's body ends the
  /// process (noexcept): other threads still use what it would unwind.
  void work() noexcept {
    uint32_t finished = 0;
    auto now = ticket.load(std::memory_order_acquire);
    while ((now & remaining_mask) != 0) {
      // Taking an index succeeds only while the loop of `now` is open, so these are its own values.
      auto* f = call.load(std::memory_order_relaxed);
      auto* c = context.load(std::memory_order_relaxed);
      auto n = count.load(std::memory_order_relaxed);
      if (!ticket.compare_exchange_weak(now, now - 1, std::memory_order_acq_rel,
                                        std::memory_order_acquire))
        continue;
      f(c, n - static_cast<uint32_t>(now & remaining_mask));
      ++finished;
      now = ticket.load(std::memory_order_acquire);
      // The loop cannot end before `finished` is told, so `now` is still a ticket of the same loop.
    }
    if (finished != 0) {
      done.fetch_add(finished, std::memory_order_acq_rel);
      done.notify_one();
    }
  }

  void help() noexcept {
    const plain_floats floats;
    uint32_t seen = 0;
    while (true) {
      if (!spin_until([&] { return wake.load(std::memory_order_acquire) != seen; }))
        wake.wait(seen, std::memory_order_acquire);
      seen = wake.load(std::memory_order_acquire);
      if (stop.load(std::memory_order_relaxed)) return;
      work();
    }
  }

  alignas(64) std::atomic<uint64_t> ticket{0};
  alignas(64) std::atomic<uint32_t> done{0};
  alignas(64) std::atomic<uint32_t> wake{0};
  std::atomic<bool> stop{false};
  std::atomic<void (*)(void*, size_t)> call{nullptr};
  std::atomic<void*> context{nullptr};
  std::atomic<uint32_t> count{0};
  std::vector<std::thread> threads;
};

team::team(unsigned size) : state_{std::make_unique<state>(size > 1 ? size - 1 : 0)} {}

team::~team() = default;

unsigned team::size() const { return static_cast<unsigned>(state_->threads.size()) + 1; }

void team::run(size_t count, void (*call)(void*, size_t), void* context) {
  const plain_floats floats;
  auto& s = *state_;
  if (s.threads.empty() || count <= 1) {
    for (size_t i = 0; i < count; ++i) call(context, i);
    return;
  }
  if (count > remaining_mask) std::abort(); // no loop of a kernel comes near
  auto n = static_cast<uint32_t>(count);
  s.call.store(call, std::memory_order_relaxed);
  s.context.store(context, std::memory_order_relaxed);
  s.count.store(n, std::memory_order_relaxed);
  s.done.store(0, std::memory_order_relaxed);
  auto number = (s.ticket.load(std::memory_order_relaxed) >> 32) + 1;
  s.ticket.store(number << 32 | n, std::memory_order_release);
  s.wake.fetch_add(1, std::memory_order_release);
  s.wake.notify_all();
  s.work();
  auto finished = [&] { return s.done.load(std::memory_order_acquire) == n; };
  while (!spin_until(finished)) {
    auto seen = s.done.load(std::memory_order_acquire);
    if (seen != n) s.done.wait(seen, std::memory_order_acquire);
  }
}

} // namespace lamella
