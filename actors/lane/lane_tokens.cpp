#include "actors/lane/lane_tokens.hpp"

#include "actors/lane/lane_pump.hpp"
#include "actors/lane/token_masks.hpp"
#include "actors/protocol/admission.hpp"
#include "actors/protocol/batches.hpp"
#include "actors/protocol/error.hpp"
#include "actors/protocol/kv.hpp"
#include "actors/protocol/tokens.hpp"
#include "actors/shared/explain.hpp"

#include "gpu/runners/slice_runner.hpp"

#include <spdlog/spdlog.h>

namespace lamella::actors {

namespace {

/// The batch cannot go on with the sequence of that seat.
void fail(lane_ptr self, uint32_t seat, std::string reason, bool refused = false) {
  auto& st = self->state;
  st.tokens.batch.fail(seat);
  const auto sequence = st.tokens.batch.at(seat).of.sequence;
  self->send(st.tokens.decoders.at(sequence).asked.client,
             sequence_failed{sequence, std::move(reason), st.config.target.epoch, refused});
}

/// The mask of that seat has come, or never will. One that is refused has its request refused, as
/// that of its first token would have.
void on_mask(lane_ptr self, uint32_t seat, const caf::error& why) {
  if (why && !self->state.tokens.batch.at(seat).leaving) {
    const auto reason = explain(self->system(), why);
    if (why == ec::mask_refused)
      fail(self, seat, reason, true);
    else
      fail(self, seat, "the token mask of its response format failed: " + reason);
  }
  pump(self);
}

void note_preempted(const lane_state& st, uint32_t seat) {
  if (st.config.target.metrics) st.config.target.metrics->preempted();
  const auto& of = st.tokens.batch.at(seat).of;
  spdlog::info("preempted sequence={} position={}", static_cast<uint64_t>(of.sequence),
               of.position);
}

void on_slots(lane_ptr self, sequence_id sequence, const caf::expected<kv_grant>& answer) {
  auto& st = self->state;
  if (answer)
    st.tokens.batch.granted(sequence, answer->holdings.front().runs);
  else if (const auto evicted = st.tokens.batch.refused(sequence))
    note_preempted(st, *evicted);
  pump(self);
}

void ask_slots(lane_ptr self, uint32_t seat) {
  const auto& st = self->state;
  const auto& config = st.config;
  const auto& of = st.tokens.batch.at(seat).of;
  const auto window = config.tokens->batch.growth.window;
  self->request(config.target.allocator, std::chrono::seconds{30},
                kv_reserve{{{of.sequence, window, {}, 0, reserve_mode::extend, of.position}},
                           0,
                           false,
                           config.target.epoch})
      .then([=, sequence =
                    of.sequence](kv_grant& grant) { on_slots(self, sequence, std::move(grant)); },
            [=, sequence = of.sequence](caf::error& reason) {
              if (peer_lost(reason))
                self->quit(peer_gone());
              else
                on_slots(self, sequence, std::move(reason));
            });
}

scheduler::decode_join row_of(const batch_join& x) {
  scheduler::decode_join row{x.sequence, x.member,    x.runs,       x.position,
                             x.last,     x.generated, x.max_tokens, x.wanted.needs_history()};
  if (!x.ignore_end) row.ends = x.wanted.end_tokens;
  return row;
}

} // namespace

void seat_joined(lane_ptr self) {
  auto& part = self->state.tokens;
  for (const auto seat : part.batch.seat_joined()) {
    auto& d = part.decoders.at(part.batch.at(seat).of.sequence);
    d.answer = model::constrained_answer{d.asked.wanted.constraint};
    d.history.prompt(d.asked.history_prompt);
    follow(self, seat, d.asked.history_output, on_mask);
  }
}

void unseat(lane_ptr self) {
  auto& st = self->state;
  auto gone = st.tokens.batch.depart();
  kv_release back;
  back.epoch = st.config.target.epoch;
  for (auto& x : gone) {
    if (x.yields) continue;
    back.holders.push_back(x.sequence);
    back.written.push_back({x.written_from, std::move(x.written)});
  }
  // Before anybody hears of it: who was preempted asks for slots again at once, and a release that
  // comes behind its question would take away what it has just been given.
  if (!back.holders.empty()) self->send(st.config.target.allocator, back);
  for (const auto& x : gone) {
    self->send(st.config.scheduler, retire{x.sequence, x.yields});
    const auto decoder = st.tokens.decoders.extract(x.sequence);
    if (x.evicted || x.yields)
      self->send(decoder.mapped().asked.client, preempted{x.sequence, x.yields, back.epoch});
  }
}

token_step next_tokens(lane_ptr self, bool prompts_first) {
  const auto& batch = self->state.tokens.batch;
  auto next = self->state.tokens.batch.next(prompts_first);
  for (const auto seat : next.growing) ask_slots(self, seat);
  token_step result;
  for (const auto seat : next.rows) result.rows.push_back({batch.at(seat).of.member, seat});
  result.standing = std::move(next.standing);
  return result;
}

void add_row(iteration_launch& x, const token_part& part, uint32_t seat) {
  const auto& row = part.batch.at(seat);
  const auto& d = part.decoders.at(row.of.sequence);
  const auto selected = static_cast<uint32_t>(x.selected.size());
  x.selected.push_back(static_cast<uint32_t>(x.tokens.size()));
  x.spans.push_back({seat, row.next(), 1});
  x.tokens.push_back(row.in_flight > 0 ? gpu::take_sampled : row.of.last);
  add_sample(x, d.asked.wanted, selected, row.of.generated + row.in_flight, d.changes, seat);
}

void commit(lane_ptr self, uint32_t seat, sampled_token&& drawn) {
  auto& st = self->state;
  const auto last = drawn.token;
  const auto made = st.tokens.batch.commit(seat, last, drawn.finite);
  if (!made.counts) return;
  const auto& d = st.tokens.decoders.at(st.tokens.batch.at(seat).of.sequence);
  const auto sequence = d.asked.sequence;
  if (!drawn.finite) {
    self->send(st.config.target.allocator, kv_doubt{sequence, st.config.target.epoch});
    fail(self, seat, "the logits are not finite");
    return;
  }
  self->send(d.asked.client,
             token{sequence, made.index, std::move(drawn), made.reason, st.config.target.epoch});
  if (made.reason == finish::none && d.asked.wanted.needs_history())
    follow(self, seat, {&last, 1}, on_mask);
}

bool rests(lane_ptr self) {
  auto& part = self->state.tokens;
  const std::chrono::nanoseconds now = self->clock().now().time_since_epoch();
  const auto rest = part.batch.rest(now);
  if (rest.count() <= 0) return false;
  if (part.wakes_at.count() == 0 || now + rest < part.wakes_at) {
    part.wakes_at = now + rest;
    self->delayed_send(self, caf::timespan{rest}, wake_atom_v);
  }
  return true;
}

void on_join(lane_ptr self, const batch_join& x) {
  auto& part = self->state.tokens;
  part.batch.join(row_of(x), self->clock().now().time_since_epoch());
  auto& asked = (part.decoders[x.sequence] = {}).asked;
  asked = x;
  asked.runs.clear();
  pump(self);
}

void on_leave(lane_ptr self, const batch_leave& x) {
  using answer = scheduler::decode_batch::leave_answer;
  auto& st = self->state;
  const auto left = st.tokens.batch.leave(x.sequence, x.tell);
  if (left == answer::ends_anyway) return;
  if (left == answer::unknown && !x.tell) {
    // It has stepped back, and its request ends before it hears of that.
    self->send(st.config.target.allocator, kv_release{{x.sequence}, st.config.target.epoch});
    self->send(st.config.scheduler, retire{x.sequence});
  }
  pump(self);
}

} // namespace lamella::actors
