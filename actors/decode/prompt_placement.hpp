/// How the GLOBAL SCHEDULER chooses the prefill worker of a prompt (Splitwise IV-A).
#pragma once

#include "actors/decode/global_scheduler_state.hpp"

namespace lamella::actors {

/// The mixed workers: replicas for tokens, then seats of the prefill pool for prompts.
std::vector<scheduler::machine_label> labels_of(const global_scheduler_config& c);

/// A prompt that is about to be computed.
struct prompt_place {
  sequence_id first{};
  uint64_t tokens = 0; ///< to compute
  bool suffix = false; ///< its beginning is in the prefix cache: only shards can compute the rest
  uint32_t batch = 0;  ///< that its sequences will join
  double now_s = 0;    ///< by the clock of the actors
};

/// The prefill worker for it (scheduler/prompt_route.hpp); where launches are mixed, that of its
/// batch for a suffix, or where there are no others. A prefill worker with KV of its own that
/// decodes as well computes prompts in its batch's launches (S-M02). While suspects are apart, the
/// next worker in turn on the sequence's side.
uint32_t prefill_worker_for(global_scheduler_state& st, const prompt_place& prompt);

/// The number of the worker that launches on that stream.
uint32_t worker_of(const global_scheduler_state& st, stream_id stream);

/// The batch for sequences: the one with the fewest, of replicas whose own pool is not that of
/// prompts. Where these are full, one of a machine for prompts, and of these first one that is
/// mixed already (S-M07), so that the others have prompts alone. `load`: sequences by batch.
std::optional<uint32_t> batch_for(global_scheduler_state& st, const std::vector<uint64_t>& load,
                                  uint32_t choices);

/// So many sequences were placed in that batch: a machine for prompts is mixed from now on.
void tokens_come(global_scheduler_state& st, uint32_t batch, uint32_t sequences, double now_s);

/// Mixed replicas that have only work of their own kind return to their pool (S-M08); those that
/// have been mixed for `repurpose_s` change it (S-M09), but the last one that decodes stays.
void sort_machines(global_scheduler_state& st, double now_s);

} // namespace lamella::actors
