#include "actors/device/model_replica.hpp"

#include "actors/device/context_links.hpp"
#include "actors/device/iteration.hpp"
#include "actors/protocol/iterations.hpp"
#include "actors/shared/exceptions.hpp"

#include "base/failpoint.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

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
  const auto& layout = config.layout;
  std::vector<gpu::shard_share> shares;
  std::vector<size_t> first_of; // member of each table
  for (const auto& table : layout.cells) {
    first_of.push_back(shares.size());
    for (uint32_t k = 0; k < table.members; ++k) {
      const auto heads = scheduler::heads_of(kv_heads, table.members, k);
      const auto& link = stream.links[shares.size()];
      shares.push_back({link.to, link.from, {}, heads.first, heads.count});
    }
  }
  uint32_t row = 0;
  for (const auto& span : x.spans) {
    const auto cell = stream.seats.at(span.seat).member;
    for (uint32_t i = 0; i < span.rows; ++i, ++row)
      for (uint32_t s = 0; s < layout.cells.at(cell).members; ++s)
        shares[first_of[cell] + s].rows.push_back(row);
  }
  return shares;
}

/// One after the other, each as long as the vocabulary; tokens beyond a mask may not be drawn.
std::vector<uint32_t> masks_of(const iteration_launch& x, uint32_t vocabulary) {
  const auto words = gpu::mask_words(vocabulary);
  std::vector<uint32_t> out(x.masks.size() * words);
  for (size_t i = 0; i < x.masks.size(); ++i) {
    const auto& mask = x.masks[i].tokens->words;
    std::copy_n(mask.begin(), std::min<size_t>(mask.size(), words),
                out.begin() + static_cast<ptrdiff_t>(i * words));
  }
  return out;
}

gpu::slice_launch prepare(const replica_config& config, const stream_state& stream,
                          const iteration_launch& x) {
  gpu::slice_launch out;
  out.tag.epoch = x.epoch;
  out.tag.iteration = x.iteration;
  out.tag.attempt = x.attempt;
  out.tag.table_version = x.table_version;
  out.wire = config.wire;
  out.tokens = x.tokens;
  out.selected = x.selected;
  out.samples = x.samples;
  out.sample_seats = x.sample_seats;
  out.edits = x.edits;
  out.masks = masks_of(x, config.program->spec.vocabulary);
  for (const auto& span : x.spans)
    for (uint32_t i = 0; i < span.rows; ++i) {
      out.seats.push_back(span.seat);
      out.positions.push_back(span.position + i);
    }
  out.shares = shares_of(config, stream, x);
  out.mini_batches = config.mini_batches;
  for (const auto cell : config.layout.parity_cells()) {
    const auto& link = stream.links[config.layout.holder_of(cell)];
    out.parity.push_back({link.to, link.from, config.layout.first_of(cell),
                          config.layout.cells[cell].members, config.kv, config.parity_frame_bytes});
  }
  out.turns = {stream.replicas,
               first_turn(x.iteration, config.program->spec.layers, stream.replicas)};
  out.turn = stream.turn;
  out.context = stream.context;
  return out;
}

/// Between the ranks of this replica.
std::vector<std::shared_ptr<const gpu::rank_group>> connect_ranks(const replica_config& config,
                                                                  stream_id id, uint64_t epoch) {
  if (config.others.empty()) return {};
  std::vector<std::shared_ptr<gpu::device>> devices{config.device};
  for (const auto& rank : config.others) devices.push_back(rank.device);
  const auto stream = static_cast<uint32_t>(id);
  auto groups = gpu::make_rank_groups(
      devices, epoch,
      stream >= scheduler::prefill_streams ? config.prefill_rank_bytes : config.decode_rank_bytes);
  const auto& why = groups[0]->why_rings;
  spdlog::info("ranks connected replica={} stream={} ranks={} sums={} reason=\"{}\"", config.seat,
               stream, devices.size(), why.empty() ? "nccl" : "rings", why);
  return groups;
}

std::optional<context_links> context_of(const replica_config& config, uint64_t epoch,
                                        stream_id id) {
  if (!config.replicas_of) return std::nullopt;
  return context_links_of(epoch, id, config.replicas_of(id), config.seat);
}

/// To the neighbours in the rotation, if the stream rotates (L-M21).
void connect_context(const replica_config& config, stream_state& stream, stream_id id,
                     uint64_t epoch) {
  stream.replicas = 1, stream.turn = 0, stream.context = {};
  const auto context = context_of(config, epoch, id);
  if (!context) return;
  stream.replicas = static_cast<uint32_t>(config.replicas_of(id).size());
  stream.turn = context->turn;
  stream.context = {config.links(context->from).from, config.links(context->to).to};
}

void connect(const replica_config& config, stream_state& stream, const iteration_launch& x) {
  // An abort leaves frames of either age between ranks: they begin anew.
  if (stream.ranks.empty() || stream.epoch != x.epoch)
    stream.ranks = connect_ranks(config, x.stream, x.epoch);
  if (!stream.links.empty() && stream.epoch == x.epoch) return;
  stream.links.clear();
  for (uint32_t i = 0; i < config.layout.all(); ++i)
    stream.links.push_back(
        config.links({x.epoch, static_cast<uint32_t>(x.stream), config.seat, i}));
  connect_context(config, stream, x.stream, x.epoch);
  stream.epoch = x.epoch;
}

/// What the ranks keep of a stream.
std::vector<std::shared_ptr<gpu::slice_stream_state>> kept_of_stream(const replica_config& config) {
  std::vector<std::shared_ptr<gpu::slice_stream_state>> result;
  result.push_back(std::make_shared<gpu::slice_stream_state>(*config.device));
  for (const auto& rank : config.others)
    result.push_back(std::make_shared<gpu::slice_stream_state>(*rank.device));
  return result;
}

/// From its first launch on.
void keep_stream(replica_config& config, stream_state& stream, stream_id id) {
  if (!stream.devices.empty()) return;
  if (auto ready = config.ready.extract(id)) {
    stream.devices = std::move(ready.mapped().devices);
    stream.ranks = std::move(ready.mapped().ranks);
    stream.epoch = ready.mapped().epoch;
  } else {
    stream.devices = kept_of_stream(config);
  }
}

/// One work per rank. Rank 0's has the shares; the others get to the shards through it.
std::vector<std::shared_ptr<gpu::slice_runner>>
works_of(const replica_config& config, const stream_state& stream, gpu::slice_launch launch) {
  std::vector<std::shared_ptr<gpu::slice_runner>> works;
  const auto add = [&](const gpu::device& device, const auto& weights) {
    const auto rank = works.size();
    if (!stream.ranks.empty()) launch.ranks = stream.ranks[rank];
    works.push_back(std::make_shared<gpu::slice_runner>(config.program, weights, device.ops(),
                                                        launch, stream.devices[rank]));
    launch.shares.clear();
    launch.parity.clear();
    launch.context = {};
  };
  add(*config.device, config.weights);
  for (const auto& rank : config.others) add(*rank.device, rank.weights);
  return works;
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

/// An iteration is over; it could begin when it was launched, or when the one before it ended.
void tell_of(replica_ptr self, stream_id id, caf::actor_clock::time_point launched,
             const gpu::slice_runner& work, uint64_t rows, launch_kind kind) {
  const auto& config = self->state.config;
  auto& stream = self->state.streams[id];
  auto& ended = stream.ended;
  const auto now = self->clock().now();
  const auto spent = spent_by(work, now - std::max(launched, std::exchange(ended, now)));
  if (config.meter) {
    config.meter->add(work.busy(), rows);
    config.meter->spend(spent, replica_stages);
    if (config.device->on_host()) config.meter->launched(kind, work.busy() * stream.replicas, rows);
  }
  if (!config.metrics) return;
  config.metrics->link_bytes("attention", "in_process", work.bytes_sent());
  tell_spent(*config.metrics, spent, replica_stages, "model", config.seat);
}

const gpu_executor_actor& executor_of(replica_ptr self, size_t rank) {
  return rank == 0 ? self->state.executor : self->state.config.others[rank - 1].executor;
}

void abort_all(replica_ptr self, stream_id id) {
  auto& st = self->state;
  ++st.streams[id].aborts;
  st.streams[id].ranks.clear();
  for (size_t r = 0; r <= st.config.others.size(); ++r)
    self->send(executor_of(self, r), abort_atom_v, id);
}

/// A launch that runs on all ranks.
struct running_launch {
  stream_id stream{};
  uint64_t iteration = 0;
  uint32_t attempt = 0;
  uint64_t rows = 0;
  launch_kind kind{};
  std::chrono::milliseconds timeout{};
  caf::actor_clock::time_point launched{};
  std::shared_ptr<gpu::slice_runner> first; ///< rank 0's work
  size_t ranks_left = 0;
  uint64_t aborts = 0; ///< of the stream, when it was launched
  caf::error why;      ///< the first rank's that failed
};

void on_success(replica_ptr self, const running_launch& x) {
  tell_of(self, x.stream, x.launched, *x.first, x.rows, x.kind);
  // Of a launch ahead the rows' tokens are not known before this.
  if (failpoint_armed(failpoint::worker_token))
    for (const auto& drawn : x.first->sampled())
      failpoint_or_throw(failpoint::worker_token, {&drawn.token, 1});
  finish(self, x.stream, x.iteration, x.attempt,
         sampled{x.stream, x.iteration, x.first->sampled()});
}

void on_failure(replica_ptr self, const running_launch& x) {
  auto reason = x.why;
  if (reason == ec::deadline)
    reason = caf::make_error(
        ec::deadline,
        fmt::format("replica {} waited {} ms for its shards (stream {}, iteration {})",
                    self->state.config.seat, x.timeout.count(), static_cast<uint32_t>(x.stream),
                    x.iteration));
  finish(self, x.stream, x.iteration, x.attempt, std::move(reason));
}

/// What one rank cannot end, the others need not wait for; nor what is queued behind it.
void on_rank_end(replica_ptr self, running_launch& x, const caf::error& reason) {
  --x.ranks_left;
  if (reason && !x.why) {
    x.why = reason;
    if (x.ranks_left > 0 && self->state.streams[x.stream].aborts == x.aborts)
      abort_all(self, x.stream);
  }
  if (x.ranks_left > 0) return;
  x.why ? on_failure(self, x) : on_success(self, x);
}

void on_launch(replica_ptr self, const iteration_launch& x) {
  failpoint_or_throw(failpoint::worker_launch);
  failpoint_or_throw(failpoint::worker_token, x.tokens);
  auto& st = self->state;
  auto& stream = st.streams[x.stream];
  keep_stream(st.config, stream, x.stream);
  stream.seats.apply(x.changes, x.table_version);
  if (x.attempt > 0) abort_all(self, x.stream);
  connect(st.config, stream, x);
  const auto works = works_of(st.config, stream, prepare(st.config, stream, x));
  iteration_of(stream, x.iteration, x.attempt);
  const caf::timespan timeout = std::chrono::milliseconds{x.timeout_ms};
  const auto running =
      std::make_shared<running_launch>(running_launch{x.stream,
                                                      x.iteration,
                                                      x.attempt,
                                                      x.tokens.size(),
                                                      kind_of(x),
                                                      std::chrono::milliseconds{x.timeout_ms},
                                                      self->clock().now(),
                                                      works.front(),
                                                      works.size(),
                                                      stream.aborts,
                                                      {}});
  for (size_t r = 0; r < works.size(); ++r)
    self->request(executor_of(self, r), timeout + answer_timeout, x.stream, work_ptr{works[r]},
                  timeout)
        .then([=](bool) { on_rank_end(self, *running, {}); },
              [=](const caf::error& reason) { on_rank_end(self, *running, reason); });
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

void make_ready(replica_config& config, uint64_t epoch, const std::vector<stream_id>& streams) {
  for (const auto id : streams) {
    config.ready[id] = {epoch, kept_of_stream(config), connect_ranks(config, id, epoch)};
    // Links of one process are made when an end is asked for.
    for (uint32_t i = 0; i < config.layout.all(); ++i)
      config.links({epoch, static_cast<uint32_t>(id), config.seat, i});
    if (const auto context = context_of(config, epoch, id)) {
      config.links(context->from);
      config.links(context->to);
    }
  }
}

model_replica_actor::behavior_type
model_replica(model_replica_actor::stateful_pointer<model_replica_state> self,
              replica_config config, gpu_executor_actor executor) {
  end_on_exceptions(self);
  self->state.config = std::move(config);
  self->state.executor = std::move(executor);
  self->link_to(self->state.executor);
  for (const auto& rank : self->state.config.others) self->link_to(rank.executor);
  return {
      [self](const iteration_launch& x) { on_launch(self, x); },
      [self](const sampled_of& x) { return on_question(self, x); },
  };
}

} // namespace lamella::actors
