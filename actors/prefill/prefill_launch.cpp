#include "actors/prefill/prefill_launch.hpp"

#include "actors/protocol/prefills.hpp"
#include "actors/protocol/requests.hpp"

#include <algorithm>

namespace lamella::actors {

namespace {

using job = prefill_worker_state::job;

/// Prompts in one iteration: bounds the spans of a launch.
constexpr uint32_t prompts_per_iteration = 64;

/// Behind the last row of a prompt nothing is given.
uint32_t scores_of(const scheduler::prefill_piece& piece) {
  return piece.scored ? piece.tokens - (piece.last ? 1 : 0) : 0;
}

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

} // namespace

scheduler::prefill_limits limits(prefill_ptr self) {
  const auto& st = self->state;
  scheduler::prefill_limits x{prompts_per_iteration, self->clock().now().time_since_epoch()};
  if (const auto unit = st.pace.unit_ns(); unit > 0) x.work_ns = unit;
  if (const auto most = st.config.iteration_most; most.count() > 0)
    x.work = st.pace.work_within(most);
  x.scored_rows = st.config.scored_rows;
  return x;
}

uint32_t timeout_ms(const prefill_worker_state& st,
                    const std::vector<scheduler::prefill_piece>& pieces) {
  const auto work = scheduler::prefill_work(pieces);
  const auto limit = st.deadline.empty() ? st.config.target.firsts->limit(work, st.failures)
                                         : st.deadline.next(work, st.failures);
  return static_cast<uint32_t>(limit.count());
}

void note_begun(prefill_ptr self, const std::vector<scheduler::prefill_piece>& pieces) {
  using std::chrono::microseconds;
  auto& st = self->state;
  for (const auto& piece : pieces) {
    auto& j = st.jobs.at(piece.sequence);
    if (j.waited_us) continue;
    const auto waited = self->clock().now() - j.asked;
    j.waited_us = static_cast<uint64_t>(std::chrono::duration_cast<microseconds>(waited).count());
    if (st.config.scheduler) self->send(st.config.scheduler, prefill_begun{piece.sequence});
    if (j.what.client) self->send(j.what.client, prefill_begun{piece.sequence});
  }
}

iteration_launch compose(prefill_ptr self, const std::vector<scheduler::prefill_piece>& pieces) {
  auto& st = self->state;
  iteration_launch x;
  x.stream = st.config.target.stream;
  x.epoch = st.config.target.epoch;
  x.iteration = ++st.iteration;
  x.attempt = st.failures; // clears what an iteration that was given up left on the streams
  x.timeout_ms = timeout_ms(st, pieces);
  for (const auto& piece : pieces) {
    auto& j = st.jobs.at(piece.sequence);
    if (!j.seat)
      j.seat =
          st.config.own ? st.seats.join(0, j.slots) : st.seats.join(j.what.member, j.what.runs);
    x.spans.push_back({*j.seat, piece.position, piece.tokens});
    const auto begin = j.what.tokens.begin() + piece.position;
    x.tokens.insert(x.tokens.end(), begin, begin + piece.tokens);
    const auto rows = static_cast<uint32_t>(x.tokens.size());
    if (piece.scored) add_scores(x, j, piece, rows - piece.tokens);
    if (piece.last) add_samples(x, j, rows - 1);
  }
  std::tie(x.changes, x.table_version) = st.seats.take_changes();
  x.fences = st.fences;
  return x;
}

void take_sampled_tokens(prefill_worker_state& st,
                         const std::vector<scheduler::prefill_piece>& pieces, sampled answer) {
  size_t next = 0;
  for (const auto& piece : pieces) {
    auto& j = st.jobs.at(piece.sequence);
    for (uint32_t i = 0; i < scores_of(piece); ++i)
      j.scores.push_back(std::move(answer.tokens.at(next++)));
    if (!piece.last) continue;
    auto& result = j.result.emplace();
    result.waited_us = j.waited_us.value_or(0);
    result.scores = std::move(j.scores);
    for (size_t k = 0; k < j.what.samplings.size(); ++k)
      result.tokens.push_back(std::move(answer.tokens.at(next++)));
  }
}

} // namespace lamella::actors
