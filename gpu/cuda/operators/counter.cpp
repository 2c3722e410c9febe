#include "gpu/cuda/operators/counter.hpp"

#include "gpu/cuda/driver/queue.hpp"
#include "gpu/cuda/stream/counter_wait.hpp"
#include "gpu/ring/ring.hpp"

#include <atomic>

namespace lamella::gpu::cuda {

namespace {

/// Two words of mapped host memory: what streams have raised, and up to where the host has skipped.
/// One word could not have two writers without waiting for one of them.
class device_counter final : public counter {
public:
  device_counter() : words_{pinned_memory(2 * sizeof(ring_word))} {
    *raised() = 0;
    std::atomic_ref{*skipped()}.store(0);
  }

  void raise(uint64_t value) override {
    auto& q = queue::current();
    check(enqueue_post(q.stream("raise of a counter"), raised(), {value, nullptr}, q.port()),
          "raise of a counter");
  }
  bool reached(uint64_t value) override {
    auto& q = queue::current();
    check(launch_wait_either(raised(), skipped(), value, q.port(), q.stream("wait for a counter")),
          "wait for a counter");
    return true;
  }
  void skip(uint64_t value) override {
    std::atomic_ref word{*skipped()};
    auto now = word.load(std::memory_order_relaxed);
    while (now < value && !word.compare_exchange_weak(now, value, std::memory_order_release)) {
    }
  }

private:
  uint64_t* raised() const { return reinterpret_cast<uint64_t*>(words_.get()); }
  uint64_t* skipped() const { return raised() + sizeof(ring_word) / sizeof(uint64_t); }

  std::shared_ptr<std::byte> words_;
};

} // namespace

std::shared_ptr<counter> make_device_counter() { return std::make_shared<device_counter>(); }

} // namespace lamella::gpu::cuda
