// What a stream of a device posts of its rings, as work requests of an mlx5 adapter.
#include "gpu/cuda/stream/launch.cuh"
#include "gpu/cuda/stream/ring_kernels.cuh"
#include "net/rdma/mlx5/device_stores.cuh"

namespace lamella::gpu::cuda {

namespace {

using net::mlx5::doorbell, net::mlx5::post_status, net::mlx5::send_queue;

/// Where the queue is before the two sides of its link have met, and afterwards.
struct queue_home {
  send_queue* kept; ///< all zeroes before the first post
  const send_queue* birth;
  const uint64_t* ready;
};

__global__ void post_to_adapter(frame_header header, frame_header* slot, ring_post what,
                                queue_home home, doorbell how, channel_port port) {
  await_previous_kernel();
  if (has_failed(port)) return; // what this stream computed since is garbage
  if (home.kept->ring == nullptr) {
    if (wait_for(home.ready, 1, port) != channel_status::ok) return;
    *home.kept = *home.birth;
  }
  if (what.bytes > 0) *slot = header;
  net::mlx5::queue_copy copy{home.kept};
  net::mlx5::device_stores stores{port, nullptr};
  const auto status = net::mlx5::post_ring(copy.q, what, how, stores);
  if (status != post_status::ok) fail(port, net::mlx5::status_of(status));
  admit_next_kernel();
}

} // namespace

cudaError_t launch_ring_post(const frame_header& header, frame_header* slot, const ring_post& what,
                             const stream_posts& posts, const channel_port& port,
                             cudaStream_t stream) {
  const queue_home home{reinterpret_cast<send_queue*>(posts.queue),
                        reinterpret_cast<const send_queue*>(posts.birth), posts.ready};
  launch_kernel(post_to_adapter, 1, 1, 0, stream, header, slot, what, home,
                posts.rings ? doorbell::store : doorbell::proxy, port);
  return cudaGetLastError();
}

} // namespace lamella::gpu::cuda
