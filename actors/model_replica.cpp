#include "actors/model_replica.hpp"

#include "actors/iteration.hpp"

#include "net/failpoint.hpp"
#include "scheduler/head_partition.hpp"

#include <algorithm>

namespace lamella::actors {

namespace {

using replica_ptr = model_replica_actor::stateful_pointer<model_replica_state>;
using stream_state = model_replica_state::stream_state;
using iteration_state = model_replica_state::iteration_state;

/// Launches may run one ahead of the one whose tokens were asked for.
constexpr size_t iterations_kept = 4;

/// Which rows and heads go to which shard.
std::vector<gpu::shard_share> shares_of(const replica_config& config, const stream_state& stream,
                                        const iteration_launch& x) {
  const auto kv_heads = config.program->spec.kv_heads;
  std::vector<gpu::shard_share> shares(config.shards);
  for (uint32_t i = 0; i < config.shards; ++i) {
    const auto heads = config.whole_requests ? scheduler::head_range{0, kv_heads}
                                             : scheduler::heads_of(kv_heads, config.shards, i);
    shares[i] = {stream.links[i].to, stream.links[i].from, {}, heads.first, heads.count};
  }
  uint32_t row = 0;
  for (const auto& span : x.spans) {
    const auto member = stream.seats.at(span.seat).member;
    for (uint32_t i = 0; i < span.rows; ++i, ++row)
      for (uint32_t s = 0; s < config.shards; ++s)
        if (!config.whole_requests || s == member) shares[s].rows.push_back(row);
  }
  return shares;
}

gpu::slice_launch prepare(const replica_config& config, const stream_state& stream,
                          const iteration_launch& x) {
  gpu::slice_launch out;
  out.tag.epoch = x.epoch;
  out.tag.iteration = x.iteration;
  out.tag.attempt = x.attempt;
  out.wire = config.wire;
  out.tokens = x.tokens;
  out.selected = x.selected;
  out.samples = x.samples;
  out.sample_seats = x.sample_seats;
  out.edits = x.edits;
  for (const auto& span : x.spans)
    for (uint32_t i = 0; i < span.rows; ++i) {
      out.seats.push_back(span.seat);
      out.positions.push_back(span.position + i);
    }
  out.shares = shares_of(config, stream, x);
  if (config.parity_frame_bytes > 0)
    out.parity = gpu::parity_share{stream.links.back().to, stream.links.back().from,
                                   out.shares.front().head_count, config.parity_frame_bytes};
  return out;
}

void connect(const replica_config& config, stream_state& stream, const iteration_launch& x) {
  if (!stream.links.empty() && stream.epoch == x.epoch) return;
  stream.links.clear();
  const auto members = config.shards + (config.parity_frame_bytes > 0 ? 1 : 0);
  for (uint32_t i = 0; i < members; ++i)
    stream.links.push_back(
        config.links({x.epoch, static_cast<uint32_t>(x.stream), config.seat, i}));
  stream.epoch = x.epoch;
}

iteration_state& iteration_of(stream_state& stream, uint64_t iteration, uint32_t attempt) {
  auto& list = stream.iterations;
  auto found = std::find_if(list.begin(), list.end(), [&](const auto& s) {
    return s.iteration == iteration && s.attempt == attempt;
  });
  if (found != list.end()) return *found;
  if (list.size() >= iterations_kept) list.erase(list.begin());
  list.push_back({iteration, attempt, std::nullopt, std::nullopt});
  return list.back();
}

void finish(replica_ptr self, stream_id id, uint64_t iteration, uint32_t attempt,
            caf::expected<sampled> outcome) {
  auto& entry = iteration_of(self->state.streams[id], iteration, attempt);
  if (entry.asked) {
    if (outcome)
      entry.asked->deliver(std::move(*outcome));
    else
      entry.asked->deliver(std::move(outcome.error()));
    entry.asked.reset();
  } else {
    entry.outcome = std::move(outcome);
  }
}

void on_launch(replica_ptr self, const iteration_launch& x) {
  net::failpoint_or_throw(net::failpoint::worker_launch);
  net::failpoint_or_throw(net::failpoint::worker_token, x.tokens);
  auto& st = self->state;
  auto& stream = st.streams[x.stream];
  if (!stream.device) stream.device = std::make_shared<gpu::slice_stream_state>(*st.config.device);
  stream.seats.apply(x.changes, x.table_version);
  connect(st.config, stream, x);
  if (x.attempt > 0) self->send(st.executor, abort_atom_v, x.stream);
  auto work = std::make_shared<gpu::slice_runner>(st.config.program, st.config.weights,
                                                  st.config.device->ops(),
                                                  prepare(st.config, stream, x), stream.device);
  iteration_of(stream, x.iteration, x.attempt);
  const auto id = x.stream;
  const auto iteration = x.iteration;
  const auto attempt = x.attempt;
  const caf::timespan patience = std::chrono::milliseconds{x.patience_ms};
  self->request(st.executor, patience + answer_patience, x.stream, work_ptr{work}, patience)
      .then(
          [=, rows = x.tokens.size()](bool) {
            if (auto& meter = self->state.config.meter) meter->add(work->busy(), rows);
            if (auto& numbers = self->state.config.numbers) {
              numbers->link_bytes("attention", "in_process", work->bytes_sent());
              numbers->iteration_time(net::iteration_stage::slice,
                                      std::chrono::duration<double>(work->busy()).count());
            }
            // Of a launch ahead the rows' tokens are not known before this.
            if (net::failpoint_armed(net::failpoint::worker_token))
              for (const auto& drawn : work->sampled())
                net::failpoint_or_throw(net::failpoint::worker_token, {&drawn.token, 1});
            finish(self, id, iteration, attempt, sampled{id, iteration, work->sampled()});
          },
          [=](caf::error& reason) { finish(self, id, iteration, attempt, std::move(reason)); });
}

caf::result<sampled> on_question(replica_ptr self, const sampled_of& x) {
  auto& entry = iteration_of(self->state.streams[x.stream], x.iteration, x.attempt);
  if (entry.outcome) {
    auto outcome = std::move(*entry.outcome);
    entry.outcome.reset();
    if (outcome) return std::move(*outcome);
    return std::move(outcome.error());
  }
  entry.asked = self->make_response_promise<sampled>();
  return *entry.asked;
}

} // namespace

model_replica_actor::behavior_type
model_replica(model_replica_actor::stateful_pointer<model_replica_state> self,
              replica_config config, gpu_executor_actor executor) {
  self->state.config = std::move(config);
  self->state.executor = std::move(executor);
  self->link_to(self->state.executor);
  return {
      [self](const iteration_launch& x) { on_launch(self, x); },
      [self](const sampled_of& x) { return on_question(self, x); },
  };
}

} // namespace lamella::actors
