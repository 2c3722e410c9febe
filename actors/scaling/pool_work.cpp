#include "actors/scaling/pool_work.hpp"

#include "actors/protocol/status.hpp"

#include <algorithm>

namespace lamella::actors {

void pool_work::note(time_point now, const system_status& status) {
  look x{now, {}};
  for (const auto& worker : status.workers)
    x.workers[{worker.seat, worker.incarnation}] = {worker.role, worker.work};
  looks_.push_back(std::move(x));
  while (looks_.front().at < now - length_) looks_.pop_front();
}

pool_work::spent pool_work::of(const std::string& role, uint32_t members) const {
  spent result;
  if (looks_.size() < 2 || members == 0) return result;
  const auto& before = looks_.front();
  const auto& now = looks_.back();
  uint64_t iterations = 0, busy_ns = 0;
  for (const auto& [worker, x] : now.workers) {
    const auto last = before.workers.find(worker);
    if (x.role != role || last == before.workers.end()) continue;
    const auto& [more, less] = std::pair{x.work, last->second.work};
    if (more.iterations <= less.iterations || more.busy_ns < less.busy_ns) continue;
    const auto times = more.iterations - less.iterations, ns = more.busy_ns - less.busy_ns;
    result.most =
        std::max(result.most, seconds{static_cast<double>(ns) / 1e9 / static_cast<double>(times)});
    iterations += times;
    busy_ns += ns;
  }
  const auto busy = static_cast<double>(busy_ns) / 1e9;
  const auto time = seconds{now.at - before.at}.count() * members;
  if (iterations > 0) result.mean = seconds{busy / static_cast<double>(iterations)};
  if (time > 0) result.busy = std::min(1.0, busy / time);
  return result;
}

} // namespace lamella::actors
