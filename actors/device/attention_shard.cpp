#include "actors/device/attention_shard.hpp"

#include "actors/device/context_links.hpp"
#include "actors/device/iteration.hpp"
#include "actors/device/shard_check.hpp"
#include "actors/device/shard_pull.hpp"
#include "actors/protocol/iterations.hpp"
#include "actors/protocol/kv.hpp"
#include "actors/protocol/parity.hpp"
#include "actors/protocol/pulls.hpp"
#include "actors/shared/exceptions.hpp"
#include "actors/shared/explain.hpp"
#include "base/failpoint.hpp"
#include "gpu/runners/parity_runner.hpp"

#include <spdlog/spdlog.h>

#include <fmt/format.h>

#include <numeric>

namespace lamella::actors {

namespace {

/// The shard's part of a launch: its spans with their slots. Slots come from the shard's copy of
/// the seat table, positions from the launch.
gpu::attention_launch prepare(const shard_config& config, const scheduler::seat_copy& seats,
                              const iteration_launch& x) {
  gpu::attention_launch out;
  out.tag.epoch = x.epoch;
  out.tag.iteration = x.iteration;
  out.tag.attempt = x.attempt;
  out.tag.table_version = x.table_version;
  out.group = config.group;
  out.scale = config.scale;
  out.wire = config.wire;
  out.mini_batches = config.mini_batches;
  for (const auto& span : x.spans) {
    const auto& seat = seats.at(span.seat);
    if (config.table && seat.member != *config.table) continue;
    out.spans.push_back({out.rows, span.rows, span.position, static_cast<uint32_t>(out.runs.size()),
                         static_cast<uint32_t>(seat.runs.size())});
    for (const auto& run : seat.runs) out.runs.push_back({run.first, run.length});
    out.rows += span.rows;
  }
  return out;
}

/// Positions that the rows of a launch attend to, their own among them.
uint64_t positions_of(const gpu::attention_launch& x) {
  uint64_t sum = 0;
  for (const auto& span : x.spans)
    sum += uint64_t{span.rows} * span.first_position + uint64_t{span.rows} * (span.rows + 1) / 2;
  return sum;
}

uint64_t slots_of(const gpu::attention_launch& x) {
  return std::accumulate(x.runs.begin(), x.runs.end(), uint64_t{0},
                         [](uint64_t sum, const gpu::slot_run& run) { return sum + run.length; });
}

/// Pages for the first prompts, and for the canary's: an idle shard has these and no others.
void make_first_pages(gpu::kv_cache& cache) {
  cache.keep_ahead(std::vector<gpu::slot_run>{{0, 0}});
}

/// What the device runs, and how many payload bytes it has sent.
struct shard_work {
  work_ptr work;
  std::function<uint64_t()> bytes_sent;
};

shard_work work_of(const shard_config& config, gpu::attention_launch launch,
                   const std::vector<net::link_end>& to_replicas) {
  std::vector<gpu::runner_link> links;
  for (const auto& link : to_replicas) links.push_back({link.from, link.to});
  if (config.parity)
    return {std::make_shared<gpu::parity_runner>(config.cache, config.device->ops(),
                                                 std::move(launch), config.parity_frame_bytes,
                                                 std::move(links)),
            [] { return uint64_t{0}; }};
  auto work = std::make_shared<gpu::attention_runner>(config.cache, config.device->ops(),
                                                      std::move(launch), std::move(links));
  return {work, [work] { return work->bytes_sent(); }};
}

/// An iteration is over; it could begin when it was launched, or when the one before it ended.
void tell_of(shard_ptr self, stream_id id, caf::actor_clock::time_point launched,
             const shard_work& work, uint64_t positions, launch_kind kind) {
  const auto& config = self->state.config;
  auto& ended = self->state.streams[id].ended;
  const auto now = self->clock().now();
  const auto spent = spent_by(*work.work, now - std::max(launched, std::exchange(ended, now)));
  if (config.meter) {
    // The one with the parity has other work than those it could be held against.
    if (config.parity) {
      config.meter->compute(work.work->busy());
    } else {
      config.meter->add(work.work->busy(), positions * config.cache->layer(0).kv_heads);
      config.meter->spend(spent, shard_stages);
      if (config.device->on_host()) config.meter->launched(kind, work.work->busy(), positions);
    }
  }
  if (!config.metrics) return;
  config.metrics->link_bytes("model", "in_process", work.bytes_sent());
  tell_spent(*config.metrics, spent, shard_stages, "attention", config.seat);
}

void on_launch(shard_ptr self, const iteration_launch& x) {
  failpoint_or_throw(failpoint::shard_launch);
  failpoint_or_throw(failpoint::shard_token, x.tokens);
  auto& st = self->state;
  auto& stream = stream_of(self, x.stream, x.epoch);
  stream.seats.apply(x.changes, x.table_version);
  auto launch = prepare(st.config, stream.seats, x);
  if (launch.rows == 0) return;
  if (slots_of(launch) >= gpu::kv_pages::slots_worth_pages)
    st.config.cache->keep_ahead(launch.runs);
  launch.watch = st.watch;
  launch.hand_over = st.config.hand_over;
  launch.fences = x.fences;
  const auto replicas = static_cast<uint32_t>(stream.links.size());
  launch.turns = {replicas, first_turn(x.iteration, st.config.cache->layers(), replicas)};
  if (x.attempt > 0) self->send(st.executor, abort_atom_v, x.stream);
  const auto positions = positions_of(launch);
  const auto work = work_of(st.config, std::move(launch), stream.links);
  iteration_failed failure{x.stream, x.iteration, x.attempt, false, {}};
  auto launcher = self->current_sender();
  const auto launched = self->clock().now();
  const caf::timespan timeout = std::chrono::milliseconds{x.timeout_ms};
  self->request(st.executor, timeout + answer_timeout, x.stream, work.work, timeout)
      .then([self, id = x.stream, launched, work, positions,
             kind = kind_of(x)](bool) { tell_of(self, id, launched, work, positions, kind); },
            [self, failure, launcher, replicas = stream.replicas,
             silence = std::chrono::milliseconds{x.timeout_ms}](caf::error& reason) mutable {
              failure.reason = explain(self->system(), reason);
              if (reason == ec::deadline)
                failure.reason =
                    fmt::format("shard {} waited {} ms for replica {}", self->state.config.seat,
                                silence.count(), fmt::join(replicas, ", "));
              failure.silent = is_silence(reason);
              spdlog::warn(
                  "attention iteration failed shard={} stream={} iteration={} reason=\"{}\"",
                  self->state.config.seat, static_cast<uint32_t>(failure.stream), failure.iteration,
                  failure.reason);
              // Of a cut link the replica tells, and whoever watches the workers.
              if (launcher && reason != ec::link_cut)
                self->send(caf::actor_cast<launcher_actor>(launcher), failure);
            });
}

} // namespace

attention_shard_actor::behavior_type
attention_shard(attention_shard_actor::stateful_pointer<attention_shard_state> self,
                shard_config config, gpu_executor_actor executor) {
  end_on_exceptions(self);
  self->state.config = std::move(config);
  self->state.executor = std::move(executor);
  self->state.watch = self->state.config.watch;
  if (!self->state.watch && self->state.config.device->on_host())
    self->state.watch = std::make_shared<gpu::qkv_watch>();
  self->link_to(self->state.executor);
  make_first_pages(*self->state.config.cache);
  return {
      [self](const iteration_launch& x) { on_launch(self, x); },
      [self](kv_trim) -> caf::result<bool> {
        auto& cache = *self->state.config.cache;
        cache.trim();
        make_first_pages(cache);
        return true;
      },
      [self](const kv_pull& x) { return pull(self, x); },
      [self](const kv_pull_cancel& x) {
        self->send(self->state.executor, abort_atom_v, stream_of_transfer(x.stream));
      },
      [self](const kv_offer& x) { return lend(self, x); },
      [self](const kv_check& x) { return check(self, x); },
  };
}

} // namespace lamella::actors
