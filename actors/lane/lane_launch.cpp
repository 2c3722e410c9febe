#include "actors/lane/lane_launch.hpp"

#include "actors/lane/lane_tokens.hpp"

#include "actors/protocol/admission.hpp"
#include "base/buggify.hpp"
#include "scheduler/limits.hpp"

#include <algorithm>

namespace lamella::actors {

namespace {

using job = prompt_part::job;
using scheduler::launch_span;
using milliseconds = std::chrono::milliseconds;

/// Each row of the piece, from `first_row` of the launch on, tells how likely the token behind it
/// is.
void add_scores(iteration_launch& x, const job& j, const scheduler::prefill_piece& piece,
                uint32_t first_row) {
  for (uint32_t i = 0; i < scores_of(piece); ++i) {
    const auto selected = static_cast<uint32_t>(x.selected.size());
    x.selected.push_back(first_row + i);
    add_score(x, selected, j.what.tokens[piece.position + i + 1], j.what.scored, *j.seat);
  }
}

/// The last row of a prompt is drawn from once per choice.
void add_samples(iteration_launch& x, const job& j, uint32_t row) {
  const auto selected = static_cast<uint32_t>(x.selected.size());
  x.selected.push_back(row);
  for (size_t k = 0; k < j.what.samplings.size(); ++k)
    add_sample(x, j.what.samplings[k], selected, j.what.draws[k], j.what.changes[k], *j.seat);
}

/// Bounds of the prompts beside these rows. Before an iteration with prompts was measured, chunks
/// are bounded by their tokens alone.
scheduler::prefill_limits bounds_of(lane_ptr self, bool tokens) {
  const auto& st = self->state;
  const auto& composer = st.prompts.composer;
  scheduler::prefill_limits x{scheduler::limits::prompts_per_iteration,
                              self->clock().now().time_since_epoch()};
  if (const auto unit = composer.unit_ns(); unit > 0) x.work_ns = unit;
  x.work = composer.work_most(tokens);
  x.scored_rows = st.config.prompts->scored_rows;
  x.positions = st.config.prompts->positions;
  return x;
}

/// Whether more prompts wait than the next launch takes beside its tokens.
bool prompts_first(const lane_state& st) {
  return st.config.prompts && !st.handing && st.line.failures() == 0
         && st.prompts.composer.prompts_first(
             st.prompts.plan->waiting_work(st.config.prompts->positions));
}

void note_standing(lane_ptr self, const std::vector<uint32_t>& seats) {
  auto& st = self->state;
  st.tokens.batch.stood_back(seats);
  if (!seats.empty() && st.config.target.metrics)
    st.config.target.metrics->stood_back(seats.size());
}

/// Gives a prompt slots of our own, all at once.
bool take_slots(lane_state& st, sequence_id first, uint32_t tokens) {
  auto taken = st.prompts.slots->take(tokens);
  if (taken) st.prompts.jobs.at(first).slots = std::move(*taken);
  return taken.has_value();
}

/// Prompts that may still begin: each that has begun has a seat.
size_t room_for_prompts(const lane_state& st) {
  const auto begun = std::ranges::count_if(st.prompts.jobs,
                                           [](const auto& x) { return x.second.seat.has_value(); });
  return scheduler::limits::prompts_begun
         - std::min<size_t>(begun, scheduler::limits::prompts_begun);
}

/// While it hands over, prompts on its own KV go on until stop_own_prompts(); any other one stops
/// after the chunk that runs.
std::vector<scheduler::prefill_piece> next_pieces(lane_ptr self, bool tokens) {
  auto& st = self->state;
  if (!st.config.prompts) return {};
  if (st.line.failures() > 0) return std::exchange(st.prompts.again, {});
  const bool own = st.config.prompts->own.has_value();
  if ((st.handing && !own) || st.prompts.plan->empty()) return {};
  auto room = room_for_prompts(st);
  return st.prompts.plan->next(bounds_of(self, tokens), [&](sequence_id first, uint32_t length) {
    const bool begins = room > 0 && !st.handing && (!own || take_slots(st, first, length));
    if (begins) --room;
    return begins;
  });
}

/// A batch's iteration costs about the same whatever its rows are, a prompt's what its work is.
milliseconds timeout(const lane_state& st, bool tokens, uint64_t work) {
  if (buggify(buggify_point::early_deadline)) return milliseconds{1};
  const auto& firsts = *st.config.target.firsts;
  const auto failures = st.line.failures();
  milliseconds limit{0};
  if (tokens) {
    const auto& known = st.tokens.timeout;
    limit += known.empty()     ? firsts.next(1, failures)
             : known.learned() ? known.next(1, failures)
                               : known.next(1, failures, firsts.learned());
  }
  if (work > 0) {
    const auto& known = st.prompts.timeout;
    limit += known.empty() ? firsts.next(work, failures) : known.next(work, failures);
  }
  return std::min(limit, scheduler::timeout_of_iterations.most);
}

/// Of its prompts.
uint64_t work_of(const lane_state& st, const lane_state::flight& x) {
  return st.config.prompts ? scheduler::prefill_work(x.pieces(), st.config.prompts->positions) : 0;
}

void add_piece(iteration_launch& x, lane_state& st, const scheduler::prefill_piece& piece) {
  auto& j = st.prompts.jobs.at(piece.sequence);
  if (!j.seat)
    j.seat = st.config.prompts->own ? st.tokens.batch.table().join(0, j.slots)
                                    : st.tokens.batch.table().join(j.what.member, j.what.runs);
  x.spans.push_back({*j.seat, piece.position, piece.tokens});
  const auto begin = j.what.tokens.begin() + piece.position;
  x.tokens.insert(x.tokens.end(), begin, begin + piece.tokens);
  const auto rows = static_cast<uint32_t>(x.tokens.size());
  if (piece.scored) add_scores(x, j, piece, rows - piece.tokens);
  if (piece.last) add_samples(x, j, rows - 1);
}

} // namespace

uint32_t scores_of(const scheduler::prefill_piece& piece) {
  return piece.scored ? piece.tokens - (piece.last ? 1 : 0) : 0;
}

std::vector<launch_span> next_spans(lane_ptr self) {
  auto& st = self->state;
  const bool own = st.config.prompts && st.config.prompts->own;
  auto tokens = st.config.tokens ? next_tokens(self, prompts_first(st)) : token_step{};
  auto pieces = next_pieces(self, !tokens.rows.empty());
  if (pieces.empty() && !tokens.standing.empty()) tokens = next_tokens(self, false);
  note_standing(self, tokens.standing);
  auto spans = std::move(tokens.rows);
  for (auto& piece : pieces) {
    const auto member = own ? 0 : st.prompts.jobs.at(piece.sequence).what.member;
    spans.push_back({member, piece});
  }
  std::stable_sort(spans.begin(), spans.end(),
                   [](const auto& a, const auto& b) { return a.member < b.member; });
  return spans;
}

void note_begun(lane_ptr self, const std::vector<scheduler::prefill_piece>& pieces) {
  using std::chrono::microseconds;
  auto& st = self->state;
  for (const auto& piece : pieces) {
    auto& j = st.prompts.jobs.at(piece.sequence);
    if (j.waited_us) continue;
    const auto waited = self->clock().now() - j.asked;
    j.waited_us = static_cast<uint64_t>(std::chrono::duration_cast<microseconds>(waited).count());
    if (st.config.scheduler) self->send(st.config.scheduler, prefill_begun{piece.sequence});
    if (j.what.client) self->send(j.what.client, prefill_begun{piece.sequence});
  }
}

iteration_launch compose(lane_ptr self, const lane_state::flight& flight) {
  auto& st = self->state;
  iteration_launch x;
  x.stream = st.config.target.stream;
  x.epoch = st.config.target.epoch;
  x.iteration = flight.iteration;
  x.attempt = flight.attempt; // clears what an iteration that was given up left on the streams
  const auto work = work_of(st, flight);
  x.timeout_ms = static_cast<uint32_t>(timeout(st, flight.has_tokens(), work).count());
  for (const auto& span : flight.spans) {
    if (const auto* piece = std::get_if<scheduler::prefill_piece>(&span.what)) {
      add_piece(x, st, *piece);
      continue;
    }
    const auto seat = std::get<uint32_t>(span.what);
    add_row(x, st.tokens, seat);
    st.tokens.batch.launched(seat);
  }
  std::tie(x.changes, x.table_version) = st.tokens.batch.table().take_changes();
  x.fences = st.prompts.fences;
  return x;
}

void learn(lane_state& st, const lane_state::flight& x, std::chrono::nanoseconds took) {
  const auto& target = st.config.target;
  const auto work = work_of(st, x);
  if (work == 0) {
    if (st.tokens.timeout.empty()) target.firsts->add(1, took);
    st.tokens.timeout.add(1, took);
    if (const auto timeout = st.tokens.timeout.learned())
      target.firsts->note_learned(static_cast<uint32_t>(target.stream), *timeout);
  } else {
    if (st.prompts.timeout.empty()) target.firsts->add(work, took);
    st.prompts.timeout.add(work, took);
  }
  st.prompts.composer.ran(x.has_tokens(), work, took);
}

} // namespace lamella::actors
