#include "actors/device/prefill_seat.hpp"

#include "actors/device/attention_shard.hpp"
#include "actors/device/gpu_executor.hpp"
#include "actors/protocol/kv.hpp"

namespace lamella::actors {

namespace {

replica_config replica_of(const prefill_seat_config& config,
                          const std::shared_ptr<net::fabric>& inside) {
  replica_config c;
  c.seat = config.seat;
  c.wire = config.wire;
  c.device = config.compute;
  c.program = config.program;
  c.weights = config.weights;
  c.meter = config.meter;
  c.links = [inside](const net::link_key& key) { return inside->replica_end(key); };
  return c;
}

shard_config shard_of(const prefill_seat_config& config,
                      const std::shared_ptr<net::fabric>& inside) {
  const auto& spec = config.program->spec;
  shard_config c;
  c.group = spec.group();
  c.scale = spec.attention_scale();
  c.wire = config.wire;
  c.device = config.memory;
  c.cache = std::make_shared<gpu::kv_cache>(*c.device, spec.layers, config.slots, spec.kv_heads,
                                            spec.head_dim, config.kv);
  c.links = [inside](const net::link_key& key) { return inside->shard_end(key); };
  c.replicas_of = [seat = config.seat](stream_id) { return std::vector{seat}; };
  c.hand_over =
      std::make_shared<gpu::kv_hand_over>(*c.device, spec.layers, config.layout.members());
  return c;
}

} // namespace

prefill_seat make_prefill_seat(caf::local_actor* parent, const prefill_seat_config& config) {
  const auto inside = std::make_shared<net::fabric>(
      [bytes = config.frame_bytes](uint32_t) { return bytes; },
      [device = config.compute](uint32_t) -> gpu::device& { return *device; },
      [device = config.memory](uint32_t) -> gpu::device& { return *device; });
  auto shard = shard_of(config, inside);
  kv_source_config source;
  source.seat = config.seat;
  source.shards = config.layout.members();
  source.layout = config.layout;
  source.device = config.memory;
  source.cache = shard.cache;
  source.hand_over = shard.hand_over;
  source.links = config.links;
  for (const auto id : config.streams)
    for (uint32_t s = 0; s < config.layout.members(); ++s)
      config.links({config.epoch, static_cast<uint32_t>(id), config.seat, s});
  auto replica = replica_of(config, inside);
  make_ready(replica, config.epoch, config.streams);
  prefill_seat x;
  x.compute = parent->spawn(gpu_executor, config.compute, config.on_failed_work);
  x.memory = parent->spawn(gpu_executor, config.memory, config.on_failed_work);
  x.parts.replica = parent->spawn(model_replica, std::move(replica), x.compute);
  x.parts.shard = parent->spawn(attention_shard, std::move(shard), x.memory);
  x.parts.source = parent->spawn(kv_source, std::move(source), x.memory);
  return x;
}

} // namespace lamella::actors
