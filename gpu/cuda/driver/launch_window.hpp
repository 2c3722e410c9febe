/// Bounds how far a stream's launches are ahead of the device.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <deque>
#include <vector>

namespace lamella::gpu::cuda {

/// A CUDA stream accepts about a thousand launches before a launch blocks, and the blocked thread
/// may be the one that must launch what the stream waits for: a pull has more pieces than that, and
/// so has an iteration of a deep model. So the driver enqueues at most `most` kernels that the
/// device has not passed, and retries later. Of one stream, used by the driver thread.
class launch_window {
public:
  /// Leaves room for what one step may launch beyond it.
  static constexpr uint64_t most = 512;

  launch_window() = default;
  ~launch_window();
  launch_window(const launch_window&) = delete;
  launch_window& operator=(const launch_window&) = delete;

  /// `launched` more kernels are in the stream: now and then a mark follows. Not while the stream
  /// is captured.
  void note(uint64_t launched, cudaStream_t stream) noexcept;

  /// Whether the stream has no room before the device has gone on. Never waits. Throws cuda_error.
  bool full();

private:
  struct mark {
    cudaEvent_t event;
    uint64_t launched; ///< before it
  };
  std::deque<mark> marks_;         ///< in the stream, oldest first
  std::vector<cudaEvent_t> spare_; ///< events to use again
  uint64_t launched_ = 0, marked_ = 0, passed_ = 0;
  cudaError_t error_ = cudaSuccess; ///< of note()
};

} // namespace lamella::gpu::cuda
