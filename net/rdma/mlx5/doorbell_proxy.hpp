/// Rings for GPUs that cannot: where an adapter's register page cannot be mapped into CUDA, the
/// kernel still builds the work requests and publishes how many there are, and a CPU thread writes
/// the doorbell record and rings. One thread serves many queues; it never looks at payload.
#pragma once

#include "net/rdma/mlx5/host_stores.hpp"

#include <vector>

namespace lamella::net::mlx5 {

class doorbell_proxy {
public:
  /// Takes over record and register of a queue, whose poster uses doorbell::proxy. All pointers
  /// must be host addresses and stay valid. Not while another thread is in `pass`.
  void attach(const send_queue& q) {
    queues_.push_back({q.published, q.record, q.blue_flame, q.blue_flame_bytes, q.number});
  }

  /// Rings for all that was published since the last pass: one doorbell per queue, however many
  /// work requests. Returns whether there was anything. Never waits.
  bool pass() {
    bool any = false;
    for (auto& q : queues_) {
      const auto produced = std::atomic_ref<uint64_t>{*q.published}.load(std::memory_order_acquire);
      if (produced == q.rung) continue;
      any = true;
      stores_.store_record(q.record, record_value(produced));
      stores_.release();
      stores_.store_doorbell(q.registers + (q.half ? q.register_bytes / sizeof(uint64_t) : 0),
                             plain_doorbell(produced - 1, q.number));
      q.half ^= 1;
      q.rung = produced;
    }
    return any;
  }

private:
  struct served {
    uint64_t* published;
    uint32_t* record;
    uint64_t* registers;
    uint32_t register_bytes, number;
    uint32_t half = 0;
    uint64_t rung = 0;
  };
  std::vector<served> queues_;
  host_stores stores_{host_stores::clock::time_point::max()};
};

} // namespace lamella::net::mlx5
