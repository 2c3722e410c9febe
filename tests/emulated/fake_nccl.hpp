/// NCCL as far as it is used, over the streams made of threads of fake_cuda: what is called, in
/// which order, what fails and what is aborted.
#pragma once

#include "gpu/cuda/operators/nccl_library.hpp"
#include "tests/gpu/fake_cuda/fake_cuda.hpp"

#include <condition_variable>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace lamella::gpu::cuda {

struct nccl_communicator {
  struct group {
    std::mutex mutex;
    std::condition_variable changed;
    uint32_t ranks = 0;
    std::map<uint64_t, std::vector<std::vector<float>>> parts; ///< by number of the call, by rank
  };
  std::shared_ptr<group> all;
  uint32_t rank = 0;
  uint64_t calls = 0;
  bool aborted = false;
};

} // namespace lamella::gpu::cuda

namespace lamella::test::fake_nccl {

using gpu::cuda::nccl_communicator;

struct state {
  std::mutex mutex;
  std::vector<std::string> calls; ///< since the last take_calls()
  std::string failing;            ///< the function that fails when called next
};

inline state& the_state() {
  static state x;
  return x;
}

inline std::vector<std::string> take_calls() {
  std::lock_guard lock{the_state().mutex};
  return std::exchange(the_state().calls, {});
}

inline void fail_next(const std::string& function) {
  std::lock_guard lock{the_state().mutex};
  the_state().failing = function;
}

/// Notes the call; what it is to return.
inline int called(const std::string& function, const std::string& with = {}) {
  std::lock_guard lock{the_state().mutex};
  the_state().calls.push_back(function + with);
  if (the_state().failing != function) return gpu::cuda::nccl_success;
  the_state().failing.clear();
  return 3;
}

inline int comm_init_all(nccl_communicator** comms, int count, const int*) {
  if (const auto code = called("comm_init_all", " " + std::to_string(count)); code != 0)
    return code;
  const auto all = std::make_shared<nccl_communicator::group>();
  all->ranks = static_cast<uint32_t>(count);
  for (int r = 0; r < count; ++r) comms[r] = new nccl_communicator{all, static_cast<uint32_t>(r)};
  return 0;
}

inline int comm_destroy(nccl_communicator* comm) {
  const auto code = called("comm_destroy", " " + std::to_string(comm->rank));
  delete comm;
  return code;
}

/// Kernels of this rank that wait end, and their parts reach nobody who comes later; the memory is
/// kept for them.
inline int comm_abort(nccl_communicator* comm) {
  {
    std::lock_guard lock{comm->all->mutex};
    comm->aborted = true;
    for (auto& [number, parts] : comm->all->parts)
      if (comm->rank < parts.size()) parts[comm->rank].clear();
    comm->all->changed.notify_all();
  }
  static std::vector<std::unique_ptr<nccl_communicator>> kept;
  kept.emplace_back(comm);
  return called("comm_abort", " " + std::to_string(comm->rank));
}

inline int all_gather(const void* send, void* receive, size_t count, int type,
                      nccl_communicator* comm, cudaStream_t stream) {
  if (type != gpu::cuda::nccl_float32) return 4;
  if (const auto code = called("all_gather", " " + std::to_string(comm->rank)); code != 0)
    return code;
  const auto number = comm->calls++;
  fake_cuda::put(stream, [=] {
    auto& all = *comm->all;
    std::unique_lock lock{all.mutex};
    auto& parts = all.parts[number];
    parts.resize(all.ranks);
    const auto* from = static_cast<const float*>(send);
    parts[comm->rank].assign(from, from + count);
    all.changed.notify_all();
    all.changed.wait(lock, [&] {
      size_t there = 0;
      for (const auto& part : parts) there += part.empty() ? 0 : 1;
      return comm->aborted || there == all.ranks;
    });
    if (comm->aborted) return;
    for (uint32_t r = 0; r < all.ranks; ++r)
      std::memcpy(static_cast<float*>(receive) + r * count, parts[r].data(), count * sizeof(float));
  });
  return 0;
}

inline int group_start() { return called("group_start"); }
inline int group_end() { return called("group_end"); }
inline const char* error_string(int) { return "it does not want to"; }

inline const gpu::cuda::nccl_library& library() {
  static const gpu::cuda::nccl_library x{comm_init_all, comm_destroy, comm_abort,  all_gather,
                                         group_start,   group_end,    error_string};
  return x;
}

} // namespace lamella::test::fake_nccl
