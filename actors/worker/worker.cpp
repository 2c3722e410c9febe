#include "actors/worker/worker.hpp"

#include "actors/device/attention_shard.hpp"
#include "actors/device/gpu_executor.hpp"
#include "actors/device/model_replica.hpp"
#include "actors/device/prefill_seat.hpp"
#include "actors/protocol/epochs.hpp"
#include "actors/protocol/exceptions.hpp"
#include "actors/protocol/explain.hpp"
#include "actors/protocol/status.hpp"
#include "actors/shared/end_watch.hpp"
#include "actors/shared/injury.hpp"
#include "actors/worker/worker_links.hpp"
#include "actors/worker/worker_report.hpp"
#include "actors/worker/worker_watch.hpp"
#include "base/failpoint.hpp"
#include "scheduler/head_partition.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>

namespace lamella::actors {

namespace {

using worker_ptr = watching_worker_actor::stateful_pointer<worker_state>;
using scheduler::worker_role;

/// So many looks in a row, so far apart, must find something that does not end.
constexpr uint32_t late_looks_max = 3;
constexpr std::chrono::milliseconds late_poll_interval{250};

/// What a step of a slowed device takes longer.
constexpr std::chrono::microseconds slow_step{500};

std::shared_ptr<gpu::device> make_device(const worker_config& config, const std::string& name,
                                         uint32_t rank = 0) {
  return config.make_device ? config.make_device(name, rank) : config.engine->make_device(name);
}

/// Tells an actor of an epoch to end, and remembers since when it is ending.
template <class Handle> void tell_to_end(worker_ptr self, const Handle& x) {
  const auto address = caf::actor_cast<caf::actor_addr>(x);
  self->demonitor(address);
  self->monitor(address);
  self->state.ending.emplace(address, self->clock().now());
  self->send_exit(x, caf::exit_reason::user_shutdown);
}

/// Ends what was made for the epoch; what still runs ends soon, or hangs.
void end_epoch(worker_ptr self) {
  auto& st = self->state;
  keep_counts(st);
  st.links.clear();
  const auto epoch = std::exchange(st.open, {}).epoch;
  for (const auto& part : std::exchange(st.parts, {})) tell_to_end(self, part);
  for (const auto& executor : std::exchange(st.executors, {})) tell_to_end(self, executor);
  if (!st.ending.empty()) self->delayed_send(self, hang_limit, wake_atom_v);
  if (epoch != 0) st.config.port.close(epoch);
}

/// Before the first epoch.
void open_device(worker_state& st, const std::string& name) {
  const auto& terms = st.config.terms;
  st.other_devices.clear(); // of an attempt that failed
  for (uint32_t r = 1; r < terms.ranks; ++r)
    st.other_devices.push_back(make_device(st.config, fmt::format("host/{}.{}", name, r), r));
  st.device = make_device(st.config, "host/" + name);
  gpu::work_sizes most;
  if (st.config.where.role == worker_role::attention || terms.prefill_owns_kv)
    most.attended = terms.slots, most.rows = terms.rows;
  if (st.config.program)
    most.draws = terms.rows, most.vocabulary = st.config.program->spec.vocabulary;
  st.device->prepare_works(most);
  if (!st.device->on_host()) st.carries = st.config.engine->make_device("host/links");
}

/// Is there a cache of that part? Else there is an empty one afterwards.
bool keep_cache(worker_state& st, uint32_t number) {
  if (st.cache && st.cache_number == number) return true;
  const auto& terms = st.config.terms;
  const auto heads = terms.whole_requests
                         ? terms.kv_heads
                         : scheduler::heads_of(terms.kv_heads, terms.shards, 0).count;
  st.cache.reset(); // before the next one takes its memory
  st.cache = std::make_shared<gpu::kv_cache>(*st.device, terms.layers, terms.slots, heads,
                                             terms.head_dim, terms.kv);
  st.cache_number = number;
  return false;
}

/// What this seat serves in the epoch.
std::vector<stream_id> streams_of(const worker_state& st) {
  std::vector<stream_id> result;
  for (const auto& place : st.open.streams)
    if (place.replica == st.open.number) result.push_back(place.stream);
  return result;
}

/// Remembers a part of the epoch.
template <class Handle> Handle keep(worker_state& st, Handle x) {
  st.parts.push_back(caf::actor_cast<caf::strong_actor_ptr>(x));
  return x;
}

attention_shard_actor make_shard(worker_ptr self) {
  auto& st = self->state;
  const auto& terms = st.config.terms;
  shard_config c;
  c.seat = st.open.number;
  c.whole_requests = terms.whole_requests;
  c.parity = st.open.number == terms.shards;
  c.parity_frame_bytes = terms.parity_frame_bytes;
  if (terms.member_frame_bytes > 0) c.member_links = member_links_of(st);
  c.group = terms.group;
  c.scale = terms.scale;
  c.wire = terms.wire;
  c.device = st.device;
  c.cache = st.cache;
  c.links = links_made(st);
  c.metrics = st.config.metrics;
  c.meter = st.meter;
  std::map<stream_id, uint32_t> places;
  for (const auto& place : st.open.streams) places[place.stream] = place.replica;
  c.replica_of = [places](stream_id id) { return places.at(id); };
  st.executors.push_back(self->spawn(gpu_executor, st.device, st.config.on_failed_work));
  return keep(st, self->spawn(attention_shard, std::move(c), st.executors.back()));
}

/// The ranks behind the first one (L-M03).
void add_ranks(worker_ptr self, replica_config& c) {
  auto& st = self->state;
  for (size_t r = 0; r < st.other_devices.size(); ++r) {
    const auto& device = st.other_devices[r];
    st.executors.push_back(self->spawn(gpu_executor, device, st.config.on_failed_work));
    c.others.push_back({device, st.config.other_weights.at(r), st.executors.back()});
  }
  c.decode_rank_bytes = st.config.terms.decode_rank_bytes;
  c.prefill_rank_bytes = st.config.terms.prefill_rank_bytes;
}

model_replica_actor make_replica(worker_ptr self) {
  auto& st = self->state;
  replica_config c;
  c.seat = st.open.number;
  c.shards = st.config.terms.shards;
  c.whole_requests = st.config.terms.whole_requests;
  if (st.open.shards.size() > c.shards) c.parity_frame_bytes = st.config.terms.parity_frame_bytes;
  c.wire = st.config.terms.wire;
  c.kv = st.config.terms.kv;
  c.device = st.device;
  c.program = st.config.program;
  c.weights = st.config.weights;
  c.links = links_made(st);
  c.metrics = st.config.metrics;
  c.meter = st.meter;
  add_ranks(self, c);
  make_ready(c, st.open.epoch, streams_of(st));
  st.executors.push_back(self->spawn(gpu_executor, st.device, st.config.on_failed_work));
  return keep(st, self->spawn(model_replica, std::move(c), st.executors.back()));
}

/// A prefill worker with KV of its own, which starts empty.
void make_seat(worker_ptr self, epoch_ready& answer) {
  auto& st = self->state;
  const auto& terms = st.config.terms;
  prefill_seat_config c;
  c.seat = st.open.number;
  c.epoch = st.open.epoch;
  c.streams = streams_of(st);
  c.shards = terms.shards;
  c.whole_requests = terms.whole_requests;
  c.wire = terms.wire;
  c.kv = terms.kv;
  c.slots = terms.slots;
  c.frame_bytes = terms.own_frame_bytes;
  c.compute = st.device;
  c.memory = make_device(st.config, st.device->name() + "-kv");
  c.program = st.config.program;
  c.weights = st.config.weights;
  c.links = links_made(st);
  c.meter = st.meter;
  c.on_failed_work = st.config.on_failed_work;
  auto seat = make_prefill_seat(&*self, c);
  st.executors = std::move(seat.executors);
  answer.replica = keep(st, seat.replica);
  answer.shard = keep(st, seat.kv.shard);
  answer.source = keep(st, seat.kv.source);
}

/// Streams of the device that this seat may use at once in the epoch.
size_t device_streams(const worker_state& st) {
  const auto& terms = st.config.terms;
  if (st.config.where.role == worker_role::attention) // and what looks after the KV
    return st.open.streams.size() + (terms.member_frame_bytes > 0 ? 3 : 1);
  const auto own = terms.prefill_owns_kv && st.config.where.role == worker_role::prefill;
  return streams_of(st).size() * (own ? 2 : 1) + (own ? terms.shards : 0);
}

/// From now on so many streams can be made at once, on the devices of all ranks.
void prepare_streams(const worker_state& st) {
  const auto count = [&, own = device_streams(st)](uint32_t rank) {
    return st.config.streams_on_device ? st.config.streams_on_device(rank) : own;
  };
  st.device->prepare_streams(count(0));
  for (uint32_t r = 0; r < st.other_devices.size(); ++r)
    st.other_devices[r]->prepare_streams(count(r + 1));
}

/// Nothing of the epoch before runs any more.
void open_epoch(worker_ptr self) {
  auto& st = self->state;
  auto next = std::move(*st.next);
  st.next.reset();
  const auto name = scheduler::to_string(st.config.where);
  try {
    failpoint_or_throw(failpoint::worker_epoch_open);
    st.open = next.order;
    epoch_ready answer;
    if (!st.device) open_device(st, name);
    prepare_streams(st);
    connect(st);
    const auto role = st.config.where.role;
    if (role == worker_role::attention) {
      answer.kept = keep_cache(st, st.open.number);
      answer.shard = make_shard(self);
    } else if (role == worker_role::prefill && st.config.terms.prefill_owns_kv) {
      make_seat(self, answer);
    } else {
      answer.replica = make_replica(self);
    }
    for (const auto& part : st.parts) self->monitor(caf::actor_cast<caf::actor_addr>(part));
    spdlog::info("epoch open seat={} epoch={} number={} links={} kept={}", name, st.open.epoch,
                 st.open.number, st.links.size(), answer.kept);
    next.promise.deliver(std::move(answer));
  } catch (const std::exception& e) {
    spdlog::error("cannot open epoch seat={} epoch={} reason=\"{}\"", name, next.order.epoch,
                  e.what());
    end_epoch(self);
    next.promise.deliver(caf::make_error(ec::links_failed, std::string{e.what()}));
  }
}

caf::result<epoch_ready> on_open(worker_ptr self, const epoch_open& x) {
  auto& st = self->state;
  end_epoch(self);
  if (st.next) st.next->promise.deliver(caf::make_error(ec::aborted));
  auto promise = self->make_response_promise<epoch_ready>();
  st.next.emplace(worker_state::opening{x, promise});
  if (st.ending.empty()) open_epoch(self);
  return promise;
}

void on_injury(worker_ptr self, const worker_injury& x) {
  auto& st = self->state;
  const auto what = injury_named(x.what);
  if (!st.config.terms.chaos || !what) return;
  const std::chrono::milliseconds duration{x.duration_ms};
  spdlog::warn("fault injected what={} duration_ms={}", x.what, x.duration_ms);
  switch (*what) {
  case injury::slow:
    st.config.engine->slow_down(slow_step);
    st.slow_until = self->clock().now() + duration;
    self->delayed_send(self, duration, wake_atom_v);
    return;
  case injury::partition:
    if (st.open.epoch != 0) st.config.port.close(st.open.epoch);
    return;
  case injury::isolate:
    st.flaws->mute_until = std::chrono::steady_clock::now() + duration;
    if (st.config.port.isolate) st.config.port.isolate(duration);
    return;
  case injury::corrupt:
    st.flaws->corrupt = true;
    return;
  case injury::drop:
    st.flaws->drop = true;
    return;
  default:
    injure_process(*what, duration);
  }
}

void end(worker_ptr self, const std::string& reason, bool failed) {
  end_epoch(self);
  if (auto told = std::exchange(self->state.config.on_end, nullptr)) told(reason, failed);
  self->quit(failed ? caf::make_error(ec::device_lost, reason) : caf::error{});
}

/// An injected fault is over, or the shutdown of an epoch is polled.
void on_wake(worker_ptr self) {
  auto& st = self->state;
  const auto now = self->clock().now();
  if (st.slow_until && now >= *st.slow_until) {
    st.slow_until.reset();
    st.config.engine->slow_down({});
  }
  const bool late = std::any_of(st.ending.begin(), st.ending.end(),
                                [&](const auto& x) { return now - x.second >= hang_limit; });
  // After a stall of this process, pending terminations are reported between two polls.
  st.late_looks = late ? st.late_looks + 1 : 0;
  if (!late) return;
  if (st.late_looks < late_looks_max) {
    self->delayed_send(self, late_poll_interval, wake_atom_v);
    return;
  }
  spdlog::critical(
      "shutdown of an epoch timed out seat={} seconds={}: its device or an actor hangs",
      scheduler::to_string(st.config.where), hang_limit.count());
  end(self, "shutdown of an epoch timed out: its device or an actor hangs", true);
}

} // namespace

watching_worker_actor::behavior_type
worker(watching_worker_actor::stateful_pointer<worker_state> self, worker_config config) {
  end_on_exceptions(self);
  self->state.config = std::move(config);
  self->set_down_handler([self](const caf::down_msg& down) {
    auto& st = self->state;
    if (st.ending.erase(down.source) > 0) {
      if (st.ending.empty() && st.next) open_epoch(self);
      return;
    }
    if (std::none_of(st.parts.begin(), st.parts.end(), [&](const auto& part) {
          return caf::actor_cast<caf::actor_addr>(part) == down.source;
        }))
      return;
    end(self, "its part of the pipeline failed: " + explain(self->system(), down.reason), true);
  });
  self->set_exit_handler(
      [self](const caf::exit_msg& x) { end(self, explain(self->system(), x.reason), false); });
  return {
      [self](const epoch_open& x) { return on_open(self, x); },
      [self](const epoch_close& x) {
        auto& st = self->state;
        if (st.open.epoch == x.epoch) end_epoch(self);
        if (st.next && st.next->order.epoch == x.epoch) {
          st.next->promise.deliver(caf::make_error(ec::aborted));
          st.next.reset();
        }
      },
      [self](const worker_leave& x) { end(self, x.reason, false); },
      [self](const worker_injury& x) { on_injury(self, x); },
      [self](wake_atom) { on_wake(self); },
      [self](const watch_order& x) { return on_watch(self->state, x, self->clock().now()); },
      [self](status_atom) -> caf::result<worker_peers> { return peers_of(self->state); },
  };
}

} // namespace lamella::actors
