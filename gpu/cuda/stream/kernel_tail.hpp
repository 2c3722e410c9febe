/// What a kernel publishes to other streams when it ends: the frame whose payload it wrote, and
/// slots it has read. Saves the kernels that would do it. Plain C++; the device's side is
/// kernel_tail.cuh.
#pragma once

#include "gpu/cuda/stream/channel_port.hpp"
#include "gpu/ring/frame.hpp"

namespace lamella::gpu::cuda {

/// Posts of one kernel, done by the last of its blocks to end, in this order: header and `sent`,
/// then `released`. Null words are not posted. As with enqueue_post, a stream whose wait has failed
/// posts nothing.
struct kernel_tail {
  frame_header header{}; ///< of the frame that is sent
  frame_header* slot = nullptr;
  uint64_t* sent = nullptr;
  uint64_t* released = nullptr;
  uint64_t sent_value = 0, released_value = 0;
  uint32_t* arrived = nullptr; ///< device memory, 0 before and after: blocks that have ended
  channel_port port;

  bool posts() const { return sent != nullptr || released != nullptr; }
};

} // namespace lamella::gpu::cuda
