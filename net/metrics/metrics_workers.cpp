// What is told of workers one by one, and of pools: states, KV slots, time and changes.
#include "net/metrics/metrics_impl.hpp"

#include <algorithm>

namespace lamella::net {

namespace {

/// Shorter stretches of time say more of when somebody scraped than of the worker.
constexpr std::chrono::seconds busy_stretch{1};

Labels labels_of(std::string_view role, std::string_view worker) {
  return {{"role", text(role)}, {"worker", text(worker)}};
}

Labels with(Labels labels, const char* name, std::string_view value) {
  labels.emplace(name, value);
  return labels;
}

} // namespace

void metrics::set_worker_state(std::string_view role, std::string_view worker,
                               worker_condition now) {
  impl_->worker_up.Add(labels_of(role, worker)).Set(now == worker_condition::live ? 1 : 0);
  for (size_t i = 0; i < std::size(conditions); ++i)
    impl_->worker_state.Add(with(labels_of(role, worker), "state", conditions[i]))
        .Set(i == static_cast<size_t>(now) ? 1 : 0);
}

void metrics::set_worker_slow(std::string_view role, std::string_view worker, bool slow) {
  impl_->worker_slow.Add(labels_of(role, worker)).Set(slow ? 1 : 0);
}

void metrics::set_pool_members(std::string_view pool, uint32_t members) {
  impl_->pool_members.Add({{"pool", text(pool)}}).Set(members);
}

void metrics::set_expected_time(std::string_view work, std::string_view cell, double seconds,
                                double correction) {
  const Labels labels{{"work", text(work)}, {"cell", text(cell)}};
  impl_->expected_seconds.Add(labels).Set(seconds);
  impl_->time_correction.Add(labels).Set(correction);
}

void metrics::set_pool_wish(std::string_view pool, uint32_t members) {
  impl_->pool_wish.Add({{"pool", text(pool)}}).Set(members);
}

void metrics::set_pool_target(std::string_view pool, uint32_t members) {
  impl_->pool_target.Add({{"pool", text(pool)}}).Set(members);
}

void metrics::pool_changed(std::string_view pool, change_end how) {
  impl_->pool_changes
      .Add({{"pool", text(pool)}, {"result", text(change_ends[static_cast<size_t>(how)])}})
      .Increment();
}

void metrics::kv_moved(uint64_t slots, uint64_t bytes, double seconds) {
  impl_->kv_moved_slots.Increment(static_cast<double>(slots));
  impl_->kv_moved_bytes.Increment(static_cast<double>(bytes));
  impl_->kv_move_seconds.Observe(seconds);
}

void metrics::kv_move_aborted() { impl_->kv_moves_aborted.Increment(); }

void metrics::launches_stopped(double seconds) { impl_->launches_stopped.Observe(seconds); }

void metrics::set_heartbeat_age(std::string_view role, std::string_view worker, double seconds) {
  impl_->heartbeat_age.Add(labels_of(role, worker)).Set(seconds);
}

void metrics::set_ready(bool ready) { impl_->ready.Set(ready ? 1 : 0); }

void metrics::computed(std::string_view role, std::string_view worker, double seconds) {
  const std::lock_guard lock(impl_->mutex);
  auto& series = impl_->busy_by_worker[{text(role), text(worker)}];
  if (series.ratio == nullptr) series.ratio = &impl_->busy_ratio.Add(labels_of(role, worker));
  series.seconds += seconds;
}

void metrics::impl::tell_busy(std::chrono::steady_clock::time_point now) {
  const std::lock_guard lock(mutex);
  if (now - busy_since < busy_stretch) return;
  const auto stretch = std::chrono::duration<double>(now - busy_since).count();
  busy_since = now;
  // What ended in this stretch may have begun before it.
  for (auto& [who, series] : busy_by_worker)
    series.ratio->Set(std::min(1.0, std::exchange(series.seconds, 0) / stretch));
}

void metrics::set_kv_slots(std::string_view worker, const slot_counts& slots) {
  const std::array<uint64_t, std::size(slot_states)> counts{slots.free, slots.used, slots.cached,
                                                            slots.parity, slots.orphan};
  uint64_t all = 0;
  for (const auto count : counts) all += count;
  const std::lock_guard lock(impl_->mutex);
  auto found = impl_->kv_by_worker.find(worker);
  if (found == impl_->kv_by_worker.end()) {
    impl::kv_series series;
    const auto labels = labels_of("attention", worker);
    for (size_t i = 0; i < counts.size(); ++i)
      series.slots[i] = &impl_->kv_slots.Add(with(labels, "state", slot_states[i]));
    series.usage = &impl_->kv_usage.Add(labels);
    found = impl_->kv_by_worker.emplace(text(worker), series).first;
  }
  for (size_t i = 0; i < counts.size(); ++i)
    found->second.slots[i]->Set(static_cast<double>(counts[i]));
  found->second.usage->Set(all == 0 ? 0
                                    : static_cast<double>(all - slots.free - slots.cached)
                                          / static_cast<double>(all));
  impl_->tell_usage();
}

void metrics::impl::tell_usage() {
  double highest = 0;
  for (const auto& [name, each] : kv_by_worker) highest = std::max(highest, each.usage->Value());
  usage.Set(highest);
}

void metrics::remove_worker(std::string_view role, std::string_view worker) {
  impl& m = *impl_;
  const auto labels = labels_of(role, worker);
  for (Family<Gauge>* gauges : {&m.worker_up, &m.worker_slow, &m.heartbeat_age})
    gauges->Remove(&gauges->Add(labels));
  for (const auto state : conditions)
    m.worker_state.Remove(&m.worker_state.Add(with(labels, "state", state)));
  const std::lock_guard lock(m.mutex);
  if (auto busy = m.busy_by_worker.extract({text(role), text(worker)}))
    m.busy_ratio.Remove(busy.mapped().ratio);
  if (role != "attention") return;
  if (const auto kv = m.kv_by_worker.find(worker); kv != m.kv_by_worker.end()) {
    for (auto* each : kv->second.slots) m.kv_slots.Remove(each);
    m.kv_usage.Remove(kv->second.usage);
    m.kv_by_worker.erase(kv);
    m.tell_usage();
  }
}

} // namespace lamella::net
