#include "actors/pipeline.hpp"

#include "actors/attention_shard.hpp"
#include "actors/batch.hpp"
#include "actors/canary.hpp"
#include "actors/global_scheduler.hpp"
#include "actors/gpu_executor.hpp"
#include "actors/kv_allocator.hpp"
#include "actors/model_replica.hpp"
#include "actors/prefill_worker.hpp"
#include "scheduler/head_partition.hpp"

namespace lamella::actors {

namespace {

/// Slots reserved beyond a prompt, and each time a sequence runs short.
constexpr uint32_t window_slots = 32;

/// The canary's own sequence: no request gets this number.
constexpr auto canary_sequence = scheduler::sequence_of(request_id{(uint64_t{1} << 47) - 1}, 0);

gpu::half_type type_of(config::number_type x) {
  return x == config::number_type::f32 ? gpu::half_type::f32 : gpu::half_type::f16;
}

/// Builds one pipeline; a class only so that its steps can share what they make.
class builder {
public:
  builder(caf::event_based_actor* parent, const pipeline_parts& parts, uint64_t epoch)
      : parent_{parent}, parts_{parts}, options_{parts.options}, spec_{parts.program->spec},
        epoch_{epoch}, shards_count_{options_.pools.attention.members},
        replicas_count_{options_.pools.model.members}, batches_count_{options_.batching.batches_for(
                                                           replicas_count_)},
        by_request_{options_.pools.attention.partition == config::partition::requests} {}

  pipeline run() {
    result_.members = keep(parent_->spawn(membership, epoch_));
    make_links();
    make_shards();
    make_replicas();
    make_allocator();
    make_scheduler();
    make_prefill_workers();
    make_batches();
    publish();
    return std::move(result_);
  }

private:
  template <class Handle> Handle keep(Handle x) {
    result_.actors.push_back(caf::actor_cast<caf::strong_actor_ptr>(x));
    return x;
  }

  void announce(const std::string& role, uint32_t index, const std::string& device) {
    const auto name = role + "-" + std::to_string(index);
    parent_->send(result_.members, worker_info{name, role, role + "/" + std::to_string(index),
                                               "live", device, static_cast<uint32_t>(epoch_)});
    parts_.numbers->set_worker_up(role, name, true);
  }

  gpu_executor_actor executor(const std::string& device) {
    return keep(parent_->spawn(gpu_executor,
                               std::shared_ptr<gpu::device>{parts_.engine->make_device(device)}));
  }

  /// Frames are as large as the stream's largest iteration.
  void make_links() {
    const auto chunk = options_.batching.prefill_chunk_tokens;
    const auto seats = options_.batching.max_batch;
    const auto row = size_t{std::max(spec_.heads, 2 * spec_.kv_heads)} * spec_.head_dim
                     * gpu::bytes_of(type_of(options_.numerics.wire))
                     / (by_request_ ? 1 : shards_count_);
    links_ = std::make_shared<net::fabric>([=](uint32_t stream) {
      return row * (stream >= scheduler::prefill_streams ? chunk : seats);
    });
  }

  uint32_t replica_of(uint32_t stream) const {
    return (stream >= scheduler::prefill_streams ? stream - scheduler::prefill_streams : stream)
           % replicas_count_;
  }

  void make_shards() {
    for (uint32_t i = 0; i < shards_count_; ++i) {
      const auto name = "host/attention-" + std::to_string(i);
      auto device = std::shared_ptr<gpu::device>{parts_.engine->make_device(name)};
      shard_config c;
      c.seat = i;
      c.whole_requests = by_request_;
      c.group = spec_.group();
      c.scale = spec_.attention_scale();
      c.wire = type_of(options_.numerics.wire);
      c.ops = &parts_.engine->ops();
      const auto heads = by_request_ ? spec_.kv_heads
                                     : scheduler::heads_of(spec_.kv_heads, shards_count_, i).count;
      c.cache = std::make_shared<gpu::kv_cache>(*device, spec_.layers, parts_.slots, heads,
                                                spec_.head_dim, type_of(options_.kv.dtype));
      c.links = links_;
      c.numbers = parts_.numbers;
      c.replica_of = [replicas = replicas_count_](stream_id id) {
        const auto s = static_cast<uint32_t>(id);
        return (s >= scheduler::prefill_streams ? s - scheduler::prefill_streams : s) % replicas;
      };
      auto runs = keep(parent_->spawn(gpu_executor, std::move(device)));
      shards_.push_back(keep(parent_->spawn(attention_shard, std::move(c), runs)));
      announce("attention", i, name);
    }
  }

  void make_replicas() {
    for (uint32_t i = 0; i < replicas_count_; ++i) {
      const auto name = "host/model-" + std::to_string(i);
      replica_config c;
      c.seat = i;
      c.shards = shards_count_;
      c.whole_requests = by_request_;
      c.wire = type_of(options_.numerics.wire);
      c.ops = &parts_.engine->ops();
      c.program = parts_.program;
      c.weights = parts_.weights;
      c.links = links_;
      c.numbers = parts_.numbers;
      replicas_.push_back(keep(parent_->spawn(model_replica, std::move(c), executor(name))));
      announce("model", i, name);
    }
  }

  void make_allocator() {
    kv_allocator_config c;
    const auto tables = by_request_ ? shards_count_ : 1;
    for (uint32_t i = 0; i < tables; ++i) c.tables.push_back("attention-" + std::to_string(i));
    c.slots = parts_.slots;
    c.shards = shards_;
    c.numbers = parts_.numbers;
    allocator_ = keep(parent_->spawn(kv_allocator, std::move(c)));
  }

  void make_scheduler() {
    global_scheduler_config c;
    c.limits = {options_.limits.queue_requests, options_.limits.queue_tokens};
    c.batches = batches_count_;
    c.seats_per_batch = options_.batching.max_batch;
    c.prefill_workers = options_.pools.prefill.members;
    c.window_slots = window_slots;
    c.slots = parts_.slots;
    c.numbers = parts_.numbers;
    c.health = parts_.health;
    scheduler_ = keep(parent_->spawn(global_scheduler, std::move(c), allocator_));
  }

  iteration_target target_of(uint32_t stream) const {
    iteration_target t;
    t.stream = stream_id{stream};
    t.epoch = epoch_;
    t.replica = replicas_[replica_of(stream)];
    t.shards = shards_;
    t.allocator = allocator_;
    t.numbers = parts_.numbers;
    t.beats = std::shared_ptr<pulse>{parts_.health, &parts_.health->beats};
    return t;
  }

  void make_prefill_workers() {
    for (uint32_t i = 0; i < options_.pools.prefill.members; ++i) {
      prefill_worker_config c{target_of(scheduler::prefill_streams + i),
                              options_.batching.prefill_chunk_tokens};
      prefill_workers_.push_back(keep(parent_->spawn(prefill_worker, std::move(c))));
      announce("prefill", i, "host/model-" + std::to_string(i % replicas_count_));
    }
  }

  void make_batches() {
    for (uint32_t j = 0; j < batches_count_; ++j)
      batches_.push_back(
          keep(parent_->spawn(batch, batch_config{target_of(j), scheduler_, window_slots})));
  }

  void publish() {
    auto server = std::make_shared<service>(parts_.base);
    server->scheduler = scheduler_;
    server->allocator = allocator_;
    server->prefill_workers = prefill_workers_;
    server->batches = batches_;
    server->slots = parts_.slots;
    server->window_slots = window_slots;
    server->epoch = epoch_;
    result_.server = server;
    keep(parent_->spawn(canary, result_.server,
                        std::shared_ptr<pulse>{parts_.health, &parts_.health->beats},
                        options_.health.iteration_max_age / 2, canary_sequence));
  }

  caf::event_based_actor* parent_;
  const pipeline_parts& parts_;
  const config::settings& options_;
  const model::model_spec& spec_;
  uint64_t epoch_;
  uint32_t shards_count_, replicas_count_, batches_count_;
  bool by_request_;
  std::shared_ptr<net::fabric> links_;
  std::vector<attention_shard_actor> shards_;
  std::vector<model_replica_actor> replicas_;
  kv_allocator_actor allocator_;
  global_scheduler_actor scheduler_;
  std::vector<prefill_worker_actor> prefill_workers_;
  std::vector<batch_actor> batches_;
  pipeline result_;
};

} // namespace

pipeline build_pipeline(caf::event_based_actor* parent, const pipeline_parts& parts,
                        uint64_t epoch) {
  return builder{parent, parts, epoch}.run();
}

} // namespace lamella::actors
