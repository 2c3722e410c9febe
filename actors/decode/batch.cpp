#include "actors/decode/batch.hpp"

#include "actors/decode/batch_eviction.hpp"
#include "actors/decode/batch_hand_over.hpp"
#include "actors/decode/batch_masks.hpp"
#include "actors/protocol/exceptions.hpp"
#include "actors/protocol/explain.hpp"
#include "actors/protocol/iterations.hpp"
#include "actors/protocol/kv.hpp"
#include "actors/protocol/requests.hpp"

#include "base/buggify.hpp"
#include "base/failpoint.hpp"
#include "gpu/runners/slice_runner.hpp"
#include "scheduler/slot_pool.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>

namespace lamella::actors {

namespace {

using seat = batch_state::seat;

/// Slots are asked for when so few are left, so that the answer comes before they are needed.
constexpr uint32_t grow_below = 8;

void pump(batch_ptr self);

/// The batch cannot go on with it.
void fail(batch_ptr self, seat& s, std::string reason) {
  s.leaving = true;
  self->send(s.member.client, sequence_failed{s.member.sequence, std::move(reason),
                                              self->state.config.target.epoch});
}

/// The seat's mask has come, or never will.
void on_mask(batch_ptr self, seat& s, const caf::error& why) {
  if (why && !s.leaving)
    fail(self, s, "the token mask of its response format failed: " + explain(self->system(), why));
  pump(self);
}

void seat_request(batch_ptr self, batch_join&& x) {
  auto& st = self->state;
  const auto number = st.table.join(x.member, x.runs);
  seat s;
  s.capacity = scheduler::length_of(x.runs);
  s.written.position = x.position;
  s.member = std::move(x);
  s.answer = model::constrained_answer{s.member.wanted.constraint};
  s.history.prompt(s.member.history_prompt);
  follow(self, s, s.member.history_output, on_mask);
  st.seat_of[s.member.sequence] = number;
  st.seats.emplace(number, std::move(s));
}

/// An aborted iteration may still run on a shard, until the next attempt has cleared the streams.
/// So a leaving seat of it takes part in that attempt, and is freed after it.
bool must_run_again(const batch_state& st, const seat& s) { return s.exposed && st.failures > 0; }

/// Gives up the seats that no launch uses any more; their slots go back.
void unseat(batch_ptr self) {
  auto& st = self->state;
  std::vector<seat> gone;
  for (auto it = st.seats.begin(); it != st.seats.end();) {
    auto& s = it->second;
    if (!s.leaving || s.in_flight > 0 || s.growing || must_run_again(st, s)) {
      ++it;
      continue;
    }
    st.table.leave(it->first);
    st.seat_of.erase(s.member.sequence);
    gone.push_back(std::move(s));
    it = st.seats.erase(it);
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

void on_slots(batch_ptr self, sequence_id sequence, caf::expected<kv_grant> answer) {
  auto& st = self->state;
  auto found = st.seat_of.find(sequence);
  if (found == st.seat_of.end()) return;
  auto& s = st.seats.at(found->second);
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

void grow(batch_ptr self, seat& s) {
  s.growing = true;
  const auto sequence = s.member.sequence;
  self->request(self->state.config.target.allocator, std::chrono::seconds{30},
                kv_reserve{{{sequence,
                             self->state.config.window_slots,
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

/// Can the next iteration be launched before the newest one has answered?
bool can_run_ahead(const batch_state& st) {
  // An attempt clears the streams before it: the one that runs must not be cleared.
  if (!st.joining.empty() || st.failures > 0 || st.pace.bounded()) return false;
  for (const auto& [number, s] : st.seats)
    if (s.leaving || s.member.wanted.needs_history()
        || s.member.generated + s.in_flight >= s.member.max_tokens
        || s.member.position + s.in_flight >= s.capacity)
      return false;
  return true;
}

void add_row(iteration_launch& x, uint32_t number, const seat& s) {
  const auto& m = s.member;
  const auto row = static_cast<uint32_t>(x.tokens.size());
  x.spans.push_back({number, m.position + s.in_flight, 1});
  x.tokens.push_back(s.in_flight > 0 ? gpu::take_sampled : m.last);
  x.selected.push_back(row);
  add_sample(x, m.wanted, row, m.generated + s.in_flight, s.changes, number);
}

/// The seats that run in the next iteration, grouped by attention member.
std::vector<uint32_t> rows_of(batch_ptr self) {
  auto& st = self->state;
  std::vector<uint32_t> rows;
  for (auto& [number, s] : st.seats) {
    if ((s.leaving && !must_run_again(st, s)) || s.awaits_mask != 0) continue;
    const auto next = s.member.position + s.in_flight;
    if (next + grow_below >= s.capacity && !s.growing && !s.leaving) grow(self, s);
    if (next < s.capacity) rows.push_back(number);
  }
  std::stable_sort(rows.begin(), rows.end(), [&](auto a, auto b) {
    return st.seats.at(a).member.member < st.seats.at(b).member.member;
  });
  return rows;
}

/// For the next iteration; what it costs hardly depends on its rows.
std::chrono::milliseconds timeout(const batch_state& st) {
  if (buggify(buggify_point::early_deadline)) return std::chrono::milliseconds{1};
  return st.deadline.empty() ? st.config.target.firsts->limit(1, st.failures)
                             : st.deadline.next(st.failures);
}

void on_sampled(batch_ptr self, uint64_t iteration, sampled answer);
void on_failure(batch_ptr self, const iteration_failed& x);

void launch_iteration(batch_ptr self) {
  auto& st = self->state;
  auto rows = rows_of(self);
  if (rows.empty()) return;
  iteration_launch x;
  x.stream = st.config.target.stream;
  x.epoch = st.config.target.epoch;
  x.iteration = ++st.iteration;
  x.attempt = st.failures;
  x.timeout_ms = static_cast<uint32_t>(timeout(st).count());
  for (auto number : rows) {
    auto& s = st.seats.at(number);
    add_row(x, number, s);
    ++s.in_flight;
  }
  std::tie(x.changes, x.table_version) = st.table.take_changes();
  st.flights.push_back({x.iteration, std::move(rows), self->clock().now()});
  const auto iteration = x.iteration;
  const auto attempt = x.attempt;
  launch(
      &*self, st.config.target, x,
      [=](sampled& answer) { on_sampled(self, iteration, std::move(answer)); },
      [=](caf::error& reason) {
        if (peer_lost(reason))
          self->quit(peer_gone());
        else if (reason == ec::link_cut)
          self->delayed_send(self, cut_timeout,
                             iteration_failed{self->state.config.target.stream, iteration, attempt,
                                              true, cut_reason});
        else
          on_failure(self, {self->state.config.target.stream, iteration, attempt,
                            is_silence(reason), explain(self->system(), reason)});
      });
}

/// One token of one sequence is final.
void commit(batch_ptr self, seat& s, sampled_token&& drawn) {
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

void on_sampled(batch_ptr self, uint64_t iteration, sampled answer) {
  auto& st = self->state;
  if (st.flights.empty() || st.flights.front().iteration != iteration) { // given up before
    if (st.config.target.metrics) st.config.target.metrics->fenced(net::fence::attempt);
    return;
  }
  if (failpoint_hit(failpoint::batch_commit)) {
    on_failure(self, {st.config.target.stream, iteration, st.failures, false, "failpoint"});
    return;
  }
  auto flight = std::move(st.flights.front());
  st.flights.pop_front();
  st.failures = 0;
  st.silence = false;
  const auto now = self->clock().now();
  if (st.deadline.empty()) st.config.target.firsts->add(1, now - flight.launched);
  st.deadline.add(now - flight.launched);
  st.pace.ran(now.time_since_epoch(), now - flight.launched);
  if (st.config.target.beats) st.config.target.beats->beat(now);
  if (st.config.target.metrics) {
    st.config.target.metrics->iteration(flight.rows.size(), flight.rows.size());
    st.config.target.metrics->set_mailbox_depth("batch", self->mailbox().size());
  }
  for (size_t i = 0; i < flight.rows.size(); ++i)
    commit(self, st.seats.at(flight.rows[i]), std::move(answer.tokens.at(i)));
  pump(self);
}

/// Nothing of a failed iteration counts: everything in flight is dropped and run again from the
/// committed tokens; it writes the same slots with the same values.
void on_failure(batch_ptr self, const iteration_failed& x) {
  auto& st = self->state;
  const bool known = std::any_of(st.flights.begin(), st.flights.end(),
                                 [&](const auto& f) { return f.iteration == x.iteration; });
  if (!known) return;
  st.silence |= x.silent;
  const auto end = end_of_attempts(x, st.failures + 1, st.silence);
  if (end) { // its sequences go on in the next pipeline, from the tokens their requests have
    spdlog::error("batch aborted batch={} iteration={} failures={} reason=\"{}\"",
                  static_cast<uint32_t>(st.config.target.stream), x.iteration, st.failures + 1,
                  x.reason);
    self->quit(end);
    return;
  }
  st.flights.clear();
  for (auto& [number, s] : st.seats) s.exposed |= std::exchange(s.in_flight, 0) > 0;
  spdlog::warn("decode iteration failed batch={} iteration={} failures={} reason=\"{}\"",
               static_cast<uint32_t>(st.config.target.stream), x.iteration, st.failures + 1,
               x.reason);
  // Until an iteration succeeds each attempt must clear the streams of what failed ones left there.
  ++st.failures;
  pump(self);
}

/// Whether the next iteration has to wait for its time; then it is launched by a wake.
bool rests(batch_ptr self) {
  auto& st = self->state;
  const auto now = self->clock().now().time_since_epoch();
  const auto rest = std::max(st.pace.rest(now), st.gathering.rest(now));
  if (rest.count() <= 0) return false;
  if (!std::exchange(st.resting, true)) self->delayed_send(self, caf::timespan{rest}, wake_atom_v);
  return true;
}

void tell_in_flight(const batch_state& st) {
  if (const auto& metrics = st.config.target.metrics)
    metrics->set_in_flight(static_cast<uint32_t>(st.config.target.stream), !st.flights.empty());
}

/// Does whatever can be done now.
void pump(batch_ptr self) {
  auto& st = self->state;
  unseat(self);
  // An attempt that failed is run again first: what is left of it on a device must not write later.
  if (st.handing && st.failures == 0) {
    if (st.flights.empty()) finish_hand_over(self);
    return tell_in_flight(st);
  }
  if (st.flights.empty()) {
    while (!st.joining.empty()) {
      seat_request(self, std::move(st.joining.front()));
      st.joining.pop_front();
    }
    if (!rests(self)) launch_iteration(self);
  }
  if (st.flights.size() == 1 && can_run_ahead(st)) launch_iteration(self);
  tell_in_flight(st);
}

void on_leave(batch_ptr self, const batch_leave& x) {
  auto& st = self->state;
  const auto sequence = x.sequence;
  if (auto found = st.seat_of.find(sequence); found != st.seat_of.end()) {
    auto& s = st.seats.at(found->second);
    if (s.leaving && x.tell) return; // it ends anyway
    s.leaving = true;
    s.evicted = false;
    s.steps_back = x.tell;
  } else if (auto waiting = std::find_if(st.joining.begin(), st.joining.end(),
                                         [&](const auto& j) { return j.sequence == sequence; });
             waiting != st.joining.end()) {
    seat_request(self, std::move(*waiting)); // so that it leaves in the one way there is
    st.joining.erase(waiting);
    auto& s = st.seats.at(st.seat_of.at(sequence));
    s.leaving = true;
    s.steps_back = x.tell;
  } else if (!x.tell) {
    // It has stepped back, and its request ends before it hears of that.
    self->send(st.config.target.allocator, kv_release{{sequence}, st.config.target.epoch});
    self->send(st.config.scheduler, retire{sequence});
  }
  pump(self);
}

} // namespace

batch_actor::behavior_type batch(batch_actor::stateful_pointer<batch_state> self,
                                 batch_config config) {
  end_on_exceptions(self);
  self->state.config = std::move(config);
  self->state.pace = scheduler::decode_pace{self->state.config.rebuild_percent};
  self->state.gathering = scheduler::join_gathering{self->state.config.gathers};
  tell_in_flight(self->state); // the one before it may have ended in an iteration
  return {
      [self](const batch_join& x) {
        self->state.joining.push_back(x);
        self->state.gathering.joined(self->clock().now().time_since_epoch());
        pump(self);
      },
      [self](const batch_leave& x) { on_leave(self, x); },
      [self](const iteration_failed& x) { on_failure(self, x); },
      [self](const hand_over& x) { return on_hand_over(self, x, pump); },
      [self](const kv_rebuilding& x) {
        self->state.pace.rebuilds(x.stream, x.some);
        pump(self);
      },
      [self](wake_atom) {
        self->state.resting = false;
        pump(self);
      },
      [self](status_atom) -> caf::result<uint32_t> {
        return static_cast<uint32_t>(self->state.seats.size() + self->state.joining.size());
      },
  };
}

} // namespace lamella::actors
