#include "actors/supervisor.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>

namespace lamella::actors {

namespace {

using supervisor_ptr = caf::stateful_actor<supervisor_state>*;
using restart_atom = caf::atom_constant<caf::atom("restart")>;
constexpr restart_atom restart_atom_v{};

void end_children(supervisor_ptr self) {
  auto children = std::exchange(self->state.children, {});
  for (auto it = children.rbegin(); it != children.rend(); ++it)
    self->send_exit(*it, caf::exit_reason::user_shutdown);
}

void on_end(supervisor_ptr self, const std::string& reason);

void start(supervisor_ptr self) {
  auto& st = self->state;
  st.waiting = false;
  try {
    st.children = st.what.start(self, ++st.generation);
  } catch (const std::exception& error) {
    on_end(self, error.what());
    return;
  }
  for (auto& child : st.children) self->monitor(caf::actor_cast<caf::actor_addr>(child));
}

void on_end(supervisor_ptr self, const std::string& reason) {
  auto& st = self->state;
  end_children(self);
  const auto verdict = st.policy->on_exit(self->clock().now());
  const bool given_up = verdict == scheduler::restart_verdict::escalate;
  st.what.on_trouble(given_up);
  if (given_up) {
    spdlog::critical("supervisor gives up subtree={} reason=\"{}\"", st.what.name, reason);
    self->quit(caf::make_error(caf::sec::runtime_error, st.what.name + ": " + reason));
    return;
  }
  // The generation spreads restarts as a random number would, and repeats in tests.
  const auto jitter = static_cast<double>(st.generation * 0x9e3779b97f4a7c15 >> 11) * 0x1p-53;
  const auto delay = st.policy->next_delay(jitter);
  spdlog::error("supervisor restarts subtree={} delay_ms={} reason=\"{}\"", st.what.name,
                delay.count(), reason);
  st.waiting = true;
  self->delayed_send(self, delay, restart_atom_v);
}

} // namespace

caf::behavior supervisor(caf::stateful_actor<supervisor_state>* self, subtree what,
                         scheduler::restart_policy policy) {
  self->state.what = std::move(what);
  self->state.policy.emplace(policy);
  self->set_down_handler([self](const caf::down_msg& down) {
    auto& st = self->state;
    const bool ours = std::any_of(st.children.begin(), st.children.end(), [&](const auto& child) {
      return caf::actor_cast<caf::actor_addr>(child) == down.source;
    });
    if (st.stopping || st.waiting || !ours) return;
    on_end(self, self->system().render(down.reason));
  });
  self->set_exit_handler([self](const caf::exit_msg& x) {
    self->state.stopping = true;
    end_children(self);
    self->quit(x.reason);
  });
  start(self);
  return {
      [self](restart_atom) {
        if (!self->state.stopping) start(self);
      },
  };
}

} // namespace lamella::actors
