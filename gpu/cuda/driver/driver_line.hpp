/// What the driver keeps of one stream: its works, in order, and what they need on their way. For
/// driver.cpp alone.
#pragma once

#include "gpu/cuda/driver/driver.hpp"
#include "gpu/cuda/driver/launch_window.hpp"

#include <algorithm>
#include <deque>
#include <iterator>
#include <optional>

namespace lamella::gpu::cuda {

/// Works of one stream on the device at once: the one that runs and the one behind it.
constexpr size_t works_ahead = 2;

/// A mark in a stream with its time.
struct event {
  event() { check(cudaEventCreate(&handle), "cudaEventCreate"); }
  ~event() { cudaEventDestroy(handle); }
  event(const event&) = delete;
  event& operator=(const event&) = delete;
  cudaEvent_t handle = nullptr;
};

/// Nothing where one of them has not been reached.
inline std::optional<clock::duration> between(const event& from, const event& to) {
  float milliseconds = 0;
  if (cudaEventElapsedTime(&milliseconds, from.handle, to.handle) != cudaSuccess) return {};
  return std::chrono::duration_cast<clock::duration>(
      std::chrono::duration<float, std::milli>{milliseconds});
}

/// What one work needs on its way; made when the stream is opened, because making it may wait for
/// the device.
struct passage {
  explicit passage(const queue& q) : arguments{q.handle()} {}
  staging arguments;
  event first, last;
};

/// A job that has been put into the stream, in whole or in part.
struct running {
  driver::job job;
  std::unique_ptr<passage> way;
  std::vector<std::function<void()>> at_end;
  bool complete = false;                   ///< all its kernels are in the stream
  work_status verdict = work_status::done; ///< what the driver itself knows against it
};

struct driver::line {
  explicit line(int device) : kernels{device} {
    while (free_passages.size() < works_ahead)
      free_passages.push_back(std::make_unique<passage>(kernels));
  }

  void reserve(size_t argument_bytes) {
    for (auto& p : free_passages) p->arguments.reserve(argument_bytes);
  }

  /// Of a line that runs nothing.
  bool has_room(size_t argument_bytes) const {
    return std::all_of(free_passages.begin(), free_passages.end(),
                       [&](const auto& p) { return p->arguments.reserved() >= argument_bytes; });
  }

  /// Everything that has been launched so far ends; what is launched from now on does not. The
  /// driver's mutex is held.
  void end_all() {
    abort_wanted = true;
    std::ranges::move(waiting, std::back_inserter(aborted));
    waiting.clear();
  }

  queue kernels;
  launch_window window; ///< of the driver thread
  // Guarded by the driver's mutex.
  std::deque<job> waiting;
  std::deque<job> aborted; ///< launched before the newest abort
  bool abort_wanted = false, closing = false;
  // Of the driver thread.
  std::deque<std::unique_ptr<running>> on_device;
  std::vector<std::unique_ptr<passage>> free_passages; ///< works_ahead, less those under way
  event before;                                        ///< behind the last work that has ended
  bool ended_before = false;                           ///< there was one
  bool aborting = false;                               ///< the abort word is up
  bool draining = false; ///< a work has failed: those behind it must leave before others start
};

} // namespace lamella::gpu::cuda
