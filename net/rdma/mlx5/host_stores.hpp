/// The stores of a CPU thread that posts into an mlx5 send queue (see
/// net/rdma/mlx5/send_queue.hpp).
#pragma once

#include "net/rdma/mlx5/send_queue.hpp"

#include <atomic>
#include <chrono>
#include <thread>

namespace lamella::net::mlx5 {

class host_stores {
public:
  using clock = std::chrono::steady_clock;

  /// Waits for room end at `deadline`, or when `abort`, which may be null, is not 0.
  explicit host_stores(clock::time_point deadline, const std::atomic<uint32_t>* abort = nullptr)
      : deadline_{deadline}, abort_{abort} {}

  void store_block(wqe_block* to, const wqe_block& block) { *to = block; }

  /// Also orders stores to a write-combining register page behind those to ordinary memory.
  void release() { std::atomic_thread_fence(std::memory_order_seq_cst); }

  void store_record(uint32_t* to, uint32_t value) { store(to, value); }
  void store_doorbell(uint64_t* to, uint64_t value) { store(to, value); }

  /// The doorbell word goes last, so that a reader who sees it finds the rest.
  void push_block(uint64_t* to, const wqe_block& block) {
    const auto word = [&](uint32_t i) {
      const auto& s = block.s[i / 2];
      return s.w[i % 2 * 2] | static_cast<uint64_t>(s.w[i % 2 * 2 + 1]) << 32;
    };
    for (uint32_t i = block_bytes / sizeof(uint64_t) - 1; i > 0; --i) store(to + i, word(i));
    store(to, word(0));
  }

  uint32_t load_completion(const uint32_t* from) {
    return std::atomic_ref<uint32_t>{*const_cast<uint32_t*>(from)}.load(std::memory_order_acquire);
  }

  /// Called once per turn of a wait for room. Lets other threads run.
  post_status over() {
    if (abort_ && abort_->load(std::memory_order_relaxed) != 0) return post_status::aborted;
    if (clock::now() > deadline_) return post_status::timeout;
    std::this_thread::yield();
    return post_status::ok;
  }

private:
  template <class T> static void store(T* to, T value) {
    std::atomic_ref<T>{*to}.store(value, std::memory_order_release);
  }

  clock::time_point deadline_;
  const std::atomic<uint32_t>* abort_;
};

} // namespace lamella::net::mlx5
