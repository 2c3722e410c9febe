#include "actors/node/pipeline.hpp"

#include "actors/decode/batch.hpp"
#include "actors/decode/global_scheduler.hpp"
#include "actors/decode/mask_maker.hpp"
#include "actors/device/attention_shard.hpp"
#include "actors/device/gpu_executor.hpp"
#include "actors/device/model_replica.hpp"
#include "actors/device/prefill_seat.hpp"
#include "actors/kv/kv_allocator.hpp"
#include "actors/kv/parity_keeper.hpp"
#include "actors/machine/sizing.hpp"
#include "actors/node/canary.hpp"
#include "actors/prefill/prefill_worker.hpp"
#include "scheduler/head_partition.hpp"

#include <map>

#include <unistd.h>

namespace lamella::actors {

namespace {

/// Slots reserved beyond a prompt, and each time a sequence runs short.
constexpr uint32_t window_slots = 32;

/// The canary's own sequence: no request gets this number.
constexpr auto canary_sequence = scheduler::sequence_of(request_id{(uint64_t{1} << 47) - 1}, 0);

/// Holds the slots whose parity is looked after.
constexpr auto parity_pin = scheduler::sequence_of(request_id{(uint64_t{1} << 47) - 2}, 0);

/// Builds one pipeline; a class only so that its steps can share what they make.
class builder {
public:
  builder(caf::event_based_actor* parent, const pipeline_parts& parts, uint64_t epoch)
      : parent_{parent}, parts_{parts}, options_{parts.workers
                                                     ? at_sizes(parts.options, parts.workers->sizes)
                                                     : parts.options},
        slots_{parts.workers ? parts.workers->slots : parts.slots}, spec_{parts.program->spec},
        epoch_{epoch}, shards_count_{options_.pools.attention.members},
        replicas_count_{options_.pools.model.members}, batches_count_{options_.batching.batches_for(
                                                           replicas_count_)},
        by_request_{options_.pools.attention.partition == config::partition::requests} {
    const auto shape = shape_of(options_);
    for (const auto& x : parts_.workers
                             ? parts_.workers->streams
                             : scheduler::place_streams(shape, shape.replicas, shape.prefill_seats))
      places_[x.stream] = x.replica;
  }

  pipeline run() {
    if (parts_.workers) {
      epoch_ = parts_.workers->epoch;
      replicas_ = parts_.workers->replicas;
      shards_ = parts_.workers->shards;
      empty_ = parts_.workers->empty;
      own_kv_ = parts_.workers->own_kv;
    } else {
      make_links();
      make_shards();
      make_replicas();
      if (options_.pools.prefill_owns_kv()) make_prefill_seats();
    }
    make_allocator();
    make_parity_keeper();
    make_scheduler();
    masks_ = keep(parts_.own_threads ? parent_->spawn<caf::detached>(mask_maker)
                                     : parent_->spawn(mask_maker));
    make_batches();
    make_prefill_workers();
    publish();
    return std::move(result_);
  }

private:
  template <class Handle> Handle keep(Handle x, const char* role = "model") {
    result_.actors.push_back(caf::actor_cast<caf::strong_actor_ptr>(x));
    const auto* actor = caf::actor_cast<caf::abstract_actor*>(result_.actors.back()); // of here
    result_.facts.push_back({static_cast<const caf::local_actor*>(actor)->name(), role});
    return x;
  }

  void announce(const std::string& role, uint32_t index, const std::string& device) {
    const auto name = role + "-" + std::to_string(index);
    worker_info info;
    info.name = name;
    info.role = role;
    info.seat = role + "/" + std::to_string(index);
    info.state = "live";
    if (role != "prefill")
      info.part = (role == "model" ? "replica " : "shard ") + std::to_string(index);
    info.device = device;
    info.incarnation = static_cast<uint32_t>(epoch_);
    info.host = host_name();
    info.pid = static_cast<uint32_t>(getpid());
    parent_->send(parts_.members, info);
    parts_.metrics->set_worker_state(role, name, net::worker_condition::live);
  }

  void make_links() {
    const auto decode = frame_bytes(options_, spec_, 0);
    const auto prefill = frame_bytes(options_, spec_, scheduler::prefill_streams);
    links_ = std::make_shared<net::fabric>(
        [=](uint32_t stream) { return stream >= scheduler::prefill_streams ? prefill : decode; },
        [own = model_devices_](uint32_t seat) -> gpu::device& { return *own->at(seat); },
        [own = attention_devices_](uint32_t seat) -> gpu::device& { return *own->at(seat); });
  }

  void make_shards() {
    for (uint32_t i = 0; i < shards_count_; ++i) {
      shard_config c;
      c.device = parts_.devices->get(options_.pools.attention.device,
                                     "host/attention-" + std::to_string(i));
      attention_devices_->push_back(c.device);
      c.device->prepare_streams(streams_on(options_, options_.pools.attention.device));
      c.device->prepare_works({.attended = slots_, .rows = rows_most(options_)});
      c.seat = i;
      c.whole_requests = by_request_;
      c.group = spec_.group();
      c.scale = spec_.attention_scale();
      c.wire = half_type_of(options_.numerics.wire);
      const auto heads = by_request_ ? spec_.kv_heads
                                     : scheduler::heads_of(spec_.kv_heads, shards_count_, i).count;
      c.cache = std::make_shared<gpu::kv_cache>(*c.device, spec_.layers, slots_, heads,
                                                spec_.head_dim, half_type_of(options_.kv.dtype));
      c.links = [links = links_](const net::link_key& key) { return links->shard_end(key); };
      c.metrics = parts_.metrics;
      c.replica_of = [places = places_](stream_id id) { return places.at(id); };
      const auto name = c.device->name();
      empty_.push_back(i);
      auto runs =
          keep(parent_->spawn(gpu_executor, c.device, failed_work::ends_executor), "attention");
      shards_.push_back(keep(parent_->spawn(attention_shard, std::move(c), runs), "attention"));
      announce("attention", i, name);
    }
  }

  void make_replicas() {
    for (uint32_t i = 0; i < replicas_count_; ++i) {
      replica_config c;
      c.seat = i;
      c.shards = shards_count_;
      c.whole_requests = by_request_;
      c.wire = half_type_of(options_.numerics.wire), c.kv = half_type_of(options_.kv.dtype);
      c.device =
          parts_.devices->get(options_.pools.model.device, "host/model-" + std::to_string(i));
      model_devices_->push_back(c.device);
      c.device->prepare_streams(streams_on(options_, options_.pools.model.device));
      c.device->prepare_works(
          {.draws = options_.batching.max_batch, .vocabulary = spec_.vocabulary});
      c.program = parts_.program;
      c.weights = parts_.weights;
      c.links = [links = links_](const net::link_key& key) { return links->replica_end(key); };
      c.metrics = parts_.metrics;
      add_ranks(c);
      make_ready(c, epoch_, streams_of(i));
      std::vector<std::shared_ptr<gpu::device>> others;
      for (const auto& rank : c.others) others.push_back(rank.device);
      const auto name = names_of(*c.device, others);
      auto runs = keep(parent_->spawn(gpu_executor, c.device, failed_work::ends_executor));
      replicas_.push_back(keep(parent_->spawn(model_replica, std::move(c), runs)));
      announce("model", i, name);
    }
  }

  std::vector<stream_id> streams_of(uint32_t replica) const {
    std::vector<stream_id> result;
    for (const auto& [stream, place] : places_)
      if (place == replica) result.push_back(stream);
    return result;
  }

  /// The ranks behind the first one (L-M03).
  void add_ranks(replica_config& c) {
    for (uint32_t r = 1; r <= parts_.other_weights.size(); ++r) {
      const auto name = "host/model-" + std::to_string(c.seat) + "." + std::to_string(r);
      const auto option = config::device_of_rank(options_.pools.model.device, r);
      auto device = parts_.devices->get(option, name);
      device->prepare_streams(streams_on(options_, option));
      auto runs = keep(parent_->spawn(gpu_executor, device, failed_work::ends_executor));
      c.others.push_back({std::move(device), parts_.other_weights[r - 1], std::move(runs)});
    }
    c.decode_rank_bytes = rank_frame_bytes(options_, spec_, 0);
    c.prefill_rank_bytes = rank_frame_bytes(options_, spec_, scheduler::prefill_streams);
  }

  /// Prefill workers with KV of their own: seats behind the model replicas, linked to the shards by
  /// the device of their KV.
  void make_prefill_seats() {
    own_kv_.resize(replicas_count_);
    for (uint32_t i = 0; i < options_.pools.prefill.members; ++i) {
      prefill_seat_config c;
      c.seat = replicas_count_ + i;
      c.epoch = epoch_;
      c.streams = streams_of(c.seat);
      c.shards = shards_count_;
      c.whole_requests = by_request_;
      c.wire = half_type_of(options_.numerics.wire);
      c.kv = half_type_of(options_.kv.dtype);
      c.slots = prefill_slots(options_, spec_, slots_);
      c.frame_bytes = own_frame_bytes(options_, spec_);
      const auto name = "host/prefill-" + std::to_string(i);
      c.compute = parts_.devices->get(options_.pools.model.device, name);
      c.memory = parts_.devices->get(options_.pools.model.device, name + "-kv");
      c.program = parts_.program;
      c.weights = parts_.weights;
      c.links = [links = links_](const net::link_key& key) { return links->replica_end(key); };
      model_devices_->push_back(c.memory);
      auto seat = make_prefill_seat(parent_, c);
      for (const auto& x : seat.executors) keep(x, "prefill");
      replicas_.push_back(keep(seat.replica, "prefill"));
      own_kv_.push_back({keep(seat.kv.shard, "prefill"), keep(seat.kv.source, "prefill")});
    }
  }

  /// Of a replica in another process only its seat is known here.
  std::string device_of_replica(uint32_t seat) const {
    return seat < model_devices_->size() ? model_devices_->at(seat)->name()
                                         : "model/" + std::to_string(seat);
  }

  void make_allocator() {
    auto& kept = *parts_.kept;
    if (!*kept.lives) spawn_allocator(kept);
    allocator_ = kept.handle;
    parent_->send(allocator_,
                  kv_adopt{epoch_, shards_, empty_, parts_.began.rebuilt,
                           parts_.began.parity_is_new, tables(), parts_.planned, parts_.moved});
  }

  kv_tables tables() const {
    kv_tables x;
    const auto own = by_request_ ? shards_count_ : 1;
    for (uint32_t i = 0; i < shards_count_; ++i)
      (i < own ? x.names : x.sharers).push_back("attention-" + std::to_string(i));
    if (options_.pools.attention.parity) x.parity = "attention-" + std::to_string(shards_count_);
    x.slots = slots_;
    return x;
  }

  /// Where this epoch has a member for the parity.
  void make_parity_keeper() {
    if (shards_.size() <= shards_count_) return;
    parity_keeper_config c;
    c.epoch = epoch_;
    c.members = shards_;
    c.allocator = allocator_;
    c.pin = parity_pin;
    c.slot_bytes = slot_bytes(options_, spec_);
    c.scrub_bytes_per_second = options_.recovery.scrub_bytes;
    c.rebuild_percent = options_.recovery.parity_percent;
    c.metrics = parts_.metrics;
    c.digests = parts_.digests;
    c.prompts_lack_it = options_.pools.prefill_owns_kv();
    keep(parent_->spawn(parity_keeper, std::move(c)), "attention");
  }

  /// Those of whole prompts, then those of suffixes.
  uint32_t prefill_streams_count() const {
    return options_.pools.prefill.members + suffix_streams(options_);
  }

  void spawn_allocator(kept_allocator& kept) {
    kv_allocator_config c;
    auto all = tables();
    c.tables = std::move(all.names);
    c.sharers = std::move(all.sharers);
    c.parity = std::move(all.parity);
    c.slots = slots_;
    c.whole_requests = by_request_;
    c.prefix_time = options_.kv.prefix_cache;
    // A suffix is computed concurrently with decoding, by replicas that could decode meanwhile.
    if (suffix_streams(options_) > 0) c.prefix_least_percent = 50;
    c.metrics = parts_.metrics;
    kept.handle = parent_->spawn(kv_allocator, std::move(c));
    *kept.lives = true;
    caf::actor_cast<caf::actor>(kept.handle)->attach_functor([lives = kept.lives] {
      *lives = false;
    });
  }

  void make_scheduler() {
    global_scheduler_config c;
    c.limits = parts_.base.rules.queue;
    c.batches = batches_count_;
    c.seats_per_batch = options_.batching.max_batch;
    c.prefill_workers = options_.pools.prefill.members;
    c.suffix_workers = suffix_streams(options_);
    c.window_slots = window_slots;
    c.slots = slots_;
    c.epoch = epoch_;
    c.metrics = parts_.metrics;
    c.health = parts_.health;
    c.suspects = parts_.suspects;
    for (uint32_t j = 0; j < batches_count_; ++j)
      c.replica_of_batch.push_back(places_.at(stream_id{j}));
    for (uint32_t i = 0; i < prefill_streams_count(); ++i)
      c.replica_of_prefill.push_back(places_.at(stream_id{scheduler::prefill_streams + i}));
    scheduler_ = keep(parent_->spawn(global_scheduler, std::move(c), allocator_));
  }

  iteration_target target_of(uint32_t stream) const {
    iteration_target t;
    t.stream = stream_id{stream};
    t.epoch = epoch_;
    t.replica = replicas_.at(places_.at(t.stream));
    t.shards = shards_;
    t.allocator = allocator_;
    t.metrics = parts_.metrics;
    t.beats = std::shared_ptr<pulse>{parts_.health, &parts_.health->beats};
    t.firsts = stream < scheduler::prefill_streams ? parts_.first_decodes : parts_.first_prefills;
    return t;
  }

  void make_prefill_workers() {
    const auto& pool = options_.pools.prefill;
    std::map<uint32_t, prefill_worker_actor> owners; // by replica: its KV has one
    for (uint32_t i = 0; i < prefill_streams_count(); ++i) {
      prefill_worker_config c{target_of(scheduler::prefill_streams + i),
                              options_.batching.prefill_chunk_tokens};
      c.rebuild_percent = options_.recovery.rebuild_percent;
      c.token_bytes = slot_bytes(options_, spec_) * (by_request_ ? 1 : shards_count_);
      c.scheduler = scheduler_;
      if (bounds_decoding()) c.decode_beside = batches_;
      const auto replica = places_.at(c.target.stream);
      const auto own = replica < own_kv_.size() ? own_kv_[replica] : prefill_kv{};
      if (own.source) {
        c.target.shards = {own.shard};
        c.own = prefill_own_kv{own.source,
                               {shards_.begin(), shards_.begin() + shards_count_},
                               by_request_,
                               prefill_slots(options_, spec_, slots_),
                               pool.serialize_below_tokens,
                               options_.pools.attention.parity};
      }
      auto& owner = owners[replica];
      if (!owner || !own.source)
        owner = keep(parent_->spawn(prefill_worker, std::move(c)), "prefill");
      prefill_workers_.push_back(owner);
      if (i < pool.members && pool.placement == config::placement::in_process
          && !(parts_.workers && pool.has_seats()))
        announce("prefill", i, device_of_replica(replica));
    }
  }

  /// Whether batches rest while lost KV is computed again: not where that costs them nothing, nor
  /// where only some requests have lost theirs.
  bool bounds_decoding() const {
    return options_.pools.prefill_beside_decode() && !by_request_
           && options_.recovery.decode_percent < 100;
  }

  void make_batches() {
    const auto share = scheduler::share_of_batch(options_.recovery.decode_percent, batches_count_);
    for (uint32_t j = 0; j < batches_count_; ++j) {
      batches_.push_back(keep(parent_->spawn(
          batch, batch_config{target_of(j), scheduler_, window_slots, share, masks_})));
      parent_->send(scheduler_, batch_ready{stream_id{j}, batches_.back()});
    }
  }

  void publish() {
    auto server = std::make_shared<service>(parts_.base);
    server->scheduler = scheduler_;
    server->allocator = allocator_;
    server->prefill_workers = prefill_workers_;
    server->batches = batches_;
    server->masks = masks_;
    server->slots = slots_;
    server->window_slots = window_slots;
    server->epoch = epoch_;
    server->caches_prefixes = options_.kv.prefix_cache.count() > 0;
    server->pauses = std::shared_ptr<recovery_watch>{parts_.health, &parts_.health->pauses};
    result_.server = server;
    keep(parent_->spawn(canary, result_.server,
                        std::shared_ptr<pulse>{parts_.health, &parts_.health->beats},
                        canary_sequence));
  }

  caf::event_based_actor* parent_;
  const pipeline_parts& parts_;
  const config::settings options_; ///< with the pools as they are in this epoch
  uint32_t slots_;                 ///< per slot table
  const model::model_spec& spec_;
  uint64_t epoch_;
  uint32_t shards_count_, replicas_count_, batches_count_;
  bool by_request_;
  std::map<stream_id, uint32_t> places_; ///< replica of a stream
  std::shared_ptr<net::fabric> links_;
  /// By seat; shared with the links.
  using devices_of_pool = std::vector<std::shared_ptr<gpu::device>>;
  std::shared_ptr<devices_of_pool> model_devices_ = std::make_shared<devices_of_pool>();
  std::shared_ptr<devices_of_pool> attention_devices_ = std::make_shared<devices_of_pool>();
  std::vector<attention_shard_actor> shards_;
  std::vector<uint32_t> empty_; ///< shards without the KV of the epoch before
  std::vector<model_replica_actor> replicas_;
  std::vector<prefill_kv> own_kv_; ///< by replica; may be shorter
  kv_allocator_actor allocator_;
  global_scheduler_actor scheduler_;
  std::vector<prefill_worker_actor> prefill_workers_;
  std::vector<batch_actor> batches_;
  mask_maker_actor masks_;
  pipeline result_;
};

} // namespace

pipeline build_pipeline(caf::event_based_actor* parent, const pipeline_parts& parts,
                        uint64_t epoch) {
  return builder{parent, parts, epoch}.run();
}

} // namespace lamella::actors
