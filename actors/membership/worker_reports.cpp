#include "actors/membership/worker_reports.hpp"

#include "actors/protocol/work_reports.hpp"

namespace lamella::actors {

namespace {

double seconds(uint64_t ns) { return static_cast<double>(ns) / 1e9; }

} // namespace

std::string worker_label(const scheduler::seat& where) {
  return std::string{scheduler::to_string(where.role)} + "-" + std::to_string(where.index);
}

void worker_reports::note(const scheduler::seat& where, uint32_t incarnation, const worker_peers& x,
                          net::metrics& metrics) {
  auto& last = last_[where];
  if (last.incarnation > incarnation) return; // an answer that somebody before it gave
  if (last.incarnation < incarnation) last = {incarnation, 0, {}, {}, 0};
  // Two answers of one worker may overtake each other: the newer one has said it all.
  if (x.computed_ns > last.computed_ns) {
    metrics.computed(scheduler::to_string(where.role), worker_label(where),
                     seconds(x.computed_ns - last.computed_ns));
    last.computed_ns = x.computed_ns;
  }
  for (size_t i = 0; i < std::min(x.dropped.size(), last.dropped.size()); ++i) {
    if (x.dropped[i] <= last.dropped[i]) continue;
    metrics.frames_dropped(scheduler::to_string(where.role), static_cast<net::frame_fault>(i),
                           x.dropped[i] - last.dropped[i]);
    last.dropped[i] = x.dropped[i];
  }
  if (x.log_dropped > last.log_dropped) {
    metrics.log_dropped(scheduler::to_string(where.role), x.log_dropped - last.log_dropped);
    last.log_dropped = x.log_dropped;
  }
  last.stages.resize(net::iteration_stages);
  for (size_t i = 0; i < std::min<size_t>(x.stages.size(), net::iteration_stages); ++i) {
    const auto& now = x.stages[i];
    auto& before = last.stages[i];
    if (now.counts.size() != iteration_bounds.size() + 1 || now.total_ns < before.total_ns)
      continue;
    before.counts.resize(now.counts.size());
    auto more = now.counts;
    for (size_t k = 0; k < more.size(); ++k) more[k] -= std::min(more[k], before.counts[k]);
    metrics.iteration_times(static_cast<net::iteration_stage>(i), more,
                            seconds(now.total_ns - before.total_ns));
    before = now;
  }
}

void worker_reports::tell_ages(const scheduler::seat_plan& seats, time_point now,
                               net::metrics& metrics) {
  for (const auto& where : seats.all()) {
    const auto last = heard_.try_emplace(where, now).first->second;
    metrics.set_heartbeat_age(scheduler::to_string(where.role), worker_label(where),
                              std::chrono::duration<double>(now - last).count());
  }
}

} // namespace lamella::actors
