/// Memory for each thread of a loop.
#pragma once

#include "gpu/kernels/operators.hpp"

#include <atomic>

namespace lamella::gpu {
namespace {

/// Runs f(item, room) for each item; `room` is `floats` floats of the thread's own, 64-byte
/// aligned.
template <class F>
void for_each_with_room(kernel_context context, size_t items, size_t floats, F&& f) {
  auto threads = items < context.workers.size() ? items : context.workers.size();
  floats = (floats + 15) / 16 * 16;
  auto* rooms = context.scratch.allocate<float>(threads * floats);
  std::atomic<size_t> next{0};
  context.workers.for_each(threads, [&](size_t thread) {
    for (size_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < items;)
      f(i, rooms + thread * floats);
  });
}

} // namespace
} // namespace lamella::gpu
