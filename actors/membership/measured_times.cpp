#include "actors/membership/measured_times.hpp"

#include "actors/protocol/status.hpp"
#include "actors/protocol/work_reports.hpp"

#include <utility>

namespace lamella::actors {

using scheduler::timed_work;
using scheduler::worker_role;

namespace {

/// What was done since; nothing where an older answer came late.
work_done since(const work_done& now, const work_done& last) {
  if (now.iterations < last.iterations || now.units < last.units || now.busy_ns < last.busy_ns)
    return {};
  return {now.iterations - last.iterations, now.units - last.units, now.busy_ns - last.busy_ns};
}

} // namespace

void measured_times::add(timed_work what, const std::string& home, const work_done& x) {
  if (x.iterations == 0) return;
  const auto each = 1.0 / static_cast<double>(x.iterations);
  times_.add(what, home, static_cast<double>(x.units) * each,
             static_cast<double>(x.busy_ns) * 1e-9 * each);
}

void measured_times::note(const scheduler::seat& where, uint32_t incarnation, const worker_peers& x,
                          const std::string& home) {
  auto& last = last_[where];
  if (last.incarnation != incarnation) last = {incarnation, {}, {}};
  const auto tokens = since(x.tokens, std::exchange(last.tokens, x.tokens));
  const auto prompts = since(x.prompts, std::exchange(last.prompts, x.prompts));
  const auto sum = [&](sums& to) {
    if (tokens.iterations == 0) return;
    to.iterations += static_cast<double>(tokens.iterations);
    to.units += static_cast<double>(tokens.units);
    ++to.members;
  };
  if (where.role == worker_role::model) {
    add(timed_work::launch, "", tokens);
    add(timed_work::launch, "", prompts);
    sum(launches_);
  } else if (where.role == worker_role::attention) {
    add(timed_work::attention, home, tokens);
    add(timed_work::prompt_attention, home, prompts);
    sum(homes_[home]);
  }
  for (const auto& peer : x.peers)
    if (peer.rtt_us > 0 && (round_trip_us_ == 0 || peer.rtt_us < round_trip_us_))
      round_trip_us_ = peer.rtt_us;
}

void measured_times::end_look(uint32_t batches, uint32_t replicas) {
  if (round_trip_us_ > 0) times_.set_round_trip(round_trip_us_ * 1e-6);
  if (launches_.iterations > 0) {
    // A launch counts at each replica that runs its slices in turn.
    const auto launches = launches_.iterations / std::max(1u, replicas);
    double positions = 0;
    for (const auto& [home, x] : homes_)
      if (x.members > 0) positions += x.units / x.members / launches;
    times_.note_load({launches_.units / launches_.iterations * batches, positions * batches});
  }
  launches_ = {};
  homes_.clear();
  round_trip_us_ = 0;
}

std::vector<time_info> measured_times::keep_homes(const std::set<std::string>& homes) {
  auto gone = rows();
  times_.keep_homes(homes);
  std::erase_if(gone, [&](const time_info& x) {
    return x.work == scheduler::name_of(timed_work::launch) || homes.contains(x.cell);
  });
  return gone;
}

std::vector<time_info> measured_times::rows() const {
  std::vector<time_info> result;
  for (const auto& [key, x] : times_.entries())
    result.push_back({scheduler::name_of(key.first), key.second, x.units,
                      x.times.predict(x.units).value_or(0), x.times.correction(),
                      x.times.samples()});
  return result;
}

} // namespace lamella::actors
