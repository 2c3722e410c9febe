#include "actors/worker/door.hpp"

#include "actors/protocol/join.hpp"
#include "actors/protocol/pools.hpp"
#include "actors/protocol/workers.hpp"
#include "actors/shared/events.hpp"
#include "actors/shared/exceptions.hpp"

#include "scheduler/membership/seats.hpp"

#include <spdlog/spdlog.h>

#include <fmt/format.h>

#include <algorithm>

namespace lamella::actors {

namespace {

using door_ptr = door_actor::stateful_pointer<door_state>;

constexpr size_t name_bytes_max = 64, host_bytes_max = 256;

/// Texts from outside go to logs and to status: short, visible ASCII.
bool is_plain(const std::string& text, size_t bytes_max) {
  return text.size() <= bytes_max && std::all_of(text.begin(), text.end(), [](unsigned char c) {
           return c > ' ' && c < 0x7f && c != '"' && c != '\\';
         });
}

/// Join_refused ends the worker's process; with any other code it tries again.
caf::error not_now(ec code, const std::string& why, const std::string& who) {
  tell(event_kind::worker_refused, {{"worker", who}, {"reason", why}});
  return caf::make_error(code, why);
}

caf::error refusal(const std::string& why, const std::string& who) {
  return not_now(ec::join_refused, why, who);
}

std::string node_of(const caf::strong_actor_ptr& x) {
  return x ? caf::to_string(x->node()) : std::string{"unknown"};
}

/// The first setting on which service and worker must agree and differ, with both values.
std::optional<std::string> differs(const door_config& ours, const join_ask& theirs) {
  if (theirs.protocol != join_protocol)
    return fmt::format("protocol: the service has {}, the worker {}", join_protocol,
                       theirs.protocol);
  if (theirs.version != ours.version)
    return fmt::format("version: the service has {}, the worker {}", ours.version,
                       is_plain(theirs.version, name_bytes_max) ? theirs.version
                                                                : "an invalid one");
  if (theirs.heartbeat_ms != ours.heartbeat_ms || theirs.dead_ms != ours.dead_ms)
    return fmt::format("heartbeat and dead milliseconds: the service has {} and {}, the worker {} "
                       "and {}",
                       ours.heartbeat_ms, ours.dead_ms, theirs.heartbeat_ms, theirs.dead_ms);
  return std::nullopt;
}

caf::result<join_challenge> on_ask(door_ptr self, const join_ask& x) {
  auto& st = self->state;
  const auto now = self->clock().now();
  const auto origin = node_of(self->current_sender());
  if (const auto left = st.guard.blocked(origin, now))
    return caf::make_error(ec::join_denied,
                           fmt::format("too many wrong proofs; retry in {} s", left->count()));
  if (!is_plain(x.name, name_bytes_max) || (!x.cell.empty() && !is_plain(x.cell, name_bytes_max))
      || !is_plain(x.host, host_bytes_max) || x.nonce.size() != nonce_bytes)
    return refusal("the request to join is malformed", origin);
  if (const auto why = differs(*st.config, x)) return refusal(*why, x.name);
  if (!scheduler::role_named(x.role))
    return refusal("no pool is named '" + x.role.substr(0, name_bytes_max) + "'", x.name);
  join_challenge challenge{st.config->cluster, st.config->fresh_nonce()};
  if (!st.guard.issue(challenge.nonce, now))
    return not_now(ec::queue_full, "too many workers are joining; retry in a few seconds", x.name);
  std::erase_if(st.asked, [&](const auto& open) {
    return now - open.second.since > scheduler::join_guard::nonce_life;
  });
  st.asked.emplace(challenge.nonce, door_state::open_ask{x, now});
  return challenge;
}

caf::result<join_grant> on_proof(door_ptr self, const join_proof& x) {
  auto& st = self->state;
  const auto now = self->clock().now();
  const auto sender = self->current_sender();
  auto node = st.asked.extract(x.nonce);
  if (!node || !st.guard.redeem(x.nonce, now))
    return not_now(ec::deadline, "the challenge is unknown or older than 5 s", node_of(sender));
  const auto& ask = node.mapped().what;
  const join_challenge challenge{st.config->cluster, x.nonce};
  const auto& config = *st.config;
  const auto pool = ask.cell.empty() ? ask.role : ask.role + "/" + ask.cell;
  const bool is_child = config.of_children && config.of_children(pool);
  const auto& secret = is_child ? *config.child_secret : config.secret;
  if (is_child && proves_worker(config.secret, x.proof, ask, challenge))
    return refusal("the pool '" + pool
                       + "' accepts only workers that the service starts (placement: local)",
                   ask.name);
  if (!proves_worker(secret, x.proof, ask, challenge)) {
    st.guard.failed(node_of(sender), now);
    spdlog::warn("worker denied worker={} host={} pid={} reason=\"wrong secret\"", ask.name,
                 ask.host, ask.pid);
    return caf::make_error(ec::join_denied);
  }
  st.authenticated.insert(caf::actor_cast<caf::actor_addr>(sender));
  self->monitor(sender);
  // The worker stays the sender: MEMBERSHIP watches it and answers it.
  return self->delegate(st.config->members,
                        seat_ask{ask.role, ask.name, ask.host, ask.pid, ask.preferred,
                                 control_proof(secret, ask, challenge), ask.cell});
}

caf::result<bool> on_facts(door_ptr self, const worker_facts& x) {
  const auto sender = caf::actor_cast<caf::actor_addr>(self->current_sender());
  if (!self->state.authenticated.contains(sender))
    return refusal("the worker has not joined", node_of(self->current_sender()));
  return self->delegate(self->state.config->members, x);
}

caf::result<pool_change> on_drain(door_ptr self, const worker_drain& x) {
  const auto sender = caf::actor_cast<caf::actor_addr>(self->current_sender());
  if (!self->state.authenticated.contains(sender))
    return refusal("the worker has not joined", node_of(self->current_sender()));
  return self->delegate(self->state.config->members, x);
}

} // namespace

std::string worker_proof(const net::shared_secret& secret, const join_ask& x,
                         const join_challenge& c) {
  return secret.prove({"lamella-join-v2", c.nonce, c.cluster, x.role, x.cell,
                       std::to_string(x.preferred), x.name, x.nonce});
}

bool proves_worker(const net::shared_secret& secret, const std::string& proof, const join_ask& x,
                   const join_challenge& c) {
  return secret.accepts(proof, {"lamella-join-v2", c.nonce, c.cluster, x.role, x.cell,
                                std::to_string(x.preferred), x.name, x.nonce});
}

std::string control_proof(const net::shared_secret& secret, const join_ask& x,
                          const join_challenge& c) {
  return secret.prove({"lamella-control-v1", x.nonce, c.nonce, c.cluster});
}

bool proves_control(const net::shared_secret& secret, const std::string& proof, const join_ask& x,
                    const join_challenge& c) {
  return secret.accepts(proof, {"lamella-control-v1", x.nonce, c.nonce, c.cluster});
}

door_actor::behavior_type door(door_actor::stateful_pointer<door_state> self, door_config config) {
  end_on_exceptions(self);
  self->state.config.emplace(std::move(config));
  self->set_down_handler(
      [self](const caf::down_msg& down) { self->state.authenticated.erase(down.source); });
  // Strangers can send anything to a published actor; only this process ends it.
  self->set_exit_handler([self](const caf::exit_msg& x) {
    const auto& sender = self->current_sender();
    if (sender && sender->node() == self->home_system().node()) self->quit(x.reason);
  });
  return {
      [self](const join_ask& x) { return on_ask(self, x); },
      [self](const join_proof& x) { return on_proof(self, x); },
      [self](const worker_facts& x) { return on_facts(self, x); },
      [self](const worker_drain& x) { return on_drain(self, x); },
  };
}

door_actor start_door(caf::actor_system& system, door_config config) {
  return system.spawn(door, std::move(config));
}

} // namespace lamella::actors
