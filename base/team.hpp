/// The threads of a process that run host kernels: fork and join around one loop.
#pragma once

#include <cstddef>
#include <memory>
#include <type_traits>

namespace lamella {

/// `size` threads, the caller included. One loop at a time; calls come from one thread (the
/// engine's driver). Between loops the helpers spin for some microseconds, then sleep, so that an
/// idle or crowded machine loses nothing.
class team {
public:
  explicit team(unsigned size);
  ~team();
  team(const team&) = delete;
  team& operator=(const team&) = delete;

  unsigned size() const;

  /// Calls f(index) for each index in [0, count), in any order, on any thread; returns when all are
  /// done. Indices are handed out one at a time, so make each worth some microseconds. f must not
  /// throw: an exception ends the process, because other threads still use what it would unwind.
  template <class F> void for_each(size_t count, F&& f) {
    using function = std::remove_reference_t<F>;
    run(
        count, [](void* context, size_t index) { (*static_cast<function*>(context))(index); },
        const_cast<std::remove_const_t<function>*>(&f));
  }

private:
  void run(size_t count, void (*call)(void*, size_t), void* context);

  struct state;
  std::unique_ptr<state> state_;
};

} // namespace lamella
