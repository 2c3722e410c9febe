/// Work of the device of a worker: counted where a work ends, read when MEMBERSHIP polls.
#pragma once

#include "base/time_histogram.hpp"
#include "gpu/device.hpp"
#include "net/metrics/metrics.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>

namespace lamella::actors {

/// Time of one iteration on one device, by stage.
struct iteration_spent {
  std::chrono::nanoseconds main{0}; ///< slices of a replica, attention of a shard
  std::chrono::nanoseconds aside{
      0}; ///< transfer time: sending, combining; 0 where the device does not measure it
  std::chrono::nanoseconds wait{0};
};

/// Times of a finished work, given the time since it could start.
inline iteration_spent spent_by(const gpu::work& x, std::chrono::nanoseconds whole) {
  return {x.busy() - x.aside(), x.aside(), std::max(whole - x.busy(), {})};
}

/// The names of `main` and `aside`.
struct iteration_stages {
  net::iteration_stage main, aside;
};
inline constexpr iteration_stages replica_stages{net::iteration_stage::slice,
                                                 net::iteration_stage::send};
inline constexpr iteration_stages shard_stages{net::iteration_stage::attention,
                                               net::iteration_stage::combine};

/// Whether an iteration has a row of each sequence and nothing else, or pieces of prompts.
enum class launch_kind : uint8_t { tokens, prompts };

/// Sums over iterations of one kind.
struct launch_sums {
  uint64_t iterations = 0, units = 0, busy_ns = 0;
};

/// One per worker, shared with its replicas or shards; lock-free. The counters only grow.
class work_meter {
public:
  /// A device has ended one iteration. `units`: rows of a replica, attended positions of a shard in
  /// each of its KV heads: members of other cells may have more of them.
  void add(std::chrono::nanoseconds busy, uint64_t units) {
    iterations_.fetch_add(1, std::memory_order_relaxed);
    units_.fetch_add(units, std::memory_order_relaxed);
    busy_ns_.fetch_add(static_cast<uint64_t>(busy.count()), std::memory_order_relaxed);
  }

  /// The same iteration by its kind, for scheduler/times/machine_times.hpp. `busy`: of the whole
  /// iteration, also where several replicas run its slices in turn. Only of devices whose busy time
  /// has no waits in it.
  void launched(launch_kind kind, std::chrono::nanoseconds busy, uint64_t units) {
    auto& x = launches_[static_cast<size_t>(kind)];
    x.iterations.fetch_add(1, std::memory_order_relaxed);
    x.units.fetch_add(units, std::memory_order_relaxed);
    x.busy_ns.fetch_add(static_cast<uint64_t>(busy.count()), std::memory_order_relaxed);
  }

  /// The time by stage; for other works only the busy time of the device.
  void spend(const iteration_spent& x, iteration_stages stages) {
    compute(x.main + x.aside);
    times_of(stages.main).add(x.main);
    if (x.aside.count() > 0) times_of(stages.aside).add(x.aside);
    times_of(net::iteration_stage::wait).add(x.wait);
  }
  void compute(std::chrono::nanoseconds x) {
    computed_ns_.fetch_add(static_cast<uint64_t>(x.count()), std::memory_order_relaxed);
  }

  uint64_t iterations() const { return iterations_.load(std::memory_order_relaxed); }
  uint64_t units() const { return units_.load(std::memory_order_relaxed); }
  uint64_t busy_ns() const { return busy_ns_.load(std::memory_order_relaxed); }
  uint64_t computed_ns() const { return computed_ns_.load(std::memory_order_relaxed); }
  launch_sums launches(launch_kind kind) const {
    const auto& x = launches_[static_cast<size_t>(kind)];
    return {x.iterations, x.units, x.busy_ns};
  }
  /// By stage.
  const std::array<time_histogram, net::iteration_stages>& times() const { return times_; }

private:
  time_histogram& times_of(net::iteration_stage x) { return times_[static_cast<size_t>(x)]; }

  struct counters {
    std::atomic<uint64_t> iterations{0}, units{0}, busy_ns{0};
  };
  std::atomic<uint64_t> iterations_{0}, units_{0}, busy_ns_{0}, computed_ns_{0};
  std::array<counters, 2> launches_; ///< by launch_kind
  std::array<time_histogram, net::iteration_stages> times_;
};

/// The same for a worker in the process of the metrics.
inline void tell_spent(net::metrics& metrics, const iteration_spent& x, iteration_stages stages,
                       const std::string& role, uint32_t seat) {
  const auto seconds = [](std::chrono::duration<double> y) { return y.count(); };
  metrics.iteration_time(stages.main, seconds(x.main));
  if (x.aside.count() > 0) metrics.iteration_time(stages.aside, seconds(x.aside));
  metrics.iteration_time(net::iteration_stage::wait, seconds(x.wait));
  metrics.computed(role, role + "-" + std::to_string(seat), seconds(x.main + x.aside));
}

} // namespace lamella::actors
