#include "gpu/cuda/driver/peers.hpp"

#include "gpu/cuda/driver/memory.hpp"

namespace lamella::gpu::cuda {

namespace {

std::string name_of(int device) { return "cuda:" + std::to_string(device); }

/// The runtime opens the way to memory of the device, but not to that of its pool.
void open_pool(int from, int to) {
  cudaMemPool_t pool = nullptr;
  check(cudaDeviceGetDefaultMemPool(&pool, to), "memory pool");
  const cudaMemAccessDesc reads_and_writes{{cudaMemLocationTypeDevice, from},
                                           cudaMemAccessFlagsProtReadWrite};
  check(cudaMemPoolSetAccess(pool, &reads_and_writes, 1), "memory pool");
}

std::optional<std::string> open_way(int from, int to) {
  int possible = 0;
  check(cudaDeviceCanAccessPeer(&possible, from, to), "cudaDeviceCanAccessPeer");
  if (possible == 0) return name_of(from) + " cannot reach memory of " + name_of(to);
  check(cudaSetDevice(from), "cudaSetDevice");
  const auto code = cudaDeviceEnablePeerAccess(to, 0);
  if (code == cudaSuccess) return open_pool(from, to), std::nullopt;
  cudaGetLastError(); // answered for
  if (code == cudaErrorPeerAccessAlreadyEnabled) return {};
  return name_of(from) + " to " + name_of(to) + ": " + cudaGetErrorString(code);
}

} // namespace

std::optional<std::string> join_peers(int a, int b) {
  if (a == b) return {};
  if (auto why = open_way(a, b)) return why;
  return open_way(b, a);
}

std::shared_ptr<std::byte> peer_ring_memory(int sender, int receiver, size_t bytes) {
  const bool near = !join_peers(sender, receiver);
  check(cudaSetDevice(receiver), "cudaSetDevice");
  auto memory = near ? device_memory(bytes) : pinned_memory(bytes);
  check(cudaMemset(memory.get(), 0, bytes), "cudaMemset");
  check(cudaStreamSynchronize(nullptr), "cudaMemset");
  check(cudaSetDevice(sender), "cudaSetDevice");
  return memory;
}

} // namespace lamella::gpu::cuda
