/// Values of other folders that messages are made of, and how they are written.
#pragma once

#include "actors/protocol/exact_numbers.hpp"
#include "gpu/device.hpp"
#include "gpu/kernels/operators.hpp"
#include "model/sampling.hpp"
#include "model/token_mask.hpp"
#include "scheduler/admission.hpp"
#include "scheduler/finish.hpp"
#include "scheduler/kv_layout.hpp"
#include "scheduler/membership/epoch_plan.hpp"
#include "scheduler/membership/pool_layout.hpp"
#include "scheduler/seat_table.hpp"
#include "scheduler/types.hpp"

#include <caf/meta/type_name.hpp>

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

template <class Inspector> typename Inspector::result_type inspect(Inspector& f, stream_place& x) {
  return f(caf::meta::type_name("stream_place"), x.stream, x.replica);
}
template <class Inspector> typename Inspector::result_type inspect(Inspector& f, kv_cell& x) {
  return f(caf::meta::type_name("kv_cell"), x.members, x.slots, x.parity);
}
template <class Inspector> typename Inspector::result_type inspect(Inspector& f, kv_layout& x) {
  return f(caf::meta::type_name("kv_layout"), x.cells);
}
template <class Inspector> typename Inspector::result_type inspect(Inspector& f, pool_sizes& x) {
  return f(caf::meta::type_name("pool_sizes"), x.model, x.attention, x.prefill, x.cells,
           x.by_requests, x.kv_bytes, x.prefill_kv_bytes);
}

} // namespace lamella::scheduler

namespace lamella::model {

template <class Inspector> typename Inspector::result_type inspect(Inspector& f, logit_edit& x) {
  return f(caf::meta::type_name("logit_edit"), x.token, actors::as_sent(x.scale),
           actors::as_sent(x.add));
}
/// These two without constraint and mask: requests, batches and prefill workers are in one process.
template <class Inspector> typename Inspector::result_type inspect(Inspector& f, logit_changes& x) {
  return f(caf::meta::type_name("logit_changes"), x.edits);
}
template <class Inspector> typename Inspector::result_type inspect(Inspector& f, sampling& x) {
  using actors::as_sent;
  return f(caf::meta::type_name("sampling"), x.seed, x.choice, as_sent(x.temperature), x.top_k,
           as_sent(x.top_p), as_sent(x.min_p), as_sent(x.presence_penalty),
           as_sent(x.frequency_penalty), as_sent(x.repetition_penalty), x.logprobs, x.min_tokens,
           x.end_tokens, as_sent(x.bias));
}

} // namespace lamella::model

namespace lamella::gpu {

template <class Inspector> typename Inspector::result_type inspect(Inspector& f, sample_record& x) {
  using actors::as_sent;
  return f(caf::meta::type_name("sample_record"), x.row, x.seed, x.choice, x.draw,
           as_sent(x.temperature), x.top_k, as_sent(x.top_p), as_sent(x.min_p), x.logprobs,
           x.first_edit, x.edit_count, x.mask, x.given);
}
template <class Inspector> typename Inspector::result_type inspect(Inspector& f, token_logprob& x) {
  return f(caf::meta::type_name("token_logprob"), x.token, actors::as_sent(x.logprob));
}
template <class Inspector> typename Inspector::result_type inspect(Inspector& f, sampled_token& x) {
  return f(caf::meta::type_name("sampled_token"), x.token, actors::as_sent(x.logprob), x.finite,
           x.top, x.rank);
}

} // namespace lamella::gpu

namespace lamella::actors {

using gpu::logit_edit;
using gpu::sample_record;
using gpu::sampled_token;
using model::logit_changes;
using model::sampling;
using model::token_id;
using scheduler::finish;
using scheduler::pool_sizes;
using scheduler::request_id;
using scheduler::seat_change;
using scheduler::sequence_id;
using scheduler::slot_run;
using scheduler::stream_id;
using scheduler::stream_place;

} // namespace lamella::actors
