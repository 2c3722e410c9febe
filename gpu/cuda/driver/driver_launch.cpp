/// How the driver puts works into their stream.
#include "gpu/cuda/driver/driver_line.hpp"
#include "gpu/cuda/stream/launch_count.hpp"
#include "gpu/cuda/stream/words.cuh"
#include "gpu/ring/channel.hpp"

#include <algorithm>
#include <memory>
#include <utility>

namespace lamella::gpu::cuda {

namespace {

/// Steps put into one stream before the others get their turn.
constexpr int steps_per_turn = 64;

/// Whether the device is lost whose call told this. Else the call asked for what cannot be, and the
/// runtime must not tell of it again when somebody else asks for the last error.
bool ends_device(const cuda_error& error) {
  switch (error.code()) {
  case cudaErrorInvalidValue:
  case cudaErrorMemoryAllocation:
  case cudaErrorInvalidConfiguration:
  case cudaErrorInvalidDeviceFunction:
  case cudaErrorNoKernelImageForDevice:
  case cudaErrorLaunchOutOfResources:
  case cudaErrorNotSupported:
    cudaGetLastError();
    return false;
  default:
    return true;
  }
}

/// While it lives, launches of this thread go into a stream.
class counted_launches {
public:
  counted_launches(launch_window& window, cudaStream_t stream) : window_{window}, stream_{stream} {}
  ~counted_launches() { window_.note(kernels_launched_here - before_, stream_); }
  counted_launches(const counted_launches&) = delete;
  counted_launches& operator=(const counted_launches&) = delete;

private:
  launch_window& window_;
  cudaStream_t stream_;
  uint64_t before_ = kernels_launched_here;
};

} // namespace

/// Takes the next work when the one before is in the stream as a whole.
bool driver::start(line& x) {
  if (x.on_device.size() >= works_ahead || (!x.on_device.empty() && !x.on_device.back()->complete))
    return false;
  auto r = std::make_unique<running>();
  {
    std::lock_guard lock{mutex_};
    if (x.waiting.empty() || x.abort_wanted) return false;
    r->job = std::move(x.waiting.front());
    x.waiting.pop_front();
  }
  r->way = std::move(x.free_passages.back());
  x.free_passages.pop_back();
  cudaEventRecord(r->way->first.handle, x.kernels.handle());
  x.on_device.push_back(std::move(r));
  put(x);
  return true;
}

/// Puts steps of the newest work into the stream.
bool driver::put(line& x) {
  if (x.on_device.empty() || x.on_device.back()->complete) return false;
  auto& r = *x.on_device.back();
  const auto left = r.job.deadline - clock::now();
  if (left <= clock::duration::zero()) {
    complete(x, work_status::deadline);
    return true;
  }
  x.kernels.timeout_ns =
      static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(left).count());
  try {
    queue::step scope{x.kernels, r.way->arguments};
    // A kernel left open may hold what another stream waits for: it is not kept for another turn.
    for (int i = 0; i < steps_per_turn || x.kernels.has_open(); ++i) {
      if (!x.kernels.has_open() && x.window.full()) return i > 0;
      const counted_launches counted{x.window, x.kernels.handle()};
      arena::scope scratch{x.kernels.scratch};
      const auto outcome = r.job.what->advance({workers_, x.kernels.scratch, &x.kernels.workspace});
      if (outcome == work::progress::blocked) {
        x.kernels.close();
        return i > 0;
      }
      if (outcome == work::progress::advanced) continue;
      r.at_end = x.kernels.take_at_end();
      complete(x, work_status::done);
      break;
    }
  } catch (const cuda_error& e) {
    if (ends_device(e))
      lost_ = true;
    else
      complete(x, work_status::failed);
  } catch (const channel_ended&) {
    complete(x, work_status::cut); // the device is well; the other end is not
  } catch (const no_room& e) {
    lack_room(e.wanted());
    complete(x, work_status::failed);
  } catch (...) {
    complete(x, work_status::failed);
  }
  return true;
}

/// Twice what a work lacked: it is not all that the work had to tell.
void driver::lack_room(size_t wanted) {
  std::lock_guard lock{mutex_};
  argument_bytes_ = std::max(argument_bytes_.load(), 2 * wanted);
}

/// No more kernels of the newest work: its end follows what is already in the stream.
void driver::complete(line& x, work_status status) {
  auto& r = *x.on_device.back();
  if (r.verdict == work_status::done) r.verdict = status;
  r.complete = true;
  x.kernels.take_at_end();
  try {
    queue::step scope{x.kernels, r.way->arguments};
    close_last(x);
    const auto stream = x.kernels.stream("end of a work");
    check(cudaEventRecord(r.way->last.handle, stream), "end of a work");
    check(launch_raise(r.way->arguments.ended_word(), stream), "end of a work");
  } catch (const cuda_error&) {
    lost_ = true;
  }
}

/// Launches the kernel that the newest work has left open; where that cannot be, the work has
/// failed, and its end is told all the same.
void driver::close_last(line& x) {
  auto& r = *x.on_device.back();
  const auto fail = [&r] {
    if (r.verdict == work_status::done) r.verdict = work_status::failed;
  };
  try {
    x.kernels.close();
  } catch (const cuda_error& e) {
    if (ends_device(e)) throw;
    fail();
  } catch (const no_room& e) {
    lack_room(e.wanted());
    fail();
  } catch (const std::exception&) {
    fail();
  }
}

} // namespace lamella::gpu::cuda
