/// State of waits shared by host and device, in mapped host memory. Plain C++.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace lamella::gpu::cuda {

enum class channel_status : uint32_t {
  ok,
  timeout,     ///< the deadline passed
  aborted,     ///< the host set the abort word
  stale,       ///< the word is of a newer epoch: this waiter belongs to a connection that is gone
  queue_error, ///< the network adapter reported an error for the send queue
  no_room,     ///< a message does not fit the queue or the arena; nothing was sent
  wrong_frame, ///< the header is not that of the frame the work expects
  ended,       ///< the ring has ended (ring_control::ended): nothing it waits for can come
};

/// One line of mapped host memory per channel, shared by host and device.
struct alignas(64) channel_control {
  uint32_t abort = 0;  ///< host to device: not 0 ends every wait
  uint32_t status = 0; ///< device to host: the first channel_status that is not ok
};

/// What kernels get of a channel. Plain pointers, valid on the device.
struct channel_port {
  channel_control* control = nullptr; ///< mapped host memory
  uint32_t* failed = nullptr;      ///< device memory, 0 until the first error; read by every wait
  uint64_t deadline_ns = 0;        ///< longest wait of one kernel
  const uint64_t* ended = nullptr; ///< not 0: who should raise the word is gone; may be null
};

/// Which seqno a kernel means: `fixed`, or, where `counter` is given, a word in device memory that
/// the kernel raises by one and then takes. The second form is what a captured graph needs, because
/// its arguments never change. The host sets the word to make_seqno(epoch, 0) while the stream
/// idles.
struct channel_turn {
  uint64_t fixed = 0;
  uint64_t* counter = nullptr;
};

/// Enqueues one thread that posts. A channel that has failed posts nothing: what its stream
/// computed since is garbage. Returns the launch error. Does not wait; may be captured into a
/// graph.
cudaError_t enqueue_post(cudaStream_t stream, uint64_t* word, channel_turn turn,
                         const channel_port& port);

/// Enqueues one thread that waits; the next kernel of the stream starts when the word is there, or
/// when the wait has failed. Returns the launch error. May be captured into a graph.
cudaError_t enqueue_wait(cudaStream_t stream, const uint64_t* word, channel_turn turn,
                         const channel_port& port);

} // namespace lamella::gpu::cuda
