#include "actors/membership/membership_reach.hpp"

#include "actors/membership/membership_injury.hpp"
#include "actors/membership/membership_pace.hpp"
#include "actors/membership/membership_plan.hpp"
#include "actors/protocol/epoch_parts.hpp"
#include "actors/protocol/watches.hpp"
#include "actors/shared/events.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace lamella::actors {

namespace {

using membership_ptr = membership_self::stateful_pointer<membership_state>;
using member = membership_state::member;
using scheduler::failed_pair;
using scheduler::seat;
using scheduler::worker_role;
using std::chrono::milliseconds;

/// Between two looks: as a rule, while some pair fails, and while somebody new waits for a part.
constexpr milliseconds poll_interval{200}, doubtful_every{100}, new_every{20};
/// So long who is new is looked at often.
constexpr std::chrono::seconds new_for{5};
/// A fenced worker is sent away after so long, and longer each time; one whose KV nobody else has
/// made again, later.
constexpr std::chrono::seconds sent_away_after{20}, sent_away_with_kv{60}, sent_away_most{600};
constexpr size_t rests_max = 256;

/// Whether workers connect links to that one: to shards all do, to replicas other replicas where
/// batches rotate (L-M21).
bool is_connected(const membership_state& st, const seat& by, const seat& peer) {
  return peer.role == worker_role::attention
         || (st.config.shape.rotates && by.role == worker_role::model
             && peer.role == worker_role::model);
}

bool is_watched(const membership_state& st, const seat& where) {
  return where.role == worker_role::attention
         || (st.config.shape.rotates && where.role == worker_role::model);
}

/// Whom that worker asks.
std::vector<epoch_peer> peers_to_watch(const membership_state& st, const seat& by) {
  std::vector<epoch_peer> peers;
  for (const auto& [where, m] : st.members)
    if (m.handle && where != by && is_connected(st, by, where))
      peers.push_back({m.info.seat, m.address, scheduler::number_of(where), m.info.incarnation});
  return peers;
}

/// What it says of peers that still sit there.
std::vector<scheduler::reach_view> views_of(const membership_state& st, const watch_report& x) {
  std::vector<scheduler::reach_view> views;
  for (const auto& [where, m] : st.members) {
    const auto found =
        std::ranges::find_if(x.peers, [&](const auto& peer) { return peer.seat == m.info.seat; });
    if (found != x.peers.end() && found->incarnation == m.info.incarnation)
      views.push_back({where, found->answers, milliseconds{found->failing_ms}});
  }
  return views;
}

/// What is wrong with a worker's data plane, with the peers it is so with.
std::string unheard(const char* what, const std::set<failed_pair>& pairs, const seat& who) {
  std::string others;
  for (const auto& [a, b] : pairs)
    if (a == who || b == who)
      others += (others.empty() ? "" : ", ") + scheduler::to_string(a == who ? b : a);
  return what + others;
}

/// The workers at fault for links that were torn again and again, if others can do their work
/// without computing KV again.
std::set<seat> torn_out(const membership_state& st, const std::vector<scheduler::link_party>& all,
                        const std::set<failed_pair>& pairs) {
  std::set<seat> result;
  if (pairs.empty()) return result;
  for (const auto& where : scheduler::at_fault(all, pairs)) {
    const auto party = std::ranges::find(all, where, &scheduler::link_party::who);
    const bool spared = where.role == worker_role::attention && has_part(st.newest.plan, where)
                            ? has_substitute(st, where)
                            : party->replaceable;
    if (spared) result.insert(where);
  }
  return result;
}

std::vector<scheduler::link_party> parties_of(const membership_state& st) {
  const auto ready = ready_seats(st);
  std::vector<scheduler::link_party> parties;
  for (const auto& [where, m] : st.members) {
    if (!m.handle) continue;
    auto others = ready;
    others.erase(where);
    parties.push_back({where, m.info.here, has_part(st.newest.plan, where),
                       scheduler::plan_epoch(st.config.shape, others, st.held, false).has_value(),
                       m.joined});
  }
  return parties;
}

scheduler::fence_rest& rest_of(membership_state& st, const member& m) {
  const std::pair key{m.info.host, m.info.name};
  if (st.rests.size() >= rests_max && !st.rests.contains(key)) st.rests.erase(st.rests.begin());
  return st.rests[key];
}

/// When a worker that is fenced is sent away.
std::chrono::seconds timeout_with(membership_state& st, const member& m) {
  const bool has_kv = std::ranges::find(st.held, m.where) != st.held.end();
  const auto times = rest_of(st, m).rest() / scheduler::fence_rest::first;
  return std::min((has_kv ? sent_away_with_kv : sent_away_after) * std::max<int64_t>(times, 1),
                  sent_away_most);
}

/// Takes the trust in a worker away, for a rest that doubles each time.
void lay_off(membership_ptr self, member& m, const std::string& reason) {
  const auto now = self->clock().now();
  auto& rest = rest_of(self->state, m);
  m.trusted = false;
  m.fenced_at = now;
  m.proven_since.reset();
  m.info.state = "fenced";
  rest.fenced(now);
  tell(event_kind::worker_fenced, {{"seat", m.info.seat},
                                   {"incarnation", m.info.incarnation},
                                   {"worker", m.info.name},
                                   {"rest_ms", rest.rest().count()},
                                   {"reason", reason}});
}

void fence(membership_ptr self, const seat& where, const std::string& reason,
           const reach_verdicts& verdicts) {
  lay_off(self, self->state.members.at(where), reason);
  verdicts.fence(where, reason);
}

/// Whether it may have a part now: it was heard for as long as it must be, or no epoch is open and
/// none is possible without it.
bool may_be_trusted(membership_state& st, const member& m, caf::actor_clock::time_point now) {
  if (!m.fenced_at || now - *m.proven_since >= rest_of(st, m).rest()) return true;
  if (st.open) return false;
  return !scheduler::plan_epoch(st.config.shape, ready_seats(st), st.held, !st.was_open);
}

/// Looks at one that has no part for want of trust.
void look_at(membership_ptr self, const seat& where, const std::set<seat>& unheard_of,
             const std::set<seat>& torn, const reach_verdicts& verdicts) {
  auto& st = self->state;
  auto& m = st.members.at(where);
  const auto now = self->clock().now();
  if (torn.contains(where) || !st.reach.proven(where, unheard_of, now)) {
    m.proven_since.reset();
    if (m.fenced_at && !m.info.here && now - *m.fenced_at >= timeout_with(st, m))
      verdicts.send_away(where,
                         "nothing has shown for too long that all reach it on the data plane");
    return;
  }
  if (!m.proven_since) m.proven_since = now;
  if (!may_be_trusted(st, m, now)) return;
  if (m.fenced_at)
    tell(event_kind::worker_reachable,
         {{"seat", m.info.seat}, {"incarnation", m.info.incarnation}, {"worker", m.info.name}});
  m.trusted = true;
  m.fenced_at.reset();
  m.info.state = "live";
  verdicts.trust(where);
}

/// What the book says now, and what comes of it.
void judge(membership_ptr self, const reach_verdicts& verdicts) {
  auto& st = self->state;
  const auto pairs = st.reach.failed(self->clock().now());
  std::set<seat> unheard_of;
  if (!pairs.empty())
    for (const auto& where : scheduler::at_fault(parties_of(st), pairs)) {
      unheard_of.insert(where);
      if (auto& m = st.members.at(where); m.trusted || !m.fenced_at)
        fence(self, where, unheard("no data plane connection with: ", pairs, where), verdicts);
    }
  const auto tears = st.reach.torn_again(self->clock().now());
  const auto torn = torn_out(st, parties_of(st), tears);
  for (const auto& where : torn)
    if (st.members.at(where).trusted)
      fence(self, where,
            unheard("frames that fail their checks, again and again, with: ", tears, where),
            verdicts);
  std::vector<seat> waiting;
  for (const auto& [where, m] : st.members) {
    if (m.fenced_at) unheard_of.insert(where);
    if (m.handle && !m.trusted) waiting.push_back(where);
  }
  for (const auto& where : waiting)
    if (st.members.contains(where)) look_at(self, where, unheard_of, torn, verdicts);
}

bool somebody_waits(const membership_state& st) {
  return std::ranges::any_of(st.members,
                             [](const auto& x) { return x.second.handle && !x.second.trusted; });
}

void on_report(membership_ptr self, const seat& where, uint32_t incarnation, const watch_report& x,
               const reach_verdicts& verdicts) {
  auto& st = self->state;
  st.watching.erase(where);
  const auto found = st.members.find(where);
  if (found == st.members.end() || found->second.info.incarnation != incarnation) return;
  found->second.watch_version = x.version;
  st.reach.sits(where, x.able);
  st.reach.told(where, views_of(st, x), self->clock().now());
  for (const auto& torn : x.torn)
    for (const auto& [peer, m] : st.members)
      if (m.info.seat == torn.seat) st.reach.torn(where, peer, torn.links, self->clock().now());
  if (somebody_waits(st)) judge(self, verdicts);
}

void ask(membership_ptr self, const member& m, const reach_verdicts& verdicts) {
  auto& st = self->state;
  if (!st.watching.insert(m.where).second) return;
  watch_order order{st.watch_version, m.watch_version != st.watch_version, {}};
  if (order.whole) order.peers = peers_to_watch(st, m.where);
  self->request(caf::actor_cast<watching_worker_actor>(m.handle), worker_answer_limit,
                std::move(order))
      .then([=, where = m.where, incarnation = m.info.incarnation](
                const watch_report& x) { on_report(self, where, incarnation, x, verdicts); },
            [self, where = m.where](const caf::error&) { self->state.watching.erase(where); });
}

void ask_all(membership_ptr self, const reach_verdicts& verdicts) {
  for (const auto& [where, m] : self->state.members)
    if (m.handle) ask(self, m, verdicts);
}

/// Some of them has joined a moment ago and is not trusted yet.
bool somebody_is_new(membership_ptr self) {
  const auto now = self->clock().now();
  return std::ranges::any_of(self->state.members, [&](const auto& x) {
    const auto& m = x.second;
    return m.handle && !m.trusted && !m.fenced_at && now - m.live_since < new_for;
  });
}

void tick_in(membership_ptr self, milliseconds when) {
  self->delayed_send(self, caf::timespan{when}, reach_atom_v, ++self->state.reach_tick);
}

} // namespace

void begin_ticking(membership_ptr self) {
  if (self->state.config.shape.rotates) self->state.reach.replicas_meet();
  tick_in(self, poll_interval);
}

void begin_watching(membership_ptr self, const member& m, const reach_verdicts& verdicts) {
  auto& st = self->state;
  st.reach.sits(m.where, true);
  if (is_watched(st, m.where) || st.watch_version == 0) ++st.watch_version;
  ask_all(self, verdicts);
  tick_in(self, new_every);
}

void rest_after_return(membership_ptr self, member& m) {
  lay_off(self, m, "it is back after it was declared dead for its silence");
}

void stop_watching(membership_ptr self, const member& gone) {
  auto& st = self->state;
  st.reach.left(gone.where);
  st.watching.erase(gone.where);
  if (is_watched(st, gone.where)) ++st.watch_version;
}

void watch_members(membership_ptr self, uint64_t tick, const reach_verdicts& verdicts) {
  auto& st = self->state;
  if (tick != st.reach_tick) return;
  judge(self, verdicts);
  ask_all(self, verdicts);
  tick_in(self, somebody_is_new(self) ? new_every
                : st.reach.doubtful() ? doubtful_every
                                      : poll_interval);
}

} // namespace lamella::actors
