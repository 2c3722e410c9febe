#include "config/option_table.hpp"

namespace lamella::config {

namespace {

/// What an iteration holds, and how its rows travel.
void add_launches(table& t) {
  t.choice<launches>(
      "batching.launches", reload::restart,
      {{launches::separate, "separate"}, {launches::mixed, "mixed"}},
      "separate: prompts on replicas that decode have iterations of their own; mixed: they share "
      "those of a batch, so that weights are read once for both.",
      [](settings & s) -> auto& { return s.batching.launches; });
  t.plain(
      "batching.early_q", option_kind::boolean, reload::restart,
      "true: Q is sent as soon as it is there, so that shards attend to old positions while K and "
      "V "
      "are computed; false: Q, K and V come of one product and are sent together.",
      [](settings & s) -> auto& { return s.batching.early_q; });
  t.integer(
      "batching.mini_batches", reload::restart, 1, 8,
      "Parts in which the rows of a decode iteration go to a shard and come back, so that it "
      "attends to the first while the rest is on the wire. Each costs frames: for slow links.",
      [](settings & s) -> auto& { return s.batching.mini_batches; });
  t.seconds(
      "batching.tbt_target_seconds", reload::restart, 0, 60'000,
      "Time between two tokens of a sequence beside which prompts are computed (mixed launches): "
      "prompts get the time that decoding leaves of it; 0: no bound but the chunk size.",
      [](settings & s) -> auto& { return s.batching.tbt_target; });
  t.integer(
      "batching.stand_backs", reload::restart, 0, 64,
      "Launches that a sequence may sit out, from its joining to its end, so that waiting prompts "
      "go first (mixed launches; Splitwise: 4); 0: every sequence is in every launch.",
      [](settings & s) -> auto& { return s.batching.stand_backs; });
  t.choice<prompt_order>(
      "batching.prompt_order", reload::restart,
      {{prompt_order::fair, "fair"}, {prompt_order::fcfs, "fcfs"}},
      "Order of waiting prompts: fair (by arrival plus four times the time a prompt still takes: "
      "short ones pass long ones, and none starves) or fcfs (first come, first served).",
      [](settings & s) -> auto& { return s.batching.prompt_order; });
}

} // namespace

void add_batching(table& t) {
  t.choice<pipeline>(
      "batching.pipeline", reload::restart,
      {{pipeline::fixed, "fixed"},
       {pipeline::rotational, "rotational"},
       {pipeline::off, "off"},
       {pipeline::automatic, "auto"}},
      "fixed: a batch stays on its replica; rotational: it moves to the next one with each slice, "
      "so that batches take turns at replicas and shards; off: one batch for each replica, and "
      "none overlap; auto: off or rotational, by measured times, for each epoch.",
      [](settings & s) -> auto& { return s.batching.pipeline; });
  t.integer(
      "batching.batches", reload::restart, 1, 64,
      "Concurrent batches; auto: the number of replicas, and one more if they rotate. With the "
      "pipelines off and auto their number follows from the replicas.",
      [](settings & s) -> auto& { return s.batching.batches; });
  t.integer(
      "batching.max_batch", reload::restart, 1, 4096, "Maximum requests in one batch.",
      [](settings & s) -> auto& { return s.batching.max_batch; });
  t.integer(
      "batching.prefill_chunk_tokens", reload::restart, 16, 65'536,
      "Chunk size of prefill in tokens, so that long prompts do not delay other requests.",
      [](settings & s) -> auto& { return s.batching.prefill_chunk_tokens; });
  t.seconds(
      "batching.prefill_iteration_seconds", reload::restart, 0, 60'000,
      "Time that a chunk of prompts should take at most: it gets fewer tokens where the machine is "
      "slow or the context long, so that short prompts wait less; 0: no bound.",
      [](settings & s) -> auto& { return s.batching.prefill_iteration; });
  add_launches(t);
}

} // namespace lamella::config
