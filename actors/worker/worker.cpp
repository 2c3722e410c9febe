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

/// Drops the KV that no open epoch uses.
void drop_caches(worker_state& st) {
  std::erase_if(st.caches, [&](const auto& x) {
    return std::ranges::none_of(st.epochs,
                                [&](const auto& open) { return open.second.stores == x.first; });
  });
}

/// Ends what was made for an epoch; what still runs ends soon, or hangs.
void end_epoch(worker_ptr self, uint64_t epoch) {
  auto& st = self->state;
  auto node = st.epochs.extract(epoch);
  if (!node) return;
  auto& at = node.mapped();
  keep_counts(st, at);
  at.links.clear();
  at.lends.clear();
  for (const auto& part : std::exchange(at.parts, {})) tell_to_end(self, part);
  for (const auto& executor : std::exchange(at.executors, {})) tell_to_end(self, executor);
  if (!st.ending.empty()) self->delayed_send(self, hang_limit, wake_atom_v);
  st.config.port.close(epoch);
}

/// All but the epoch `stays`.
void end_epochs(worker_ptr self, uint64_t stays = 0) {
  std::vector<uint64_t> over;
  for (const auto& [epoch, at] : self->state.epochs)
    if (epoch != stays) over.push_back(epoch);
  for (const auto epoch : over) end_epoch(self, epoch);
}

/// Before the first epoch.
void open_device(worker_state& st, const std::string& name) {
  const auto& terms = st.config.terms;
  st.other_devices.clear(); // of an attempt that failed
  for (uint32_t r = 1; r < terms.ranks; ++r)
    st.other_devices.push_back(make_device(st.config, fmt::format("host/{}.{}", name, r), r));
  st.device = make_device(st.config, "host/" + name);
  gpu::work_sizes most;
  const bool attends = st.config.where.role == worker_role::attention;
  if (attends || terms.prefill_owns_kv)
    most.attended = attends ? terms.pool.slots : terms.pool.own_slots, most.rows = terms.rows;
  if (st.config.program)
    most.draws = terms.rows, most.vocabulary = st.config.program->spec.vocabulary;
  st.device->prepare_works(most);
  if (!st.device->on_host()) st.carries = st.config.engine->make_device("host/links");
  if (attends && st.device->on_host()) st.watch = std::make_shared<gpu::qkv_watch>();
}

/// Is there a cache of the epoch's part? Else there is an empty one afterwards.
bool keep_cache(worker_state& st, worker_epoch& at) {
  const auto& terms = st.config.terms;
  const auto& pool = at.order.pool;
  at.stores = scheduler::part_of_member(terms.kv_heads, pool.shards, at.order.number,
                                        pool.whole_requests, pool.slots);
  drop_caches(st); // before the next one takes its memory
  if (st.caches.contains(at.stores)) return true;
  st.caches.emplace(at.stores,
                    std::make_shared<gpu::kv_cache>(*st.device, terms.layers, pool.slots,
                                                    at.stores.heads, terms.head_dim, terms.kv));
  return false;
}

/// What this seat serves in the epoch.
std::vector<stream_id> streams_of(const worker_epoch& at) {
  std::vector<stream_id> result;
  for (const auto& place : at.order.streams)
    if (place.replica == at.order.number) result.push_back(place.stream);
  return result;
}

/// Remembers a part of the epoch.
template <class Handle> Handle keep(worker_epoch& at, Handle x) {
  at.parts.push_back(caf::actor_cast<caf::strong_actor_ptr>(x));
  return x;
}

gpu_executor_actor make_executor(worker_ptr self, worker_epoch& at,
                                 const std::shared_ptr<gpu::device>& device) {
  return at.executors.emplace_back(
      self->spawn(gpu_executor, device, self->state.config.on_failed_work));
}

attention_shard_actor make_shard(worker_ptr self, worker_epoch& at) {
  auto& st = self->state;
  const auto& terms = st.config.terms;
  const auto& pool = at.order.pool;
  shard_config c;
  c.seat = at.order.number;
  c.whole_requests = pool.whole_requests;
  c.parity = at.stores.parity;
  c.parity_frame_bytes = pool.parity_frame_bytes;
  if (pool.member_frame_bytes > 0) c.member_links = member_links_of(st, at);
  c.group = terms.group;
  c.scale = terms.scale;
  c.wire = terms.wire;
  c.device = st.device;
  c.cache = st.caches.at(at.stores);
  c.links = links_made(at);
  c.metrics = st.config.metrics;
  c.meter = st.meter;
  c.watch = st.watch;
  std::map<stream_id, uint32_t> places;
  for (const auto& place : at.order.streams) places[place.stream] = place.replica;
  c.replica_of = [places](stream_id id) { return places.at(id); };
  auto runs = make_executor(self, at, st.device);
  return keep(at, self->spawn(attention_shard, std::move(c), std::move(runs)));
}

/// Lends the KV that it has in the epoch that goes on serving.
kv_source_actor make_lender(worker_ptr self, worker_epoch& at) {
  auto& st = self->state;
  const auto& before = st.epochs.at(at.order.beside);
  kv_source_config c;
  c.seat = at.order.lender;
  c.shards = static_cast<uint32_t>(at.order.shards.size());
  c.whole_requests = at.order.pool.whole_requests;
  c.device = st.device;
  c.cache = st.caches.at(before.stores);
  c.may_step = gaps_of(st.watch);
  c.links = [links = at.lends](const net::link_key& key) { return links.at(key); };
  auto runs = at.executors.empty() ? make_executor(self, at, st.device) : at.executors.front();
  return keep(at, self->spawn(kv_source, std::move(c), std::move(runs)));
}

/// The ranks behind the first one (L-M03).
void add_ranks(worker_ptr self, worker_epoch& at, replica_config& c) {
  auto& st = self->state;
  for (size_t r = 0; r < st.other_devices.size(); ++r)
    c.others.push_back({st.other_devices[r], st.config.other_weights.at(r),
                        make_executor(self, at, st.other_devices[r])});
  c.decode_rank_bytes = st.config.terms.decode_rank_bytes;
  c.prefill_rank_bytes = st.config.terms.prefill_rank_bytes;
}

model_replica_actor make_replica(worker_ptr self, worker_epoch& at) {
  auto& st = self->state;
  const auto& pool = at.order.pool;
  replica_config c;
  c.seat = at.order.number;
  c.shards = pool.shards;
  c.whole_requests = pool.whole_requests;
  if (at.order.shards.size() > c.shards) c.parity_frame_bytes = pool.parity_frame_bytes;
  c.wire = st.config.terms.wire;
  c.kv = st.config.terms.kv;
  c.device = st.device;
  c.program = st.config.program;
  c.weights = st.config.weights;
  c.links = links_made(at);
  c.metrics = st.config.metrics;
  c.meter = st.meter;
  add_ranks(self, at, c);
  make_ready(c, at.order.epoch, streams_of(at));
  auto runs = make_executor(self, at, st.device);
  return keep(at, self->spawn(model_replica, std::move(c), std::move(runs)));
}

/// A prefill worker with KV of its own, which starts empty.
void make_seat(worker_ptr self, worker_epoch& at, epoch_ready& answer) {
  auto& st = self->state;
  const auto& terms = st.config.terms;
  const auto& pool = at.order.pool;
  prefill_seat_config c;
  c.seat = at.order.number;
  c.epoch = at.order.epoch;
  c.streams = streams_of(at);
  c.shards = pool.shards;
  c.whole_requests = pool.whole_requests;
  c.wire = terms.wire;
  c.kv = terms.kv;
  c.slots = pool.own_slots;
  c.frame_bytes = pool.own_frame_bytes;
  c.compute = st.device;
  c.memory = make_device(st.config, st.device->name() + "-kv");
  c.program = st.config.program;
  c.weights = st.config.weights;
  c.links = links_made(at);
  c.meter = st.meter;
  c.on_failed_work = st.config.on_failed_work;
  auto seat = make_prefill_seat(&*self, c);
  at.executors = std::move(seat.executors);
  answer.replica = keep(at, seat.replica);
  answer.shard = keep(at, seat.kv.shard);
  answer.source = keep(at, seat.kv.source);
}

/// Streams of the device that this seat may use at once in an epoch.
size_t device_streams(const worker_state& st, const worker_epoch& at) {
  const auto& pool = at.order.pool;
  if (st.config.where.role == worker_role::attention) // and what looks after the KV, and lends it
    return at.order.streams.size() + (pool.member_frame_bytes > 0 ? 3 : 1)
           + (at.order.lender == no_part ? 0 : at.order.shards.size());
  const auto own = st.config.terms.prefill_owns_kv && st.config.where.role == worker_role::prefill;
  return streams_of(at).size() * (own ? 2 : 1) + (own ? pool.shards : 0);
}

/// Of all open epochs.
size_t device_streams(const worker_state& st) {
  size_t sum = 0;
  for (const auto& [epoch, at] : st.epochs) sum += device_streams(st, at);
  return sum;
}

/// Spawns the actors of this seat's part.
epoch_ready make_parts(worker_ptr self, worker_epoch& at) {
  auto& st = self->state;
  epoch_ready answer;
  const auto role = st.config.where.role;
  if (role == worker_role::attention) {
    if (at.order.number != no_part) {
      answer.kept = keep_cache(st, at);
      connect(st, at);
      answer.shard = make_shard(self, at);
    } else {
      connect(st, at);
    }
    if (at.order.lender != no_part) answer.lender = make_lender(self, at);
  } else {
    connect(st, at);
    if (role == worker_role::prefill && st.config.terms.prefill_owns_kv)
      make_seat(self, at, answer);
    else
      answer.replica = make_replica(self, at);
  }
  for (const auto& part : at.parts) self->monitor(caf::actor_cast<caf::actor_addr>(part));
  return answer;
}

/// From now on so many streams can be made at once, on the devices of all ranks.
void prepare_streams(const worker_state& st) {
  const auto count = [&, own = device_streams(st)](uint32_t rank) {
    return st.config.streams_on_device ? st.config.streams_on_device(rank) * st.epochs.size() : own;
  };
  st.device->prepare_streams(count(0));
  for (uint32_t r = 0; r < st.other_devices.size(); ++r)
    st.other_devices[r]->prepare_streams(count(r + 1));
}

/// Nothing of the epochs before runs any more, but for the one that it is opened beside.
void open_epoch(worker_ptr self) {
  auto& st = self->state;
  auto next = std::move(*st.next);
  st.next.reset();
  const auto name = scheduler::to_string(st.config.where);
  const auto epoch = next.order.epoch;
  try {
    failpoint_or_throw(failpoint::worker_epoch_open);
    if (next.order.beside != 0 && !st.epochs.contains(next.order.beside)
        && next.order.lender != no_part)
      throw std::runtime_error{"the epoch whose KV it lends is over"};
    auto& at = st.epochs[epoch];
    at.order = std::move(next.order);
    if (!st.device) open_device(st, name);
    prepare_streams(st);
    auto answer = make_parts(self, at);
    spdlog::info("epoch open seat={} epoch={} number={} links={} kept={}", name, epoch,
                 at.order.number == no_part ? "none" : std::to_string(at.order.number),
                 at.links.size() + at.lends.size(), answer.kept);
    next.promise.deliver(std::move(answer));
  } catch (const std::exception& e) {
    spdlog::error("cannot open epoch seat={} epoch={} reason=\"{}\"", name, epoch, e.what());
    end_epoch(self, epoch);
    next.promise.deliver(caf::make_error(ec::links_failed, std::string{e.what()}));
  }
}

caf::result<epoch_ready> on_open(worker_ptr self, const epoch_open& x) {
  auto& st = self->state;
  end_epochs(self, x.beside);
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
    for (const auto& [epoch, at] : st.epochs) st.config.port.close(epoch);
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
  end_epochs(self);
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
    const auto is_ours = [&](const auto& open) {
      return std::ranges::any_of(open.second.parts, [&](const auto& part) {
        return caf::actor_cast<caf::actor_addr>(part) == down.source;
      });
    };
    if (std::ranges::none_of(st.epochs, is_ours)) return;
    end(self, "its part of the pipeline failed: " + explain(self->system(), down.reason), true);
  });
  self->set_exit_handler(
      [self](const caf::exit_msg& x) { end(self, explain(self->system(), x.reason), false); });
  return {
      [self](const epoch_open& x) { return on_open(self, x); },
      [self](const epoch_close& x) {
        auto& st = self->state;
        end_epoch(self, x.epoch);
        if (x.settled) drop_caches(st);
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
