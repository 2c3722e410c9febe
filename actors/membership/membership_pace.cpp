#include "actors/membership/membership_pace.hpp"

#include "actors/membership/membership_failing.hpp"
#include "actors/protocol/status.hpp"

#include <algorithm>

namespace lamella::actors {

namespace {

using membership_ptr = membership_self::stateful_pointer<membership_state>;
using scheduler::seat;
using scheduler::work_report;

constexpr caf::timespan answer_limit = std::chrono::seconds{1};

/// What a worker has done since it was last asked, in the same seat.
work_report since_last(membership_state& st, const seat& who, uint32_t incarnation,
                       const work_done& now) {
  auto& [whose, last] = st.done[who];
  if (whose != incarnation) last = {};
  whose = incarnation;
  const work_report x{who, now.iterations - last.iterations, now.units - last.units,
                      std::chrono::nanoseconds{now.busy_ns - last.busy_ns}};
  last = now;
  return x;
}

/// Without the slow ones, but those that have KV: a shard keeps its part however slow it is.
std::set<seat> well_seats(const membership_state& st) {
  auto ready = ready_seats(st);
  for (const auto& [where, m] : st.members)
    if (m.info.slow && std::ranges::find(st.held, where) == st.held.end()) ready.erase(where);
  return ready;
}

/// Is the one epoch as large as the other in all that it has?
bool as_large(const scheduler::epoch_plan& x, const scheduler::epoch_plan& than) {
  return x.decoding >= than.decoding && x.replicas.size() >= than.replicas.size()
         && x.shards.size() >= than.shards.size();
}

} // namespace

void note_report(membership_ptr self, const membership_state::member& m, const worker_peers& x) {
  auto& st = self->state;
  st.reports.heard(m.where, self->clock().now());
  if (st.config.metrics) st.reports.note(m.where, m.info.incarnation, x, *st.config.metrics);
}

void look_at_pace(membership_ptr self,
                  std::function<void(const scheduler::slow_workers::change&)> tell) {
  struct round {
    size_t left = 1; // one for this function
    std::vector<work_report> reports;
  };
  auto look = std::make_shared<round>();
  const auto one_less = [self, look, tell = std::move(tell)] {
    if (--look->left > 0) return;
    for (const auto& x : self->state.pace.look(look->reports)) tell(x);
  };
  for (const auto& [where, m] : self->state.members) {
    if (!m.handle) continue;
    ++look->left;
    self->request(m.handle, answer_limit, status_atom_v)
        .then(
            [=, who = where, incarnation = m.info.incarnation](const worker_peers& x) {
              auto& st = self->state;
              const auto found = st.members.find(who);
              if (found != st.members.end() && found->second.info.incarnation == incarnation) {
                note_report(self, found->second, x);
                look->reports.push_back(since_last(st, who, incarnation, x.work));
              }
              one_less();
            },
            [one_less](caf::error&) { one_less(); });
  }
  one_less();
}

bool has_substitute(const membership_state& st, const seat& who) {
  auto others = well_seats(st);
  others.erase(who);
  const auto plan = scheduler::plan_epoch(st.config.shape, others, st.held, false);
  return plan && as_large(*plan, st.plan)
         && (who.role != scheduler::worker_role::attention || st.plan.parity);
}

std::optional<scheduler::epoch_plan> next_plan(const membership_state& st) {
  if (!st.was_open && !may_begin(st)) return std::nullopt;
  const auto of = [&](const std::set<seat>& ready) {
    return scheduler::plan_epoch(st.config.shape, ready, st.held, false);
  };
  auto all = of(ready_seats(st)), well = of(well_seats(st));
  return all && well && as_large(*well, *all) ? well : all;
}

} // namespace lamella::actors
