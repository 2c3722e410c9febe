#include "actors/attention_shard.hpp"

#include <spdlog/spdlog.h>

namespace lamella::actors {

namespace {

using shard_ptr = attention_shard_actor::stateful_pointer<attention_shard_state>;

/// The shard's part of a launch: its spans with their slots. Slots come from the shard's copy of
/// the seat table, positions from the launch.
gpu::attention_launch prepare(const shard_config& config, const scheduler::seat_copy& seats,
                              const iteration_launch& x) {
  gpu::attention_launch out;
  out.tag.epoch = x.epoch;
  out.tag.iteration = x.iteration;
  out.tag.attempt = x.attempt;
  out.group = config.group;
  out.scale = config.scale;
  out.wire = config.wire;
  for (const auto& span : x.spans) {
    const auto& seat = seats.at(span.seat);
    if (config.whole_requests && seat.member != config.seat) continue;
    out.spans.push_back({out.rows, span.rows, span.position, static_cast<uint32_t>(out.runs.size()),
                         static_cast<uint32_t>(seat.runs.size())});
    for (const auto& run : seat.runs) out.runs.push_back({run.first, run.length});
    out.rows += span.rows;
  }
  return out;
}

void on_launch(shard_ptr self, const iteration_launch& x) {
  auto& st = self->state;
  auto& stream = st.streams[x.stream];
  stream.seats.apply(x.changes, x.table_version);
  if (!stream.link.to || stream.epoch != x.epoch) {
    stream.link = st.config.links->shard_end(
        {x.epoch, static_cast<uint32_t>(x.stream), st.config.replica_of(x.stream), st.config.seat});
    stream.epoch = x.epoch;
  }
  auto launch = prepare(st.config, stream.seats, x);
  if (launch.rows == 0) return;
  if (x.attempt > 0) self->send(st.executor, abort_atom_v, x.stream);
  auto work = std::make_shared<gpu::attention_runner>(
      st.config.cache, *st.config.ops, std::move(launch), stream.link.from, stream.link.to);
  iteration_failed failure{x.stream, x.iteration, x.attempt, {}};
  auto launcher = self->current_sender();
  self->request(st.executor, st.config.patience + std::chrono::seconds{5}, x.stream, work_ptr{work},
                st.config.patience)
      .then(
          [self, work](bool) {
            if (auto& numbers = self->state.config.numbers) {
              numbers->link_bytes("model", "in_process", work->bytes_sent());
              numbers->iteration_time(net::iteration_stage::attention,
                                      std::chrono::duration<double>(work->busy()).count());
            }
          },
          [self, failure, launcher](caf::error& reason) mutable {
            failure.reason = self->system().render(reason);
            spdlog::warn("attention iteration failed shard={} stream={} iteration={} reason=\"{}\"",
                         self->state.config.seat, static_cast<uint32_t>(failure.stream),
                         failure.iteration, failure.reason);
            if (launcher) self->send(caf::actor_cast<launcher_actor>(launcher), failure);
          });
}

} // namespace

attention_shard_actor::behavior_type
attention_shard(attention_shard_actor::stateful_pointer<attention_shard_state> self,
                shard_config config, gpu_executor_actor executor) {
  self->state.config = std::move(config);
  self->state.executor = std::move(executor);
  self->link_to(self->state.executor);
  return {
      [self](const iteration_launch& x) { on_launch(self, x); },
      [self](kv_trim) -> caf::result<bool> {
        self->state.config.cache->trim();
        return true;
      },
  };
}

} // namespace lamella::actors
