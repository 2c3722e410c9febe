/// One struct per message, fields in the order of a sentence. The grammar of a name tells its kind:
/// a question is a verb and its answer a participle, a launch is one-way, a fact is a past event.
///
/// Nothing here is a tensor: activations, K, V and weights never pass through a mailbox.
#pragma once

#include "gpu/device.hpp"
#include "gpu/kernels/operators.hpp"
#include "model/sampling.hpp"
#include "model/token_mask.hpp"
#include "scheduler/admission.hpp"
#include "scheduler/seat_table.hpp"
#include "scheduler/types.hpp"

#include <caf/all.hpp>

#include <memory>
#include <string>
#include <vector>

namespace lamella::scheduler {

template <class Inspector> typename Inspector::result_type inspect(Inspector& f, slot_run& x) {
  return f(caf::meta::type_name("slot_run"), x.first, x.length);
}
template <class Inspector> typename Inspector::result_type inspect(Inspector& f, seat_change& x) {
  return f(caf::meta::type_name("seat_change"), x.what, x.seat, x.member, x.runs);
}
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, admission_limits& x) {
  return f(caf::meta::type_name("admission_limits"), x.queue_requests, x.queue_tokens);
}

} // namespace lamella::scheduler

namespace lamella::model {

template <class Inspector> typename Inspector::result_type inspect(Inspector& f, logit_edit& x) {
  return f(caf::meta::type_name("logit_edit"), x.token, x.scale, x.add);
}
/// These two without constraint and mask: requests, batches and prefill workers are in one process.
template <class Inspector> typename Inspector::result_type inspect(Inspector& f, logit_changes& x) {
  return f(caf::meta::type_name("logit_changes"), x.edits);
}
template <class Inspector> typename Inspector::result_type inspect(Inspector& f, sampling& x) {
  return f(caf::meta::type_name("sampling"), x.seed, x.choice, x.temperature, x.top_k, x.top_p,
           x.min_p, x.presence_penalty, x.frequency_penalty, x.repetition_penalty, x.logprobs,
           x.min_tokens, x.end_tokens, x.bias);
}

} // namespace lamella::model

namespace lamella::gpu {

template <class Inspector> typename Inspector::result_type inspect(Inspector& f, sample_record& x) {
  return f(caf::meta::type_name("sample_record"), x.row, x.seed, x.choice, x.draw, x.temperature,
           x.top_k, x.top_p, x.min_p, x.logprobs, x.first_edit, x.edit_count, x.mask);
}
template <class Inspector> typename Inspector::result_type inspect(Inspector& f, token_logprob& x) {
  return f(caf::meta::type_name("token_logprob"), x.token, x.logprob);
}
template <class Inspector> typename Inspector::result_type inspect(Inspector& f, sampled_token& x) {
  return f(caf::meta::type_name("sampled_token"), x.token, x.logprob, x.finite, x.top);
}

} // namespace lamella::gpu

namespace lamella::actors {

using gpu::logit_edit;
using gpu::sample_record;
using gpu::sampled_token;
using model::logit_changes;
using model::sampling;
using model::token_id;
using scheduler::request_id;
using scheduler::seat_change;
using scheduler::sequence_id;
using scheduler::slot_run;
using scheduler::stream_id;

// --- iterations ----------------------------------------------------------------------------------

/// Rows of one seat in an iteration: consecutive positions, one token each.
struct row_span {
  uint32_t seat = 0;
  uint32_t position = 0;
  uint32_t rows = 1;
};

/// The tokens that a sample record may sample. Records of one launch and of consecutive launches
/// share the mask within a process.
struct shared_mask {
  std::shared_ptr<const model::token_mask> tokens;
};

/// One iteration of one stream, for a replica and each of its shards alike: all layers, one
/// message. Spans are grouped by attention member.
struct iteration_launch {
  stream_id stream{};
  uint64_t epoch = 0;
  uint64_t iteration = 0;
  uint32_t attempt = 0;
  uint32_t patience_ms = 60'000; ///< timeout on a device, from the start of the work there
  uint64_t table_version = 0;
  std::vector<seat_change> changes;
  std::vector<row_span> spans;
  std::vector<token_id> tokens;   ///< one per row; gpu::take_sampled: the seat's last sampled token
  std::vector<uint32_t> selected; ///< rows that are sampled from, ascending
  std::vector<sample_record> samples; ///< record.row counts in `selected`
  std::vector<uint32_t> sample_seats; ///< the seat that keeps each sampled token
  std::vector<logit_edit> edits;
  std::vector<shared_mask> masks; ///< for the replica only
  std::vector<uint64_t> fences;   ///< prefill worker's own KV: by shard, see gpu::attention_launch
};

/// Asks for the tokens of an iteration; answered when the tail slice has sampled them.
struct sampled_of {
  stream_id stream{};
  uint64_t iteration = 0;
  uint32_t attempt = 0;
};

struct sampled {
  stream_id stream{};
  uint64_t iteration = 0;
  std::vector<sampled_token> tokens; ///< one per sample record
};

/// A shard or replica could not finish an iteration.
struct iteration_failed {
  stream_id stream{};
  uint64_t iteration = 0;
  uint32_t attempt = 0;
  bool silent = false; ///< timed out; no device reported a failure
  std::string reason;
};

// --- KV slots ------------------------------------------------------------------------------------

/// Reservation mode: extend the holding (`more`); start fresh, where leftovers of an earlier epoch
/// are freed (`begin`); resume the holding if it is still valid, else start fresh (`go_on`).
enum class kv_wish : uint8_t { more, begin, go_on };

/// The tokens of a sequence from position 0 on, as the key of its KV in the prefix cache. Without
/// tokens, the sequence does not use the cache.
struct kv_text {
  uint64_t scope = 0; ///< sequences of different scopes share nothing
  std::vector<token_id> tokens;
};

/// The reservation of one holder: the first `share_tokens` slots of another holder, then `slots` of
/// its own. `slots` includes those that the prefix cache provides.
struct kv_need {
  sequence_id holder{};
  uint32_t slots = 0; ///< go_on: the whole holding
  sequence_id share_from{};
  uint32_t share_tokens = 0;
  kv_wish wish = kv_wish::more;
  uint32_t filled = 0; ///< more, go_on: its positions with committed KV
  kv_text text{};      ///< begin, go_on
};

/// Reserves all of the needs or none. Refused when fewer than `keep_free` slots would be left, or
/// when `epoch` is not the allocator's.
struct kv_reserve {
  std::vector<kv_need> needs;
  uint32_t keep_free = 0;
  bool tell = false; ///< after a refusal, send kv_freed to the sender when slots are freed
  uint64_t epoch = 0;
};

struct kv_holding {
  sequence_id holder{};
  uint32_t member = 0;        ///< request partition: where the slots are
  std::vector<slot_run> runs; ///< the added slots, shared ones first; go_on: all
  bool kept = false;          ///< go_on: the previous holding is still valid
  uint32_t cached = 0;        ///< else: its first positions with KV from the prefix cache
};

struct kv_grant {
  std::vector<kv_holding> holdings; ///< in the order of the needs
};

/// KV that a holder wrote since it joined its batch, for the prefix cache.
struct kv_written {
  uint32_t position = 0;        ///< of the first token
  std::vector<token_id> tokens; ///< may be empty
};

/// Frees all slots of the holders. Sent after the last launch that uses them has ended; ignored
/// when `epoch` is not the allocator's.
struct kv_release {
  std::vector<sequence_id> holders;
  uint64_t epoch = 0;
  std::vector<kv_written> written{}; ///< per holder, or none at all
};

/// The KV of a holder's first positions is committed: other sequences may share it.
struct kv_filled {
  sequence_id holder{};
  uint64_t epoch = 0;
  uint32_t positions = 0;
};

/// The holder's KV may be corrupt: its logits are not finite, or a recomputed token differed.
struct kv_doubt {
  sequence_id holder{};
  uint64_t epoch = 0;
};

/// Slots became free after a reservation was refused.
struct kv_freed {
  uint32_t free = 0;
};

/// Asks a shard to give unused memory back to the system; only while no slot is in use.
struct kv_trim {};

struct kv_usage {
  std::vector<uint32_t> slots; ///< per member (one entry where one table serves all)
  std::vector<uint32_t> used;
  uint32_t cached = 0; ///< unused slots that the prefix cache keeps
  uint32_t parity = 0; ///< used slots with parity in this epoch
  uint64_t orphan = 0; ///< used slots without a holder (leaked or of a lost epoch)
  // Counted independently, as a consistency check:
  uint64_t free = 0;       ///< slots in free lists
  uint64_t references = 0; ///< sum of the reference counts of slots
  uint64_t held = 0;       ///< sum of the slots of all holders and the prefix cache
};

/// Asks an allocator for the used slots of its first table that have parity.
struct kv_inventory_ask {};

struct kv_inventory {
  std::vector<slot_run> runs; ///< ascending
};

// --- requests ------------------------------------------------------------------------------------

/// Asks to admit a prompt with its choices.
struct admit {
  sequence_id first{};
  uint32_t choices = 1;
  uint32_t prompt_tokens = 0;
  bool resumed = false;
  bool has_kv = false; ///< its KV was complete in an earlier epoch
  kv_text text{};      ///< the tokens to prefill
};

struct admitted {
  stream_id batch{};
  uint32_t prefill_worker = 0;
  std::vector<kv_holding> holdings; ///< per choice: prompt and first window
};

/// Cancels an `admit` that is not answered yet.
struct withdraw {
  sequence_id first{};
};

/// A choice has left its batch: its seat is free.
struct retire {
  sequence_id sequence{};
  bool kept = false; ///< it yielded its seat and keeps its KV
};

/// Asks for KV and first tokens of a prompt, one for each choice.
struct prefill {
  sequence_id first{};
  std::vector<token_id> tokens;
  uint32_t member = 0;
  std::vector<slot_run> runs;         ///< of the first choice; cover the tokens
  std::vector<sampling> samplings;    ///< per choice
  std::vector<uint32_t> draws;        ///< per choice: index of the token to sample
  std::vector<logit_changes> changes; ///< per choice: applied to the logits before sampling
  uint32_t cached = 0;                ///< tokens whose KV is already in the runs
  bool rebuild = false;               ///< recomputes lost KV of tokens that were committed before
  uint32_t slack_ms = ~0u;            ///< rebuild: time left to the request's deadline
};

struct prefilled {
  std::vector<sampled_token> tokens; ///< per choice
  uint64_t waited_us = 0;            ///< in the queue before its first row was computed
};

/// The prefill of a prompt has started: it left the queue.
struct prefill_begun {
  sequence_id first{};
};

/// Drops a prompt; its `prefill` is answered with ec::cancelled once no launch uses its slots.
struct prefill_cancel {
  sequence_id first{};
};

/// Finish reason of a choice.
enum class finish : uint8_t { none, stop, length };

/// A committed token of a sequence.
struct token {
  sequence_id sequence{};
  uint32_t index = 0; ///< of the generated token
  sampled_token value;
  finish reason = finish::none;
};

/// The sequence lost its seat and may ask for admission again. Its KV was evicted for lack of
/// slots, or is `kept` because the sequence yielded.
struct preempted {
  sequence_id sequence{};
  bool kept = false;
  uint64_t epoch = 0; ///< of the batch; a message of an earlier epoch is ignored
};

/// The batch aborted this sequence.
struct sequence_failed {
  sequence_id sequence{};
  std::string reason;
  uint64_t epoch = 0; ///< as above
};

/// Removes the sequence from the batch; its seat is freed after the running iteration. With `tell`
/// it yields and keeps its slots: `preempted` is sent when its seat is free. Without, its slots are
/// freed too, so this may be sent only to the batch that it joined last.
struct batch_leave {
  sequence_id sequence{};
  bool tell = false;
};

// --- inspection ----------------------------------------------------------------------------------

#define LAMELLA_INSPECT(type, ...)                                                                 \
  template <class Inspector> typename Inspector::result_type inspect(Inspector& f, type& x) {      \
    return f(caf::meta::type_name("lamella::" #type), __VA_ARGS__);                                \
  }

LAMELLA_INSPECT(row_span, x.seat, x.position, x.rows)
template <class Inspector> typename Inspector::result_type inspect(Inspector& f, shared_mask& x) {
  auto words = x.tokens ? x.tokens->words : std::vector<uint32_t>{};
  return f(caf::meta::type_name("lamella::shared_mask"), words, caf::meta::load_callback([&] {
             x.tokens =
                 std::make_shared<const model::token_mask>(model::token_mask{std::move(words)});
             return caf::error{};
           }));
}
LAMELLA_INSPECT(iteration_launch, x.stream, x.epoch, x.iteration, x.attempt, x.patience_ms,
                x.table_version, x.changes, x.spans, x.tokens, x.selected, x.samples,
                x.sample_seats, x.edits, x.masks, x.fences)
LAMELLA_INSPECT(sampled_of, x.stream, x.iteration, x.attempt)
LAMELLA_INSPECT(sampled, x.stream, x.iteration, x.tokens)
LAMELLA_INSPECT(iteration_failed, x.stream, x.iteration, x.attempt, x.silent, x.reason)
LAMELLA_INSPECT(kv_text, x.scope, x.tokens)
LAMELLA_INSPECT(kv_need, x.holder, x.slots, x.share_from, x.share_tokens, x.wish, x.filled, x.text)
LAMELLA_INSPECT(kv_reserve, x.needs, x.keep_free, x.tell, x.epoch)
LAMELLA_INSPECT(kv_holding, x.holder, x.member, x.runs, x.kept, x.cached)
LAMELLA_INSPECT(kv_grant, x.holdings)
LAMELLA_INSPECT(kv_written, x.position, x.tokens)
LAMELLA_INSPECT(kv_release, x.holders, x.epoch, x.written)
LAMELLA_INSPECT(kv_filled, x.holder, x.epoch, x.positions)
LAMELLA_INSPECT(kv_doubt, x.holder, x.epoch)
LAMELLA_INSPECT(kv_freed, x.free)
LAMELLA_INSPECT(kv_usage, x.slots, x.used, x.cached, x.parity, x.orphan, x.free, x.references,
                x.held)
LAMELLA_INSPECT(admit, x.first, x.choices, x.prompt_tokens, x.resumed, x.has_kv, x.text)
LAMELLA_INSPECT(admitted, x.batch, x.prefill_worker, x.holdings)
LAMELLA_INSPECT(withdraw, x.first)
LAMELLA_INSPECT(retire, x.sequence, x.kept)
LAMELLA_INSPECT(prefill, x.first, x.tokens, x.member, x.runs, x.samplings, x.draws, x.changes,
                x.cached, x.rebuild, x.slack_ms)
LAMELLA_INSPECT(prefilled, x.tokens, x.waited_us)
LAMELLA_INSPECT(prefill_begun, x.first)
LAMELLA_INSPECT(prefill_cancel, x.first)
LAMELLA_INSPECT(token, x.sequence, x.index, x.value, x.reason)
LAMELLA_INSPECT(preempted, x.sequence, x.kept, x.epoch)
LAMELLA_INSPECT(sequence_failed, x.sequence, x.reason, x.epoch)
LAMELLA_INSPECT(batch_leave, x.sequence, x.tell)
LAMELLA_INSPECT(kv_inventory, x.runs)
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, kv_inventory_ask&) {
  return f(caf::meta::type_name("lamella::kv_inventory_ask"));
}
template <class Inspector> typename Inspector::result_type inspect(Inspector& f, kv_trim&) {
  return f(caf::meta::type_name("lamella::kv_trim"));
}

// --- only within one process ---------------------------------------------------------------------

/// Work for a stream of an executor's device.
using work_ptr = std::shared_ptr<gpu::work>;

} // namespace lamella::actors

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(lamella::actors::work_ptr)
