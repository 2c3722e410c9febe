#include "actors/lane/lane_tokens.hpp"

#include "actors/lane/lane_pump.hpp"
#include "actors/lane/token_masks.hpp"
#include "actors/protocol/explain.hpp"

#include "gpu/runners/slice_runner.hpp"
#include "scheduler/slot_pool.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>

namespace lamella::actors {

namespace {

using seat = token_part::seat;

/// Slots are asked for when so few are left, so that the answer comes before they are needed.
constexpr uint32_t grow_below = 8;

/// The batch cannot go on with it.
void fail(lane_ptr self, seat& s, std::string reason) {
  s.leaving = true;
  self->send(s.member.client, sequence_failed{s.member.sequence, std::move(reason),
                                              self->state.config.target.epoch});
}

/// The seat's mask has come, or never will.
void on_mask(lane_ptr self, seat& s, const caf::error& why) {
  if (why && !s.leaving)
    fail(self, s, "the token mask of its response format failed: " + explain(self->system(), why));
  pump(self);
}

void seat_request(lane_ptr self, batch_join&& x) {
  auto& st = self->state;
  const auto number = st.table.join(x.member, x.runs);
  seat s;
  s.capacity = scheduler::length_of(x.runs);
  s.written.position = x.position;
  s.member = std::move(x);
  s.answer = model::constrained_answer{s.member.wanted.constraint};
  s.history.prompt(s.member.history_prompt);
  follow(self, s, s.member.history_output, on_mask);
  st.tokens.seat_of[s.member.sequence] = number;
  st.tokens.seats.emplace(number, std::move(s));
}

/// An aborted iteration may still run on a shard, until the next attempt has cleared the streams.
/// So a leaving seat of it takes part in that attempt, and is freed after it.
bool must_run_again(const lane_state& st, const seat& s) { return s.exposed && st.failures > 0; }

/// The sequence that came last of those with KV in that slot table runs again later, with the same
/// tokens (its request keeps them). One at a time of each table.
void evict_youngest(lane_ptr self, uint32_t table) {
  auto& st = self->state;
  seat* youngest = nullptr;
  for (auto& [number, s] : st.tokens.seats) {
    if (s.member.member != table) continue;
    if (s.evicted) return; // its slots are on their way back
    if (!s.leaving && (youngest == nullptr || s.member.sequence > youngest->member.sequence))
      youngest = &s;
  }
  if (youngest == nullptr) return;
  youngest->leaving = youngest->evicted = true;
  if (st.config.target.metrics) st.config.target.metrics->preempted();
  spdlog::info("preempted sequence={} position={}",
               static_cast<uint64_t>(youngest->member.sequence), youngest->member.position);
}

void on_slots(lane_ptr self, sequence_id sequence, caf::expected<kv_grant> answer) {
  auto& st = self->state;
  auto found = st.tokens.seat_of.find(sequence);
  if (found == st.tokens.seat_of.end()) return;
  auto& s = st.tokens.seats.at(found->second);
  s.growing = false;
  if (answer) {
    const auto& runs = answer->holdings.front().runs;
    s.capacity += scheduler::length_of(runs);
    st.table.extend(found->second, runs);
  } else if (!s.leaving && s.member.position + s.in_flight >= s.capacity) {
    evict_youngest(self, s.member.member);
  }
  pump(self);
}

void grow(lane_ptr self, seat& s) {
  s.growing = true;
  const auto sequence = s.member.sequence;
  self->request(self->state.config.target.allocator, std::chrono::seconds{30},
                kv_reserve{{{sequence,
                             self->state.config.tokens->window_slots,
                             {},
                             0,
                             reserve_mode::extend,
                             s.member.position}},
                           0,
                           false,
                           self->state.config.target.epoch})
      .then([=](kv_grant& grant) { on_slots(self, sequence, std::move(grant)); },
            [=](caf::error& reason) {
              if (peer_lost(reason))
                self->quit(peer_gone());
              else
                on_slots(self, sequence, std::move(reason));
            });
}

} // namespace

void seat_joined(lane_ptr self) {
  auto& waiting = self->state.tokens.joining;
  while (!waiting.empty()) {
    seat_request(self, std::move(waiting.front()));
    waiting.pop_front();
  }
}

void unseat(lane_ptr self) {
  auto& st = self->state;
  std::vector<seat> gone;
  for (auto it = st.tokens.seats.begin(); it != st.tokens.seats.end();) {
    auto& s = it->second;
    if (!s.leaving || s.in_flight > 0 || s.growing || must_run_again(st, s)) {
      ++it;
      continue;
    }
    st.table.leave(it->first);
    st.tokens.seat_of.erase(s.member.sequence);
    gone.push_back(std::move(s));
    it = st.tokens.seats.erase(it);
  }
  kv_release back;
  back.epoch = st.config.target.epoch;
  for (auto& s : gone) {
    if (s.steps_back) continue;
    back.holders.push_back(s.member.sequence);
    back.written.push_back(std::move(s.written));
  }
  // Before anybody hears of it: who was preempted asks for slots again at once, and a release that
  // comes behind its question would take away what it has just been given.
  if (!back.holders.empty()) self->send(st.config.target.allocator, back);
  for (const auto& s : gone) {
    self->send(st.config.scheduler, retire{s.member.sequence, s.steps_back});
    if (s.evicted || s.steps_back)
      self->send(s.member.client, preempted{s.member.sequence, s.steps_back, back.epoch});
  }
}

std::vector<lane_span> token_rows(lane_ptr self) {
  auto& st = self->state;
  std::vector<lane_span> rows;
  for (auto& [number, s] : st.tokens.seats) {
    if ((s.leaving && !must_run_again(st, s)) || s.awaits_mask != 0) continue;
    const auto next = s.member.position + s.in_flight;
    if (next + grow_below >= s.capacity && !s.growing && !s.leaving) grow(self, s);
    if (next < s.capacity) rows.push_back({s.member.member, number});
  }
  return rows;
}

void add_row(iteration_launch& x, uint32_t number, const seat& s) {
  const auto& m = s.member;
  const auto selected = static_cast<uint32_t>(x.selected.size());
  x.selected.push_back(static_cast<uint32_t>(x.tokens.size()));
  x.spans.push_back({number, m.position + s.in_flight, 1});
  x.tokens.push_back(s.in_flight > 0 ? gpu::take_sampled : m.last);
  add_sample(x, m.wanted, selected, m.generated + s.in_flight, s.changes, number);
}

bool rows_are_known(const lane_state& st) {
  const auto& part = st.tokens;
  if (!part.joining.empty() || part.pace.bounded()) return false;
  for (const auto& [number, s] : part.seats)
    if (s.leaving || s.member.wanted.needs_history()
        || s.member.generated + s.in_flight >= s.member.max_tokens
        || s.member.position + s.in_flight >= s.capacity)
      return false;
  return true;
}

void commit(lane_ptr self, seat& s, sampled_token&& drawn) {
  --s.in_flight;
  s.exposed = false;
  if (s.leaving) return;
  auto& m = s.member;
  if (!drawn.finite) {
    self->send(self->state.config.target.allocator,
               kv_doubt{m.sequence, self->state.config.target.epoch});
    fail(self, s, "the logits are not finite");
    return;
  }
  ++m.position;
  s.written.tokens.push_back(m.last);
  m.last = drawn.token;
  const auto& ends = m.wanted.end_tokens;
  token out{m.sequence, m.generated++, std::move(drawn), finish::none};
  if (!m.ignore_end && std::find(ends.begin(), ends.end(), m.last) != ends.end())
    out.reason = finish::stop;
  else if (m.generated >= m.max_tokens)
    out.reason = finish::length;
  s.leaving = out.reason != finish::none;
  self->send(m.client, std::move(out));
  if (!s.leaving && m.wanted.needs_history()) follow(self, s, {&m.last, 1}, on_mask);
}

bool rests(lane_ptr self) {
  auto& st = self->state;
  const auto now = self->clock().now().time_since_epoch();
  const auto rest = std::max(st.tokens.pace.rest(now), st.tokens.gathering.rest(now));
  if (rest.count() <= 0) return false;
  if (!std::exchange(st.tokens.resting, true))
    self->delayed_send(self, caf::timespan{rest}, wake_atom_v);
  return true;
}

void on_join(lane_ptr self, const batch_join& x) {
  auto& part = self->state.tokens;
  part.joining.push_back(x);
  part.gathering.joined(self->clock().now().time_since_epoch());
  pump(self);
}

void on_leave(lane_ptr self, const batch_leave& x) {
  auto& st = self->state;
  const auto sequence = x.sequence;
  if (auto found = st.tokens.seat_of.find(sequence); found != st.tokens.seat_of.end()) {
    auto& s = st.tokens.seats.at(found->second);
    if (s.leaving && x.tell) return; // it ends anyway
    s.leaving = true;
    s.evicted = false;
    s.steps_back = x.tell;
  } else if (auto waiting = std::find_if(st.tokens.joining.begin(), st.tokens.joining.end(),
                                         [&](const auto& j) { return j.sequence == sequence; });
             waiting != st.tokens.joining.end()) {
    seat_request(self, std::move(*waiting)); // so that it leaves in the one way there is
    st.tokens.joining.erase(waiting);
    auto& s = st.tokens.seats.at(st.tokens.seat_of.at(sequence));
    s.leaving = true;
    s.steps_back = x.tell;
  } else if (!x.tell) {
    // It has stepped back, and its request ends before it hears of that.
    self->send(st.config.target.allocator, kv_release{{sequence}, st.config.target.epoch});
    self->send(st.config.scheduler, retire{sequence});
  }
  pump(self);
}

} // namespace lamella::actors
