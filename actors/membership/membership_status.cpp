#include "actors/membership/membership_status.hpp"

#include "actors/machine/sizing.hpp"
#include "actors/membership/membership_injury.hpp"
#include "actors/membership/membership_pace.hpp"
#include "actors/membership/membership_pipeline.hpp"
#include "actors/membership/pool_parts.hpp"
#include "actors/protocol/status.hpp"
#include "actors/protocol/work_reports.hpp"
#include "scheduler/cell_tables.hpp"

#include <algorithm>
#include <set>
#include <string>

#include <unistd.h>

namespace lamella::actors {

namespace {

using membership_ptr = membership_self::stateful_pointer<membership_state>;

constexpr caf::timespan status_timeout = std::chrono::seconds{1};

/// Prefill workers that run on replicas: actors of this process, each with the device of a replica.
void add_prefill_on_replicas(const membership_state& st, std::vector<worker_info>& to) {
  if (!st.was_open) return;
  for (uint32_t i = 0; i < st.config.prefill_on_replicas; ++i) {
    worker_info x;
    x.name = "prefill-" + std::to_string(i);
    x.role = scheduler::to_string(scheduler::worker_role::prefill);
    x.seat = scheduler::to_string(scheduler::seat{scheduler::worker_role::prefill, i});
    x.state = "live";
    x.incarnation = static_cast<uint32_t>(st.epoch);
    x.host = host_name();
    x.pid = static_cast<uint32_t>(getpid());
    const auto place = std::ranges::find(st.newest.plan.streams,
                                         scheduler::stream_id{scheduler::prefill_streams + i},
                                         &scheduler::stream_place::stream);
    if (place != st.newest.plan.streams.end()) {
      const auto& where = st.newest.plan.replicas.at(place->replica);
      const auto m = st.members.find(where);
      const bool here = m != st.members.end() && m->second.info.here;
      x.device = here ? m->second.info.device : scheduler::to_string(where);
    }
    to.push_back(std::move(x));
  }
}

/// What it does in the open epoch.
void note_part(const membership_state& st, const scheduler::seat& where, worker_info& x) {
  const auto& plan = st.newest.plan;
  x.part = scheduler::part_of(plan, where);
  const auto found = std::ranges::find(plan.shards, where);
  if (where.role != scheduler::worker_role::attention || found == plan.shards.end()) return;
  const auto number = static_cast<size_t>(found - plan.shards.begin());
  const auto shards = plan.shards.size() - plan.parity.size();
  if (st.config.cells.empty()) return;
  const auto table = number < shards
                         ? st.newest.design.pool.layout.cell_of(static_cast<uint32_t>(number))
                         : plan.parity[number - shards];
  x.cell = st.config.cells[scheduler::cell_of_table(table, st.config.cells.size())];
}

/// Links to those that lent KV to the open epoch stay in it when these are gone: they are left out.
void leave_out_links(const membership_state& st, std::vector<worker_info>& workers) {
  if (!st.open) return;
  std::set<std::string> seats;
  for (const auto* epoch : {&st.newest, st.before ? &*st.before : nullptr}) {
    if (epoch == nullptr) continue;
    for (const auto* list : {&epoch->plan.replicas, &epoch->plan.shards})
      for (const auto& where : *list) seats.insert(scheduler::to_string(where));
  }
  for (auto& x : workers)
    std::erase_if(x.peers, [&](const peer_info& peer) { return !seats.contains(peer.seat); });
}

system_status status_of(membership_ptr self) {
  auto& st = self->state;
  if (st.config.metrics) {
    const auto now = self->clock().now();
    for (const auto& [where, m] : st.members) // actors of this process are never out of reach
      if (m.info.here) st.reports.heard(where, now);
    st.reports.tell_ages(st.config.seats, now, *st.config.metrics);
    st.config.metrics->set_mailbox_depth("membership", self->mailbox().size());
  }
  system_status answer;
  answer.epoch = st.open ? st.newest.epoch : st.epoch;
  answer.changes = changes_of(st);
  answer.pipeline = {st.newest.design.shape.rotates, scheduler::batches_of(st.newest.plan.streams)};
  answer.times = st.measured.rows();
  for (const auto& [where, m] : st.members) {
    answer.workers.push_back(m.info);
    answer.workers.back().draining = st.draining.contains(where);
    if (st.open && m.handle) note_part(st, where, answer.workers.back());
  }
  leave_out_links(st, answer.workers);
  add_prefill_on_replicas(st, answer.workers);
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

trace_workers workers_to_trace(const membership_state& st) {
  trace_workers answer;
  for (const auto& [where, m] : st.members)
    if (m.handle)
      answer.workers.push_back({m.info.seat, m.info.name, m.info.host,
                                st.open ? scheduler::part_of(st.newest.plan, where) : "",
                                m.info.pid, m.handle});
  return answer;
}

caf::result<system_status> answer_status(membership_ptr self) {
  auto& st = self->state;
  auto left = std::make_shared<size_t>(1); // one for this function
  auto promise = self->make_response_promise<system_status>();
  auto one_less = [self, left, promise]() mutable {
    if (--*left > 0) return;
    end_look(self);
    promise.deliver(status_of(self));
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
                found->second.info.work = x.work;
                found->second.info.busy = x.busy;
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
