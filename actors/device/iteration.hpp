/// Launching iterations: shared by batches and prefill workers.
#pragma once

#include "actors/protocol/actors.hpp"
#include "actors/protocol/iterations.hpp"
#include "actors/shared/first_iterations.hpp"
#include "actors/shared/pulse.hpp"
#include "actors/shared/work_meter.hpp"
#include "net/metrics/metrics.hpp"
#include "scheduler/rotation.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace lamella::actors {

/// The actors that run the iterations of a stream.
struct iteration_target {
  stream_id stream{};
  uint64_t epoch = 1;
  std::vector<model_replica_actor> replicas; ///< by turn; several run the slices in turn (L-M17)
  uint32_t layers = 0;                       ///< of the model
  std::vector<attention_shard_actor> shards;
  kv_allocator_actor allocator;
  std::shared_ptr<net::metrics> metrics; ///< may be null
  std::shared_ptr<pulse> beats;          ///< may be null
  /// Shared by streams of this kind.
  std::shared_ptr<first_iterations> firsts = std::make_shared<first_iterations>();
  caf::timespan timeout{std::chrono::seconds{90}}; ///< for the reply of an iteration
};

/// A launch of a batch without prompts has one row per span; one with more rows than spans has
/// prompts.
inline launch_kind kind_of(const iteration_launch& x) {
  const bool prompts = static_cast<uint32_t>(x.stream) >= scheduler::prefill_streams
                       || x.tokens.size() != x.spans.size();
  return prompts ? launch_kind::prompts : launch_kind::tokens;
}

/// Attempts of an iteration before its launcher terminates and the pipeline is rebuilt. No request
/// fails for that: all resume in the next pipeline.
constexpr uint32_t attempts_max = 3;

/// Extra time for the reply of a device beyond the timeout of its work.
constexpr caf::timespan answer_timeout = std::chrono::seconds{5};

/// A cut link usually means a lost worker, for which membership rebuilds the pipeline; an iteration
/// is not retried on dead links. If no worker was reported lost after this time, only the link
/// failed, and the launcher terminates so that the pipeline is reconnected.
constexpr caf::timespan cut_timeout = std::chrono::milliseconds{300};
constexpr const char* cut_reason = "a link was cut but no worker was lost";

/// The error the launcher must stop with after `failures` failures in a row; none: retry.
/// `silence`: one of them timed out without a reported cause, so the links may be broken.
inline caf::error end_of_attempts(const iteration_failed& x, uint32_t failures, bool silence) {
  if (x.reason == cut_reason) return caf::make_error(ec::link_cut, x.reason);
  if (silence && failures >= attempts_max) return caf::make_error(ec::attempts_silent, x.reason);
  return failures >= attempts_max ? caf::make_error(ec::attempts_spent, x.reason) : caf::error{};
}

/// Answers of the replicas of an iteration.
struct iteration_answers {
  size_t left = 0; ///< replicas that have not answered; 0 after an error too
  sampled tokens;  ///< of the one that samples
};

/// Hands one whole iteration to the devices, all of it at once; the order between replicas and
/// shards is kept by channels. `then` gets the tokens when all replicas have run their slices,
/// `otherwise` the first error.
template <class Self, class Then, class Otherwise>
void launch(Self* self, const iteration_target& target, const iteration_launch& x, Then then,
            Otherwise otherwise) {
  const auto count = target.replicas.size();
  const scheduler::rotation turns{static_cast<uint32_t>(count)};
  const auto last =
      turns.replica_of(0, scheduler::slice_count(x.iteration, target.layers, target.layers));
  std::optional<iteration_launch> plain; // for those that do not sample
  if (count > 1 || !x.masks.empty()) {
    plain = x;
    plain->samples.clear();
    plain->sample_seats.clear();
    plain->edits.clear();
    plain->masks.clear();
  }
  for (const auto& shard : target.shards) self->send(shard, plain ? *plain : x);
  const auto answers = std::make_shared<iteration_answers>();
  answers->left = count;
  for (size_t i = 0; i < count; ++i) {
    self->send(target.replicas[i], i == last ? x : *plain);
    self->request(target.replicas[i], target.timeout, sampled_of{x.stream, x.iteration, x.attempt})
        .then(
            [=](sampled& answer) {
              if (answers->left == 0) return;
              if (i == last) answers->tokens = std::move(answer);
              if (--answers->left == 0) then(answers->tokens);
            },
            [=](caf::error& reason) {
              if (std::exchange(answers->left, 0) > 0) otherwise(reason);
            });
  }
}

/// Makes the launch sample token number `draw` of a sequence from row `row` of its selected rows;
/// `seat` keeps it.
inline void add_sample(iteration_launch& x, const sampling& wanted, uint32_t row, uint32_t draw,
                       const logit_changes& changes, uint32_t seat) {
  sample_record record{row,
                       wanted.seed,
                       wanted.choice,
                       draw,
                       wanted.temperature,
                       wanted.top_k,
                       wanted.top_p,
                       wanted.min_p,
                       wanted.logprobs,
                       static_cast<uint32_t>(x.edits.size()),
                       static_cast<uint32_t>(changes.edits.size())};
  x.edits.insert(x.edits.end(), changes.edits.begin(), changes.edits.end());
  if (changes.mask) { // answers to one grammar are often at the same place
    const auto same = std::find_if(x.masks.begin(), x.masks.end(),
                                   [&](const auto& m) { return m.tokens == changes.mask; });
    record.mask = static_cast<uint32_t>(same - x.masks.begin());
    if (same == x.masks.end()) x.masks.push_back({changes.mask});
  }
  x.samples.push_back(record);
  x.sample_seats.push_back(seat);
}

/// Makes the launch report how likely `given` is in row `row` of its selected rows; `logprobs`: 1 +
/// alternatives.
inline void add_score(iteration_launch& x, uint32_t row, token_id given, uint32_t logprobs,
                      uint32_t seat) {
  sample_record record{};
  record.row = row;
  record.top_p = 1;
  record.logprobs = logprobs;
  record.given = given;
  x.samples.push_back(record);
  x.sample_seats.push_back(seat);
}

} // namespace lamella::actors
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(lamella::actors::iteration_target)
