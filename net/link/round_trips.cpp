#include "net/link/round_trips.hpp"

#include <algorithm>

namespace lamella::net {

void round_trips::add(std::chrono::nanoseconds took, clock::time_point now) {
  const std::lock_guard lock{mutex_};
  ++measured_;
  while (!last_.empty() && (now - last_.front().when > window || last_.size() >= kept_max))
    last_.pop_front();
  last_.push_back({now, took});
}

round_trips::summary round_trips::at(clock::time_point now) const {
  const std::lock_guard lock{mutex_};
  summary result{{}, measured_};
  for (const auto& x : last_)
    if (now - x.when <= window && (result.least.count() == 0 || x.took < result.least))
      result.least = x.took;
  return result;
}

} // namespace lamella::net
