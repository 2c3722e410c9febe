#include "actors/node/pipeline.hpp"

#include "actors/decode/global_scheduler.hpp"
#include "actors/decode/mask_maker.hpp"
#include "actors/kv/kv_allocator.hpp"
#include "actors/kv/parity_keeper.hpp"
#include "actors/lane/lane.hpp"
#include "actors/machine/sizing.hpp"
#include "actors/node/canary.hpp"
#include "actors/protocol/batches.hpp"
#include "actors/protocol/epochs.hpp"
#include "actors/protocol/kv.hpp"
#include "actors/scaling/balancer.hpp"
#include "base/buggify.hpp"
#include "config/streams.hpp"
#include "scheduler/kv/near_tables.hpp"
#include "scheduler/limits.hpp"

#include <map>
#include <set>

namespace lamella::actors {

namespace {

namespace limits = scheduler::limits;

/// The canary's own sequence: no request gets this number.
constexpr auto canary_sequence = scheduler::sequence_of(request_id{(uint64_t{1} << 47) - 1}, 0);

/// Holds the slots of a cell whose parity is looked after.
sequence_id parity_pin(uint32_t cell) {
  return scheduler::sequence_of(request_id{(uint64_t{1} << 47) - 2}, cell);
}

/// Builds one pipeline; a class only so that its steps can share what they make.
class builder {
public:
  builder(caf::event_based_actor* parent, const pipeline_parts& parts)
      : parent_{parent}, parts_{parts}, options_{at_sizes(*parts.options.now(),
                                                          parts.workers->sizes)},
        layout_{parts.workers->layout}, spec_{parts.program->spec}, epoch_{parts.workers->epoch},
        shards_count_{layout_.members()}, batches_count_{
                                              scheduler::batches_of(parts.workers->streams)} {}

  pipeline run() {
    make_allocator();
    make_parity_keepers();
    make_scheduler();
    masks_ = keep(parts_.own_threads ? parent_->spawn<caf::detached>(mask_maker)
                                     : parent_->spawn(mask_maker));
    if (parts_.planned && buggify(buggify_point::pipeline_fails))
      throw std::runtime_error{"the pipeline cannot be made"};
    make_batches();
    make_prefill_workers();
    if (layout_.tables() > 1)
      keep(parent_->spawn(balancer, balancer_config{epoch_, allocator_, parts_.members}));
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

  void make_allocator() {
    auto& kept = *parts_.kept;
    if (!*kept.lives) spawn_allocator(kept);
    allocator_ = kept.handle;
    parent_->send(allocator_, kv_adopt{epoch_,
                                       shards_,
                                       {lost_tables(), parts_.began.rebuilt,
                                        parts_.began.parity_is_new, tables(), parts_.moved},
                                       parts_.planned});
  }

  kv_tables tables() const {
    kv_tables x;
    uint32_t member = 0;
    const auto whole = layout_.with_parity(parity_cells(options_));
    for (uint32_t i = 0; i < layout_.tables(); ++i) {
      auto& table = x.list.emplace_back();
      table.slots = layout_.slots_of(i);
      for (uint32_t k = 0; k < layout_.cells[i].members; ++k)
        table.members.push_back("attention-" + std::to_string(member++));
      table.has_parity = layout_.has_parity(i);
      if (whole.has_parity(i)) table.parity = "attention-" + std::to_string(whole.holder_of(i));
    }
    return x;
  }

  std::vector<uint32_t> lost_tables() const {
    std::set<uint32_t> lost;
    for (const auto member : parts_.workers->empty) lost.insert(layout_.cell_of(member));
    return {lost.begin(), lost.end()};
  }

  /// One for each cell of which this epoch has a member for the parity.
  void make_parity_keepers() {
    for (const auto cell : layout_.parity_cells()) make_parity_keeper(cell);
  }

  void make_parity_keeper(uint32_t cell) {
    parity_keeper_config c;
    c.epoch = epoch_;
    c.table = cell;
    c.members = members_of_cell(layout_, cell, shards_);
    c.allocator = allocator_;
    c.membership = caf::actor_cast<caf::actor>(parts_.members);
    c.pin = parity_pin(cell);
    c.slot_bytes = token_bytes(options_, spec_) / layout_.cells[cell].members;
    c.scrub_bytes_per_second = options_.recovery.scrub_bytes;
    c.rebuild_percent = options_.recovery.parity_percent;
    c.metrics = parts_.metrics;
    c.digests = parts_.digests;
    c.prompts_lack_it = options_.pools.prefill_owns_kv();
    result_.parity_keepers.push_back(
        keep(parent_->spawn(parity_keeper, std::move(c)), "attention"));
  }

  /// Whether launches of batches have prompts.
  bool mixes() const { return mixed_batches(options_) > 0; }

  /// Those of prefill workers, then those on replicas that decode.
  uint32_t prefill_streams_count() const {
    return prompt_streams(options_) + mixed_streams(options_);
  }

  void spawn_allocator(kept_allocator& kept) {
    kv_allocator_config c;
    c.tables = tables();
    c.prefix_time = options_.kv.prefix_cache;
    // A suffix is computed concurrently with decoding, by replicas that could decode meanwhile.
    if (mixed_streams(options_) > 0 || (mixes() && prompt_streams(options_) > 0))
      c.prefix_least_percent = 50;
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
    c.prefill_workers = prompt_streams(options_);
    c.mixed_launches = mixes();
    c.prompt_batches = prompt_batches(options_);
    c.mixed_workers = mixes() ? batches_count_ : mixed_streams(options_);
    c.overflow_tokens = options_.pools.prefill.overflow_tokens;
    c.repurpose_s = std::chrono::duration<double>{options_.pools.prefill.repurpose}.count();
    c.window_slots = limits::window_slots;
    c.slots = layout_.largest();
    c.spare_slots = limits::kept_free_of(layout_.smallest());
    c.epoch = epoch_;
    c.metrics = parts_.metrics;
    c.health = parts_.health;
    c.suspects = parts_.suspects;
    c.canary = canary_sequence;
    for (uint32_t j = 0; j < batches_count_; ++j)
      c.replica_of_batch.push_back(rotates(stream_id{j}) ? 0 : first_of(stream_id{j}));
    c.near_tables = near_tables();
    for (uint32_t i = 0; i < prefill_streams_count(); ++i)
      c.replica_of_prefill.push_back(first_of(stream_id{scheduler::prefill_streams + i}));
    if (c.mixed_launches)
      c.replica_of_prefill.insert(c.replica_of_prefill.end(), c.replica_of_batch.begin(),
                                  c.replica_of_batch.end());
    scheduler_ = keep(parent_->spawn(global_scheduler, std::move(c), allocator_));
  }

  /// Of each batch, those on the host of its replicas; empty where all tables are alike.
  std::vector<std::vector<uint32_t>> near_tables() const {
    std::vector<std::string> members;
    for (const auto& room : parts_.workers->rooms) members.push_back(room.host);
    if (members.size() < layout_.members()) return {};
    std::vector<std::vector<uint32_t>> near;
    for (uint32_t j = 0; j < batches_count_; ++j) {
      std::vector<std::string> hosts;
      for (const auto i : places(stream_id{j})) hosts.push_back(parts_.workers->hosts.at(i));
      near.push_back(scheduler::near_tables(layout_, members, hosts));
    }
    return scheduler::has_near_and_far(layout_, near) ? near : decltype(near){};
  }

  std::vector<uint32_t> places(stream_id stream) const {
    return scheduler::places_of(parts_.workers->streams, stream);
  }
  uint32_t first_of(stream_id stream) const { return places(stream).at(0); }
  bool rotates(stream_id stream) const { return places(stream).size() > 1; }

  iteration_target target_of(uint32_t stream) const {
    iteration_target t;
    t.stream = stream_id{stream};
    t.epoch = epoch_;
    for (const auto i : places(t.stream)) t.replicas.push_back(parts_.workers->replicas.at(i));
    t.layers = spec_.layers;
    t.shards = shards_;
    t.allocator = allocator_;
    t.metrics = parts_.metrics;
    t.beats = std::shared_ptr<pulse>{parts_.health, &parts_.health->beats};
    const bool prompts = stream >= scheduler::prefill_streams || mixes();
    t.firsts = prompts ? parts_.first_prefills : parts_.first_decodes;
    return t;
  }

  /// What a lane needs to compute prompts.
  prompt_lane_config prompts_config() const {
    prompt_lane_config c;
    c.chunk_tokens = options_.batching.prefill_chunk_tokens;
    c.rebuild_percent = options_.recovery.rebuild_percent;
    c.bounds = {options_.batching.prefill_iteration, options_.batching.tbt_target};
    if (options_.batching.prompt_order == config::prompt_order::fcfs)
      c.order = scheduler::prompt_order::fcfs;
    c.token_bytes = token_bytes(options_, spec_);
    c.scored_rows = scheduler::scored_rows_within(spec_.vocabulary);
    const uint64_t heads = uint64_t{spec_.heads} * spec_.head_dim;
    const uint64_t kv_heads = uint64_t{spec_.kv_heads} * spec_.head_dim;
    c.positions = scheduler::positions_like_a_token(
        spec_.hidden * (2 * heads + 2 * kv_heads + 3 * uint64_t{spec_.feed_forward}), 2 * heads);
    return c;
  }

  lane_config prefill_worker_config(uint32_t stream) const {
    lane_config c{target_of(stream), scheduler_};
    auto& prompts = c.prompts.emplace(prompts_config());
    if (bounds_decoding()) prompts.decode_beside = batches_;
    const auto& own = parts_.workers->own_kv.at(first_of(c.target.stream));
    if (!own.source) return c;
    c.target.replicas = {own.replica};
    c.target.shards = {own.shard};
    prompts.own = prefill_own_kv{own.source,
                                 {shards_.begin(), shards_.begin() + shards_count_},
                                 layout_,
                                 prefill_slots(options_, spec_, layout_),
                                 options_.pools.prefill.serialize_below_tokens,
                                 options_.kv.prefix_cache.count() > 0};
    return c;
  }

  void make_prefill_workers() {
    std::map<uint32_t, prefill_worker_actor> owners; // by replica: its KV has one
    for (uint32_t i = 0; i < prefill_streams_count(); ++i) {
      const auto stream = scheduler::prefill_streams + i;
      auto c = prefill_worker_config(stream);
      const bool own = c.prompts->own.has_value();
      auto& owner = owners[first_of(stream_id{stream})];
      if (!owner || !own) owner = keep(parent_->spawn(lane, std::move(c)), "prefill");
      prefill_workers_.push_back(owner);
    }
  }

  /// Whether batches rest while lost KV is computed again: not where that costs them nothing, nor
  /// where only some requests have lost theirs.
  bool bounds_decoding() const {
    return options_.pools.prefill_beside_decode() && layout_.tables() == 1
           && options_.recovery.decode_percent < 100;
  }

  /// How many of the sequences that decoded before come to each batch. Batches on seats of the
  /// prefill pool get some when all others are full.
  scheduler::join_share share_of_returning() const {
    if (!parts_.planned) return {};
    const auto others = batches_count_ - std::min(batches_count_, prompt_batches(options_));
    return scheduler::even_share(parts_.returning, others > 0 ? others : batches_count_);
  }

  void make_batches() {
    const auto share = scheduler::share_of_batch(options_.recovery.decode_percent, batches_count_);
    for (uint32_t j = 0; j < batches_count_; ++j) {
      lane_config c{target_of(j), scheduler_};
      c.tokens = token_lane_config{
          {{}, share, options_.batching.stand_backs, epoch_ > 1, share_of_returning()}, masks_};
      if (mixes()) c.prompts = prompts_config();
      lanes_.push_back(keep(parent_->spawn(lane, std::move(c))));
      batches_.push_back(lanes_.back());
      parent_->send(scheduler_, batch_ready{stream_id{j}, batches_.back()});
    }
  }

  void publish() {
    auto server = std::make_shared<service>(parts_.base);
    server->scheduler = scheduler_;
    server->allocator = allocator_;
    server->prefill_workers = prefill_workers_;
    server->mixed_batches = mixes() ? batches_count_ : 0;
    if (server->mixed_batches > 0)
      server->prefill_workers.insert(server->prefill_workers.end(), lanes_.begin(), lanes_.end());
    server->batches = batches_;
    server->masks = masks_;
    server->slots = layout_.largest();
    server->window_slots = limits::window_slots;
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
  const scheduler::kv_layout& layout_;
  const model::model_spec& spec_;
  uint64_t epoch_;
  uint32_t shards_count_, batches_count_;
  const std::vector<attention_shard_actor>& shards_ = parts_.workers->shards;
  kv_allocator_actor allocator_;
  global_scheduler_actor scheduler_;
  std::vector<prefill_worker_actor> prefill_workers_;
  std::vector<lane_actor> lanes_; ///< the same as batches_, with all that they understand
  std::vector<batch_actor> batches_;
  mask_maker_actor masks_;
  pipeline result_;
};

} // namespace

pipeline build_pipeline(caf::event_based_actor* parent, const pipeline_parts& parts) {
  return builder{parent, parts}.run();
}

} // namespace lamella::actors
