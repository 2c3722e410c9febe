/// Kernels that are not launched at once, because the next operator may join them.
#pragma once

#include "gpu/cuda/stream/kernel_tail.hpp"

namespace lamella::gpu::cuda {

class queue;

/// A kernel that was asked for last and is not in the stream yet. The next operator takes it and
/// launches one kernel for both, or the queue launches it before anything else: whoever asks a
/// queue for its stream finds everything asked for before in it. So an operator may leave its
/// kernel open without telling anyone.
class open_kernel {
public:
  open_kernel() = default;
  virtual ~open_kernel() = default;
  open_kernel(const open_kernel&) = delete;
  open_kernel& operator=(const open_kernel&) = delete;

  /// Puts the kernel into the queue's stream. Throws cuda_error.
  virtual void launch(queue& on) = 0;

  /// Where a channel's end may leave its posts; null if the kernel cannot post.
  virtual kernel_tail* tail() { return nullptr; }
};

} // namespace lamella::gpu::cuda
