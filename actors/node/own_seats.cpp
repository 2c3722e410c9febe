#include "actors/node/own_seats.hpp"

#include "actors/machine/sizing.hpp"
#include "actors/protocol/epochs.hpp"
#include "actors/protocol/supervisors.hpp"
#include "actors/protocol/watches.hpp"
#include "actors/protocol/workers.hpp"
#include "actors/shared/events.hpp"
#include "actors/shared/exceptions.hpp"
#include "actors/shared/explain.hpp"

#include <algorithm>

#include <unistd.h>

namespace lamella::actors {

namespace {

using own_seats_ptr = own_seats_actor::stateful_pointer<own_seats_state>;
using scheduler::seat;

constexpr caf::timespan seat_timeout = std::chrono::seconds{10};

void take_next(own_seats_ptr self);

scheduler::seat_restarts& restarts_of(own_seats_state& st, const seat& where) {
  return st.restarts.try_emplace(where, restarts_max, restart_window).first->second;
}

/// Counts a failure, once for all WORKERs that it ends.
void count_failure(own_seats_ptr self, scheduler::seat_restarts& restarts, const own_seat_lost& x) {
  auto& st = self->state;
  const auto now = self->clock().now();
  const bool first = x.epoch == 0 || x.epoch != std::exchange(st.failed_epoch, x.epoch);
  if (first && x.budget == suspect_board::budget::explained)
    for (auto& [where, each] : st.restarts) each.forgive();
  if (first && x.budget == suspect_board::budget::counts)
    restarts.on_fault(now);
  else
    restarts.on_loss(now);
}

/// Its seat is taken again after a delay.
void take_later(own_seats_ptr self, const seat& where, const own_seat_lost& x,
                const std::string& reason) {
  auto& st = self->state;
  if (st.config.is_over && st.config.is_over()) return;
  auto& restarts = restarts_of(st, where);
  count_failure(self, restarts, x);
  const auto delay = restarts.next_delay(scheduler::restart_policy::jitter_of(++st.failures));
  tell(event_kind::service_restarting,
       {{"subtree", st.name}, {"delay_ms", delay.count()}, {"reason", reason}});
  if (restarts.failing()) {
    tell(event_kind::worker_failing,
         {{"worker", name_of(where)}, {"faults", restarts.faults()}, {"how", x.reason}});
    self->send(st.members, seat_failing{std::string{scheduler::to_string(where.role)}, where.index,
                                        x.reason, restarts.faults(), true});
  }
  const auto place = std::ranges::find(st.config.seats, where) - st.config.seats.begin();
  self->delayed_send(self, delay, wake_atom_v, static_cast<uint32_t>(place));
}

/// The one who asked for all seats gets no as the answer; others are taken again.
void on_refusal(own_seats_ptr self, const seat& where, const std::string& reason) {
  auto& st = self->state;
  st.taking = false;
  const auto why = "own seat " + name_of(where) + ": " + reason;
  if (st.asked) {
    st.wanted.clear();
    std::exchange(st.asked, std::nullopt)->deliver(caf::make_error(ec::join_refused, why));
    return;
  }
  take_later(self, where, {scheduler::to_string(where), reason}, why);
  take_next(self);
}

void sit(own_seats_ptr self, const seat& where, const join_grant& grant) {
  auto& st = self->state;
  worker_facts facts;
  try {
    auto made = st.config.make(where, grant);
    facts = std::move(made.facts);
    facts.handle = start_worker(self->home_system(), std::move(made.config), st.config.own_threads);
  } catch (const std::exception& e) {
    facts.refusal = e.what(); // MEMBERSHIP gives the seat back, and tells of it
  }
  st.workers[where] = facts.handle;
  self->request(st.members, seat_timeout, facts)
      .then(
          [self](bool) {
            self->state.taking = false;
            take_next(self);
          },
          [self, where](const caf::error& e) {
            if (self->state.asked) return on_refusal(self, where, explain(self->system(), e));
            self->state.taking = false;
            take_next(self);
          });
}

/// One at a time: MEMBERSHIP knows who joins by the sender.
void take_next(own_seats_ptr self) {
  auto& st = self->state;
  if (st.taking) return;
  if (st.wanted.empty()) {
    if (st.asked) std::exchange(st.asked, std::nullopt)->deliver(true);
    return;
  }
  const auto where = st.wanted.front();
  st.wanted.pop_front();
  st.taking = true;
  self->request(st.members, seat_timeout,
                seat_ask{std::string{scheduler::to_string(where.role)},
                         name_of(where),
                         host_name(),
                         static_cast<uint32_t>(getpid()),
                         where.index,
                         {},
                         where.cell})
      .then([self, where](const join_grant& x) { sit(self, where, x); },
            [self, where](const caf::error& e) {
              on_refusal(self, where, explain(self->system(), e));
            });
}

caf::result<bool> take_all(own_seats_ptr self, const membership_actor& members) {
  auto& st = self->state;
  st.members = members;
  st.wanted.assign(st.config.seats.begin(), st.config.seats.end());
  auto promise = self->make_response_promise<bool>();
  st.asked = promise;
  take_next(self);
  return promise;
}

/// While all seats are taken, who asked for that is told. A retired seat may have the name of one
/// that another cell has got since.
void on_lost(own_seats_ptr self, const own_seat_lost& x) {
  auto& st = self->state;
  const auto is_meant = [&](const seat& each) { return scheduler::to_string(each) == x.seat; };
  const auto where = std::ranges::find_if(st.config.seats, [&](const seat& each) {
    return is_meant(each) && !st.retired.contains(each);
  });
  if (where == st.config.seats.end()) {
    std::erase_if(st.workers, [&](const auto& each) { return is_meant(each.first); });
    return;
  }
  st.workers.erase(*where);
  if (!st.asked) take_later(self, *where, x, "own seat " + name_of(*where) + ": " + x.reason);
}

/// The pools of this process have changed their sizes.
void on_seats(own_seats_ptr self, const std::set<seat>& all) {
  auto& st = self->state;
  for (const auto& where : all) {
    const bool back = st.retired.erase(where) > 0;
    const bool known = std::ranges::find(st.config.seats, where) != st.config.seats.end();
    if (!known) st.config.seats.push_back(where);
    if ((back || !known) && !st.workers.contains(where)) st.wanted.push_back(where);
  }
  for (const auto& where : st.config.seats)
    if (!all.contains(where)) {
      st.retired.insert(where);
      st.restarts.erase(where);
    }
  std::erase_if(st.wanted, [&](const seat& where) { return st.retired.contains(where); });
  take_next(self);
}

supervisor_status status_of(own_seats_ptr self) {
  auto& st = self->state;
  supervisor_status result{st.name, "one_for_one", {}, {}, 0};
  for (const auto& [where, restarts] : st.restarts) {
    if (result.children.size() == children_told_max) {
      result.more = st.restarts.size() - children_told_max;
      break;
    }
    const auto spent = restarts.spent(self->clock().now());
    result.children.push_back(
        {name_of(where),
         std::string{scheduler::to_string(where.role)},
         1,
         {spent.used, spent.allowed, static_cast<uint32_t>(spent.window.count())}});
  }
  return result;
}

} // namespace

std::string name_of(const seat& where) {
  return std::string{scheduler::to_string(where.role)} + "-" + std::to_string(where.index);
}

own_seats_actor::behavior_type own_seats(own_seats_actor::stateful_pointer<own_seats_state> self,
                                         own_seats_config config) {
  end_on_exceptions(self);
  self->state.config = std::move(config);
  self->set_exit_handler([self](const caf::exit_msg& x) {
    for (const auto& [where, handle] : self->state.workers)
      if (handle) self->send_exit(handle, caf::exit_reason::user_shutdown);
    self->quit(x.reason);
  });
  return {
      [self](caf::open_atom, const membership_actor& members) { return take_all(self, members); },
      [self](const own_seat_lost& x) { on_lost(self, x); },
      [self](begin_atom) {
        for (auto& [where, restarts] : self->state.restarts)
          if (self->state.workers.contains(where)) restarts.on_serving(self->clock().now());
      },
      [self](wake_atom, uint32_t place) {
        auto& st = self->state;
        const auto& where = st.config.seats.at(place);
        // It may have been taken away meanwhile, and be taken again.
        if (!st.retired.contains(where) && !st.workers.contains(where)) st.wanted.push_back(where);
        take_next(self);
      },
      [self](const seats_ptr& all) { on_seats(self, *all); },
      [self](status_atom) { return status_of(self); },
  };
}

own_seats_actor start_own_seats(caf::actor_system& system, own_seats_config config) {
  return system.spawn(own_seats, std::move(config));
}

} // namespace lamella::actors
