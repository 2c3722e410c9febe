#include "actors/worker/worker_parts.hpp"

#include "actors/device/attention_shard.hpp"
#include "actors/device/gpu_executor.hpp"
#include "actors/device/kv_source.hpp"
#include "actors/device/model_replica.hpp"
#include "actors/device/prefill_seat.hpp"
#include "actors/machine/free_memory.hpp"
#include "actors/protocol/epochs.hpp"
#include "actors/protocol/kv.hpp"
#include "actors/worker/worker_links.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace lamella::actors {

namespace {

using scheduler::worker_role;

std::shared_ptr<gpu::device> make_device(const worker_config& config, const std::string& name,
                                         uint32_t rank = 0) {
  return config.make_device ? config.make_device(name, rank) : config.engine->make_device(name);
}

/// Is there a cache of the epoch's part? Else there is an empty one afterwards.
bool keep_cache(worker_state& st, worker_epoch& at) {
  const auto& terms = st.config.terms;
  const auto& pool = at.order.pool;
  at.stores = pool.layout.part(terms.kv_heads, at.order.number);
  drop_caches(st); // before the next one takes its memory
  if (st.caches.contains(at.stores)) return true;
  st.caches.emplace(at.stores,
                    std::make_shared<gpu::kv_cache>(*st.device, terms.layers, at.stores.slots,
                                                    at.stores.heads, terms.head_dim, terms.kv));
  return false;
}

/// Memory that its caches can still take: devices have given it to them at once, hosts give pages
/// when these are written.
uint64_t free_bytes(const worker_state& st) {
  if (!st.device->on_host()) return scheduler::memory_room::no_limit;
  return st.config.free_memory ? st.config.free_memory() : free_memory();
}

/// What this seat serves in the epoch.
std::vector<stream_id> streams_of(const worker_epoch& at) {
  std::vector<stream_id> result;
  for (const auto& place : at.order.streams)
    if (place.replica == at.order.number) result.push_back(place.stream);
  return result;
}

/// The same, but only prompts' streams, or only batches'.
std::vector<stream_id> streams_of(const worker_epoch& at, bool prompts) {
  auto result = streams_of(at);
  std::erase_if(result, [&](stream_id id) {
    return (static_cast<uint32_t>(id) >= scheduler::prefill_streams) != prompts;
  });
  return result;
}

/// The replicas of a stream, by turn.
std::function<std::vector<uint32_t>(stream_id)> replicas_of(const worker_epoch& at) {
  return [streams = at.order.streams](stream_id id) { return scheduler::places_of(streams, id); };
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
  c.table = at.stores.table;
  c.parity = at.stores.parity;
  c.parity_frame_bytes = pool.parity_frame_bytes;
  if (pool.member_frame_bytes > 0) c.member_links = member_links_of(st, at);
  c.group = terms.group;
  c.scale = terms.scale;
  c.wire = terms.wire;
  c.mini_batches = terms.mini_batches;
  c.device = st.device;
  c.cache = st.caches.at(at.stores);
  c.links = links_made(at);
  c.metrics = st.config.metrics;
  c.meter = st.meter;
  c.watch = st.watch;
  c.replicas_of = replicas_of(at);
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
  c.layout = at.order.pool.layout;
  c.device = st.device;
  c.cache = st.caches.at(before.stores);
  c.may_step = gaps_of(st.watch);
  c.links = [links = at.lends](const net::link_key& key) { return links.at(key); };
  at.lends_on = self->spawn(gpu_executor, st.device, st.config.on_failed_work);
  at.lender = self->spawn(kv_source, std::move(c), at.lends_on);
  self->monitor(at.lender);
  return at.lender;
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

/// `runs`: null: an executor of its own.
model_replica_actor make_replica(worker_ptr self, worker_epoch& at,
                                 const std::vector<stream_id>& streams,
                                 gpu_executor_actor runs = {}) {
  auto& st = self->state;
  const auto& pool = at.order.pool;
  replica_config c;
  c.seat = at.order.number;
  c.layout = pool.layout;
  c.parity_frame_bytes = pool.parity_frame_bytes;
  c.wire = st.config.terms.wire;
  c.kv = st.config.terms.kv;
  c.mini_batches = st.config.terms.mini_batches;
  c.device = st.device;
  c.program = st.config.program;
  c.weights = st.config.weights;
  c.links = links_made(at);
  c.replicas_of = replicas_of(at);
  c.metrics = st.config.metrics;
  c.meter = st.meter;
  add_ranks(self, at, c);
  make_ready(c, at.order.epoch, streams);
  if (!runs) runs = make_executor(self, at, st.device);
  return keep(at, self->spawn(model_replica, std::move(c), std::move(runs)));
}

/// A prefill worker with KV of its own, which starts empty. What decodes there, and what has its
/// beginning at the pool's shards, attends at these, with a replica beside that of the prompts.
void make_seat(worker_ptr self, worker_epoch& at, epoch_ready& answer) {
  auto& st = self->state;
  const auto& terms = st.config.terms;
  const auto& pool = at.order.pool;
  prefill_seat_config c;
  c.seat = at.order.number;
  c.epoch = at.order.epoch;
  c.streams = streams_of(at, true);
  c.layout = pool.layout;
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
  at.executors = {seat.compute, seat.memory};
  keep(at, seat.parts.replica);
  keep(at, seat.parts.shard);
  keep(at, seat.parts.source);
  answer.own = std::move(seat.parts);
  answer.replica = make_replica(self, at, streams_of(at, false), seat.compute);
}

/// Streams of the device that this seat may use at once in an epoch.
size_t device_streams(const worker_state& st, const worker_epoch& at) {
  const auto& pool = at.order.pool;
  std::set<stream_id> streams;
  for (const auto& place : at.order.streams) streams.insert(place.stream);
  if (st.config.where.role == worker_role::attention) // and what looks after the KV, and lends it
    return streams.size() + (pool.member_frame_bytes > 0 ? 3 : 1)
           + (at.order.lender == no_part ? 0 : at.order.shards.size());
  const auto own = st.config.terms.prefill_owns_kv && st.config.where.role == worker_role::prefill;
  const auto all = streams_of(at).size();
  return own ? all + streams_of(at, true).size() + pool.layout.members() : all;
}

} // namespace

void drop_caches(worker_state& st) {
  std::erase_if(st.caches, [&](const auto& x) {
    return std::ranges::none_of(st.epochs,
                                [&](const auto& open) { return open.second.stores == x.first; });
  });
}

void open_device(worker_state& st, const std::string& name) {
  const auto& terms = st.config.terms;
  st.other_devices.clear(); // of an attempt that failed
  for (uint32_t r = 1; r < terms.ranks; ++r)
    st.other_devices.push_back(make_device(st.config, fmt::format("host/{}.{}", name, r), r));
  st.device = make_device(st.config, "host/" + name);
  gpu::work_sizes most;
  const bool attends = st.config.where.role == worker_role::attention;
  if (attends || terms.prefill_owns_kv)
    most.attended = attends ? terms.pool.layout.largest() : terms.pool.own_slots,
    most.rows = terms.rows;
  if (st.config.program)
    most.draws = terms.rows, most.vocabulary = st.config.program->spec.vocabulary;
  st.device->prepare_works(most);
  if (!st.device->on_host()) st.carries = st.config.engine->make_device("host/links");
  if (attends && st.device->on_host()) st.watch = std::make_shared<gpu::qkv_watch>();
}

size_t device_streams(const worker_state& st) {
  size_t sum = 0;
  for (const auto& [epoch, at] : st.epochs) sum += device_streams(st, at);
  return sum;
}

epoch_ready make_parts(worker_ptr self, worker_epoch& at) {
  auto& st = self->state;
  epoch_ready answer;
  const auto role = st.config.where.role;
  if (role == worker_role::attention) {
    if (at.order.number != no_part) {
      answer.kept = keep_cache(st, at);
      connect(st, at);
      answer.shard = make_shard(self, at);
      answer.free_bytes = free_bytes(st);
    } else {
      connect(st, at);
    }
    if (at.order.lender != no_part) answer.lender = make_lender(self, at);
  } else {
    connect(st, at);
    if (role == worker_role::prefill && st.config.terms.prefill_owns_kv)
      make_seat(self, at, answer);
    else
      answer.replica = make_replica(self, at, streams_of(at));
  }
  for (const auto& part : at.parts) self->monitor(caf::actor_cast<caf::actor_addr>(part));
  return answer;
}

} // namespace lamella::actors
