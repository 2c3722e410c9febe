/// A frame's way into and out of a ring, as kernels of a stream. Credits are plain posts and waits
/// (channel_port.hpp).
#pragma once

#include "gpu/ring/frame.hpp"
#include "gpu/ring/ring_end.hpp"

#include <cuda_runtime_api.h>

#include <cstdint>

namespace lamella::gpu::cuda {

struct channel_port;

/// Writes a finished header and raises `sent`, unless a wait of the stream has failed. The payload
/// was written by earlier kernels. One thread; some 2 us of the stream.
cudaError_t launch_send_frame(const frame_header& header, frame_header* slot, uint64_t* sent,
                              uint64_t value, const channel_port& port, cudaStream_t stream);

/// Waits until `sent` has reached `value`, then compares the header with the expected one: all but
/// who sent it and the checksums. The next kernels read the payload.
cudaError_t launch_receive_frame(const frame_header& expected, const std::byte* slot,
                                 const uint64_t* sent, uint64_t value, const channel_port& port,
                                 cudaStream_t stream);

/// Writes the header to `slot`, where there is a frame, and posts. Waits until the queue is there,
/// and when it is full; nothing is posted after a wait of the stream has failed. One thread; some
/// 3 us. What adapters read is known in net/, where its source is (net/rdma/ring_posts.cu).
cudaError_t launch_ring_post(const frame_header& header, frame_header* slot, const ring_post& what,
                             const stream_posts& posts, const channel_port& port,
                             cudaStream_t stream);

} // namespace lamella::gpu::cuda
