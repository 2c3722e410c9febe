#include "actors/membership/membership_pace.hpp"

#include "actors/membership/membership_pipeline.hpp"
#include "actors/protocol/work_reports.hpp"

#include <algorithm>

namespace lamella::actors {

namespace {

using membership_ptr = membership_self::stateful_pointer<membership_state>;
using scheduler::seat;
using scheduler::work_report;

/// What a worker has done since it was last asked, in the same seat.
work_report since_last(membership_state& st, const seat& who, uint32_t incarnation,
                       const work_done& now) {
  auto& [whose, last] = st.done[who];
  if (whose != incarnation) last = {};
  whose = incarnation;
  work_report x{who, now.iterations - last.iterations, now.units - last.units,
                std::chrono::nanoseconds{now.busy_ns - last.busy_ns}};
  last = now;
  return x;
}

} // namespace

void note_report(membership_ptr self, const membership_state::member& m, const worker_peers& x) {
  auto& st = self->state;
  st.reports.heard(m.where, self->clock().now());
  note_times(st, m, x);
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
    end_look(self);
    for (const auto& x : self->state.pace.look(look->reports)) tell(x);
  };
  for (const auto& [where, m] : self->state.members) {
    if (!m.handle) continue;
    ++look->left;
    self->request(m.handle, worker_answer_limit, status_atom_v)
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

} // namespace lamella::actors
