#include "actors/membership/membership_status.hpp"

#include "actors/membership/membership_pace.hpp"
#include "actors/membership/membership_scale.hpp"
#include "actors/protocol/status.hpp"

namespace lamella::actors {

namespace {

using membership_ptr = membership_self::stateful_pointer<membership_state>;

constexpr caf::timespan status_timeout = std::chrono::seconds{1};

system_status status_of(membership_ptr self) {
  auto& st = self->state;
  if (st.config.metrics) {
    st.reports.tell_ages(st.config.seats, self->clock().now(), *st.config.metrics);
    st.config.metrics->set_mailbox_depth("membership", self->mailbox().size());
  }
  system_status answer;
  answer.epoch = st.open ? st.newest.epoch : st.epoch;
  answer.changes = changes_of(st);
  for (const auto& [name, info] : st.in_process) answer.workers.push_back(info);
  for (const auto& [where, m] : st.members) {
    answer.workers.push_back(m.info);
    if (st.open && m.handle) answer.workers.back().part = scheduler::part_of(st.newest.plan, where);
  }
  for (const auto& x : st.config.seats.free_seats()) {
    worker_info gone;
    gone.role = scheduler::to_string(x.where.role);
    gone.seat = scheduler::to_string(x.where);
    gone.incarnation = x.incarnation;
    gone.state = st.failing.contains(x.where) ? "failing" : "missing";
    answer.missing.push_back(std::move(gone));
  }
  for (auto* list : {&answer.workers, &answer.missing})
    for (auto& x : *list)
      for (const auto& [where, why] : st.failing)
        if (scheduler::to_string(where) == x.seat) x.trouble = why;
  return answer;
}

} // namespace

caf::result<system_status> answer_status(membership_ptr self) {
  auto& st = self->state;
  auto left = std::make_shared<size_t>(1); // one for this function
  auto promise = self->make_response_promise<system_status>();
  auto one_less = [self, left, promise]() mutable {
    if (--*left == 0) promise.deliver(status_of(self));
  };
  for (const auto& [where, m] : st.members) {
    if (!m.handle) continue;
    ++*left;
    self->request(m.handle, status_timeout, status_atom_v)
        .then(
            [self, one_less, where = where,
             incarnation = m.info.incarnation](worker_peers& x) mutable {
              auto found = self->state.members.find(where);
              if (found != self->state.members.end()
                  && found->second.info.incarnation == incarnation) {
                note_report(self, found->second, x);
                found->second.info.peers = std::move(x.peers);
              }
              one_less();
            },
            [one_less](caf::error&) mutable { one_less(); });
  }
  auto mine = one_less;
  mine();
  return promise;
}

} // namespace lamella::actors
