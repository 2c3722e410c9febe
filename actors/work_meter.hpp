/// What the device of a worker has done: counted where its work ends, read when MEMBERSHIP asks.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace lamella::actors {

/// One per worker, shared by its replicas or shards and itself; lock-free. The numbers only grow.
class work_meter {
public:
  /// A device has ended one iteration. `units`: rows of a replica, attended positions of a shard.
  void add(std::chrono::nanoseconds busy, uint64_t units) {
    iterations_.fetch_add(1, std::memory_order_relaxed);
    units_.fetch_add(units, std::memory_order_relaxed);
    busy_ns_.fetch_add(static_cast<uint64_t>(busy.count()), std::memory_order_relaxed);
  }

  uint64_t iterations() const { return iterations_.load(std::memory_order_relaxed); }
  uint64_t units() const { return units_.load(std::memory_order_relaxed); }
  uint64_t busy_ns() const { return busy_ns_.load(std::memory_order_relaxed); }

private:
  std::atomic<uint64_t> iterations_{0}, units_{0}, busy_ns_{0};
};

} // namespace lamella::actors
