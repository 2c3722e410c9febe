#include "scheduler/membership/slow_workers.hpp"

#include <algorithm>
#include <optional>

namespace lamella::scheduler {

namespace {

double per(const work_report& x, uint64_t count) {
  return static_cast<double>(x.busy.count()) / static_cast<double>(count);
}

bool has_worked(const work_report& x) { return x.iterations > 0 && x.units > 0; }

/// Of two in the middle the upper one: in doubt nobody is slow.
double median(std::vector<double> x) {
  const auto middle = x.begin() + static_cast<ptrdiff_t>(x.size() / 2);
  std::nth_element(x.begin(), middle, x.end());
  return *middle;
}

/// How many times as long as its peers it has taken; nothing when there are none.
std::optional<double> times_of(const work_report& x, const std::vector<work_report>& all) {
  std::vector<double> by_iteration, by_unit;
  for (const auto& peer : all) {
    if (peer.who == x.who || peer.who.group() != x.who.group() || !has_worked(peer)) continue;
    by_iteration.push_back(per(peer, peer.iterations));
    by_unit.push_back(per(peer, peer.units));
  }
  if (by_iteration.empty()) return std::nullopt;
  // Clocks are coarse: nobody works in no time.
  const auto times = [](double mine, double theirs) { return mine / std::max(theirs, 1.0); };
  return std::min(times(per(x, x.iterations), median(std::move(by_iteration))),
                  times(per(x, x.units), median(std::move(by_unit))));
}

} // namespace

std::vector<slow_workers::change> slow_workers::look(const std::vector<work_report>& reports) {
  std::vector<change> changes;
  for (const auto& x : reports) {
    if (!has_worked(x)) continue;
    const auto times = times_of(x, reports);
    if (!times) continue;
    auto& known = known_[x.who];
    const bool otherwise = known.slow ? *times < well_below : *times > slow_above;
    known.iterations = otherwise ? known.iterations + x.iterations : 0;
    known.looks = otherwise ? known.looks + 1 : 0;
    if (known.iterations < iterations_needed || known.looks < looks_needed) continue;
    known = {!known.slow, 0, 0};
    changes.push_back({x.who, known.slow, *times});
  }
  return changes;
}

bool slow_workers::slow(const seat& who) const {
  const auto found = known_.find(who);
  return found != known_.end() && found->second.slow;
}

} // namespace lamella::scheduler
