#include "actors/node/supervisor.hpp"

#include "actors/protocol/actors.hpp"
#include "actors/protocol/epochs.hpp"
#include "actors/protocol/error.hpp"
#include "actors/protocol/supervisors.hpp"
#include "actors/shared/events.hpp"
#include "actors/shared/exceptions.hpp"
#include "actors/shared/explain.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>

namespace lamella::actors {

namespace {

using supervisor_ptr = caf::stateful_actor<supervisor_state>*;
using restart_atom = caf::atom_constant<caf::atom("restart")>;
constexpr restart_atom restart_atom_v{};

/// Upper bound of the delay before links are rebuilt. The wait loses no epoch: one is handed out as
/// soon as it is available.
constexpr std::chrono::milliseconds cut_delay_max{160};

void end_all(supervisor_ptr self, const std::vector<caf::strong_actor_ptr>& children) {
  for (auto it = children.rbegin(); it != children.rend(); ++it)
    self->send_exit(*it, caf::exit_reason::user_shutdown);
}

void end_children(supervisor_ptr self) {
  auto& st = self->state;
  st.renewing = 0;
  if (const auto abandon = std::exchange(st.abandon, nullptr)) abandon();
  st.due.reset(); // whoever asks for an epoch gets the best one
  end_all(self, std::exchange(st.children, {}));
}

void on_end(supervisor_ptr self, const std::string& role, const std::string& reason, bool killed);

void start(supervisor_ptr self) {
  auto& st = self->state;
  st.waiting = false;
  try {
    st.children = st.what.start(self, ++st.generation);
  } catch (const std::exception& error) {
    on_end(self, {}, error.what(), false);
    return;
  }
  st.policy->on_serving(self->clock().now());
  for (auto& child : st.children) self->monitor(caf::actor_cast<caf::actor_addr>(child));
  if (const auto due = st.due) self->send(self, *due);
}

void begin(supervisor_ptr self) {
  auto& st = self->state;
  ++st.restart; // one that was put off has been overtaken: it would start a second generation
  if (!st.what.prepare) {
    start(self);
    return;
  }
  st.waiting = true;
  st.what.prepare(self, [self, mine = ++st.preparation](std::optional<std::string> why) {
    auto& now = self->state;
    if (now.stopping || mine != now.preparation) return;
    if (!why) {
      start(self);
      return;
    }
    spdlog::warn("supervisor waiting subtree={} reason=\"{}\"", now.what.name, *why);
    self->delayed_send(self, std::min(now.policy->next_delay(0.5), cut_delay_max), restart_atom_v,
                       ++now.restart);
  });
}

/// A worker of the children is lost. The children are not at fault.
void on_lost(supervisor_ptr self, const epoch_lost& x) {
  auto& st = self->state;
  if (st.stopping) return;
  end_children(self);
  st.policy->on_loss(self->clock().now());
  st.what.on_trouble(false, x.role, std::nullopt);
  spdlog::warn("restarting after a loss subtree={} reason=\"{}\"", st.what.name, x.reason);
  begin(self);
}

/// The children that ran until now end; the others are there already.
void take_over(supervisor_ptr self, std::vector<caf::strong_actor_ptr> children) {
  auto& st = self->state;
  const auto before = std::exchange(st.children, std::move(children));
  for (const auto& child : before) self->demonitor(caf::actor_cast<caf::actor_addr>(child));
  for (const auto& child : st.children) self->monitor(caf::actor_cast<caf::actor_addr>(child));
  end_all(self, before);
}

void on_renewed(supervisor_ptr self, renewal x) {
  auto& st = self->state;
  st.renewing = 0;
  st.abandon = nullptr;
  if (const auto due = st.due) self->send(self, *due);
  switch (x.what) {
  case renewal::outcome::taken:
    take_over(self, std::move(x.children));
    return;
  case renewal::outcome::stays:
    spdlog::info("children stay subtree={} reason=\"{}\"", st.what.name, x.reason);
    return;
  case renewal::outcome::broken:
    spdlog::warn("restarting: the next generation did not take over subtree={} reason=\"{}\"",
                 st.what.name, x.reason);
    end_children(self);
    st.policy->on_loss(self->clock().now());
    st.what.on_trouble(false, {}, std::nullopt);
    begin(self);
  }
}

/// A better epoch is possible than the one that the children serve.
void on_due(supervisor_ptr self, const epoch_due& x) {
  auto& st = self->state;
  st.due.reset();
  if (st.stopping || !st.what.renew) return;
  if (st.waiting || st.renewing != 0) { // when they run
    st.due = std::make_shared<const epoch_due>(x);
    return;
  }
  spdlog::info("renewing subtree={} epoch={} reason=\"{}\"", st.what.name, x.epoch, x.reason);
  const auto mine = st.renewing = ++st.renewals;
  const auto goes_on = [self, mine] { return self->state.renewing == mine; };
  st.abandon = st.what.renew(self, ++st.generation, goes_on, [self, goes_on](renewal done) {
    if (goes_on()) on_renewed(self, std::move(done));
  });
}

/// Reconnects the links after a cut: no fault of the children either, but it may recur at once.
/// A worker whose links keep breaking is fenced and rests alone
/// (scheduler/membership/reach_book.hpp); the others do not wait for it.
void on_cut(supervisor_ptr self, const std::string& role, const std::string& reason,
            std::optional<net::failover_cause> cause) {
  auto& st = self->state;
  end_children(self);
  st.policy->on_loss(self->clock().now());
  st.what.on_trouble(false, role, cause);
  const auto delay = std::min(st.policy->next_delay(0.5), cut_delay_max);
  spdlog::warn("reconnecting links subtree={} delay_ms={} reason=\"{}\"", st.what.name,
               delay.count(), reason);
  st.waiting = true;
  self->delayed_send(self, delay, restart_atom_v, ++st.restart);
}

/// `killed`: by a signal from outside, so no request is suspected.
void on_end(supervisor_ptr self, const std::string& role, const std::string& reason, bool killed) {
  auto& st = self->state;
  end_children(self);
  const auto now = self->clock().now();
  const auto budget =
      st.what.on_fault && !killed ? st.what.on_fault() : suspect_board::budget::counts;
  if (budget == suspect_board::budget::explained) st.policy->forgive();
  auto verdict = scheduler::restart_verdict::restart;
  if (budget == suspect_board::budget::counts)
    verdict = st.policy->on_exit(now);
  else
    st.policy->on_loss(now);
  const bool given_up = verdict == scheduler::restart_verdict::escalate;
  st.what.on_trouble(given_up, role,
                     killed ? net::failover_cause::exit : net::failover_cause::fault);
  if (given_up) {
    tell(event_kind::service_failed, {{"subtree", st.what.name}, {"reason", reason}});
    if (st.what.on_stop) st.what.on_stop();
    self->quit(caf::make_error(caf::sec::runtime_error, st.what.name + ": " + reason));
    return;
  }
  const auto delay = st.policy->next_delay(scheduler::restart_policy::jitter_of(st.generation));
  tell(event_kind::service_restarting,
       {{"subtree", st.what.name}, {"delay_ms", delay.count()}, {"reason", reason}});
  st.waiting = true;
  self->delayed_send(self, delay, restart_atom_v, ++st.restart);
}

/// What it counts as that a child has ended for the links' sake; nothing: it did not.
std::optional<net::failover_cause> cut_of(const caf::error& reason) {
  if (reason == ec::link_cut) return net::failover_cause::partition;
  if (reason == ec::attempts_silent) return net::failover_cause::deadline;
  if (reason == ec::rows_differ) return net::failover_cause::integrity;
  return std::nullopt;
}

void on_down(supervisor_ptr self, const caf::down_msg& down) {
  auto& st = self->state;
  const bool ours = std::any_of(st.children.begin(), st.children.end(), [&](const auto& child) {
    return caf::actor_cast<caf::actor_addr>(child) == down.source;
  });
  if (st.stopping || st.waiting || !ours) return;
  const auto role = st.what.facts_of ? st.what.facts_of(down.source).role : std::string{};
  const auto why = explain(self->system(), down.reason);
  const bool spent = down.reason == ec::attempts_spent;
  // A child whose peers are WORKERs may hear of a lost WORKER itself, or of an actor that ended
  // because of that loss; the order is not known. Attempts are spent on their devices as well.
  const bool peers = (down.reason == caf::sec::request_receiver_down || spent)
                     && st.what.blames_workers && st.what.blames_workers();
  if (peers && spent && st.what.on_spent) st.what.on_spent();
  if (const auto cut = cut_of(down.reason))
    on_cut(self, role, why, cut);
  else if (peers)
    on_cut(self, role, why, spent ? std::optional{net::failover_cause::fault} : std::nullopt);
  else
    on_end(self, role, why, down.reason == caf::exit_reason::kill);
}

supervisor_status status_of(supervisor_ptr self) {
  const auto& st = self->state;
  supervisor_status x{st.what.name, "one_for_all", {}, {}, 0};
  const auto spent = st.policy->spent(self->clock().now());
  x.restarts = {spent.used, spent.allowed, static_cast<uint32_t>(spent.window.count())};
  for (const auto& child : st.children) {
    if (!st.what.facts_of) break;
    const auto facts = st.what.facts_of(caf::actor_cast<caf::actor_addr>(child));
    const auto found = std::ranges::find_if(x.children, [&](const auto& known) {
      return known.name == facts.name && known.role == facts.role;
    });
    if (found != x.children.end())
      ++found->count;
    else
      x.children.push_back({facts.name, facts.role, 1, {}});
  }
  return x;
}

} // namespace

caf::behavior supervisor(caf::stateful_actor<supervisor_state>* self, subtree what,
                         scheduler::restart_policy policy) {
  end_on_exceptions(self);
  self->state.what = std::move(what);
  self->state.policy.emplace(policy);
  self->set_down_handler([self](const caf::down_msg& down) { on_down(self, down); });
  self->set_exit_handler([self](const caf::exit_msg& x) {
    self->state.stopping = true;
    self->state.renewing = 0;
    end_children(self);
    if (self->state.what.on_stop) self->state.what.on_stop();
    self->quit(x.reason);
  });
  begin(self);
  return {
      [self](restart_atom, uint64_t which) {
        if (!self->state.stopping && which == self->state.restart) begin(self);
      },
      [self](const epoch_lost& x) { on_lost(self, x); },
      [self](const epoch_due& x) { on_due(self, x); },
      [self](status_atom) { return status_of(self); },
  };
}

} // namespace lamella::actors
