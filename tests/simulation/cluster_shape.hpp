/// What a simulated cluster is built of.
#pragma once

#include "actors/machine/seat_groups.hpp"
#include "actors/membership/membership.hpp"
#include "actors/node/pipeline.hpp"
#include "actors/node/roster.hpp"
#include "actors/protocol/join.hpp"
#include "scheduler/cell_tables.hpp"
#include "scheduler/kv/memory_room.hpp"
#include "tests/simulation/devices.hpp"

namespace lamella::simulation {

/// What is built.
struct cluster_shape {
  uint32_t replicas = 2, shards = 2, spares = 1;
  uint32_t prefill = 0;    ///< prefill workers with KV of their own; 0: prompts run on replicas
  bool by_request = false; ///< partition of the pool
  /// Members of each cell beside the others, `shards` in all; none: the pool is one.
  std::vector<uint32_t> cells{};
  std::vector<uint32_t> cells_by_request{}; ///< by number, those that are cut so at the start
  uint32_t cells_apart = 0; ///< the first so many cells have seats of their own each
  bool parity = false;      ///< one more member has the parity of the shards
  /// Of each cell, where there are cells; none: all as the pool.
  std::vector<bool> cells_with_parity{};
  bool rotates = false; ///< batches rotate over the replicas; else each stays on its own
  /// Each epoch's pipeline is chosen, as for batches of up to so many requests; 0: it is not.
  uint32_t chosen_for = 0;
  /// Prompts on replicas share the launches of batches, and prefill seats decode in a burst.
  bool mixes = false;
  uint32_t stand_backs = 0;
  bool prefill_at_shards = false; ///< prefill seats have no KV of their own
  bool here = false; ///< all seats are of the control process, the default of a service
  std::optional<uint32_t> batches{}; ///< nothing: as the service chooses
  std::optional<device_pace> pace{};
  uint32_t more_slots = 0;   ///< that each further attention member by head brings
  uint32_t slots = 400;      ///< per table; of the first where there are cells
  uint32_t more_in_next = 0; ///< slots that each cell has more than the one before
  /// That a pool must have to serve with fewer members after a loss; 0: it never does.
  uint32_t least_slots = 0;
  uint32_t max_batch = 4, chunk_tokens = 16;
  duration slowest_step = 60us;   ///< of a device
  duration slowest_message = 2ms; ///< between processes
  /// The seats of a role take them in turn, replicas from the first one on.
  uint32_t hosts = 1;
  /// Of each host, for a copy of the KV in use beside it.
  uint64_t free_bytes = scheduler::memory_room::no_limit;
  uint32_t starved_per_mille = 0; ///< turns of actors that come late
};

inline config::settings settings_of(const cluster_shape& shape) {
  config::settings o;
  const auto where = shape.here ? config::placement::in_process : config::placement::remote;
  o.pools.model.members = shape.replicas;
  o.pools.attention.members = shape.shards;
  o.pools.attention.spares = shape.spares;
  o.pools.attention.parity = shape.parity;
  o.pools.attention.partition =
      shape.by_request ? config::partition::requests : config::partition::heads;
  for (auto* pool : {static_cast<config::pool_settings*>(&o.pools.model),
                     static_cast<config::pool_settings*>(&o.pools.attention)})
    pool->placement = where;
  for (uint32_t i = 0; i < shape.cells.size(); ++i) {
    auto& cell = o.pools.attention.cells["c" + std::to_string(i)];
    cell = o.pools.attention;
    cell.members = shape.cells[i];
    if (!shape.cells_with_parity.empty()) cell.parity = shape.cells_with_parity.at(i);
    if (std::ranges::count(shape.cells_by_request, i) > 0)
      cell.partition = config::partition::requests;
    if (i < shape.cells_apart) cell.threads = 1 + i; // others than the pool's
  }
  o.pools.prefill.members = std::max(1u, shape.prefill);
  if (shape.prefill > 0) {
    o.pools.prefill.placement = where;
    o.pools.prefill.attention = shape.prefill_at_shards ? config::prefill_attention::shards
                                                        : config::prefill_attention::own;
    o.pools.prefill.serialize_below_tokens = shape.chunk_tokens;
    // Some prompts run on replicas (S-M07).
    o.pools.prefill.overflow_tokens = 2 * shape.chunk_tokens;
  } else {
    o.pools.prefill.attention = config::prefill_attention::shards;
  }
  o.batching.max_batch = shape.max_batch;
  o.batching.batches = shape.batches;
  if (shape.rotates) o.batching.pipeline = config::pipeline::rotational;
  if (shape.chosen_for > 0) o.batching.pipeline = config::pipeline::automatic;
  if (shape.mixes) o.batching.launches = config::launches::mixed;
  o.batching.stand_backs = shape.stand_backs;
  if (shape.stand_backs > 0) o.batching.tbt_target = 1ms; // tokens take all of it
  o.batching.prefill_chunk_tokens = shape.chunk_tokens;
  o.numerics.wire = config::number_type::f32;
  o.kv.dtype = config::number_type::f32;
  return o;
}

/// All of them: each process is started again by the simulation, as children are.
inline std::set<scheduler::seat_group> groups_of(const config::settings& options) {
  const auto groups = actors::seat_groups(options);
  return {groups.begin(), groups.end()};
}

/// The settings with one more cell, without members, that has the workers of the pool.
inline config::settings with_new_cell(const config::settings& options, const std::string& name,
                                      bool by_requests) {
  config::attention_pool_settings cell = options.pools.attention;
  cell.members = 0;
  cell.partition = by_requests ? config::partition::requests : config::partition::heads;
  cell.parity = !by_requests && options.pools.attention.any_parity();
  config::settings other;
  other.pools.attention.cells.append(name, cell);
  return actors::with_cells(options, other, {name});
}

/// The attention pool at the sizes of `options`, where it had those of `shape` at the start.
inline scheduler::kv_layout layout_of(const config::settings& options,
                                      const model::model_spec& spec, const cluster_shape& shape) {
  auto layout = actors::layout_of(options, spec, 0);
  const bool cells = !shape.cells.empty();
  for (size_t i = 0; i < layout.cells.size(); ++i) {
    auto& cell = layout.cells[i];
    const auto of = scheduler::cell_of_table(static_cast<uint32_t>(i), shape.cells.size());
    const auto at_start = cells && of >= shape.cells.size() ? 0 // it has come since
                          : cells                           ? shape.cells[of]
                          : shape.by_request                ? 1
                                                            : shape.shards;
    cell.slots = shape.slots + shape.more_slots * std::max(1u, cell.members)
                 - shape.more_slots * std::max(1u, at_start);
    if (cells) cell.slots += of * shape.more_in_next;
    // A change of memory is asked for in slots here.
    const auto kv = actors::settings_of_cell(options, static_cast<uint32_t>(i)).kv_bytes;
    if (kv) cell.slots = static_cast<uint32_t>(*kv);
  }
  return layout;
}

/// The pools at these sizes. Throws std::invalid_argument where that is impossible.
inline actors::epoch_design design_at(const config::settings& at_start,
                                      const scheduler::pool_sizes& sizes,
                                      const model::model_spec& spec, const cluster_shape& shape) {
  const auto options = actors::at_sizes(at_start, sizes);
  auto layout = layout_of(options, spec, shape);
  if (auto why = scheduler::refuse_layout(spec.kv_heads, layout)) throw std::invalid_argument{*why};
  return {actors::shape_of(options), actors::pool_terms_of(options, spec, std::move(layout))};
}

/// Has MEMBERSHIP choose the pipeline of each epoch, where the shape says so.
inline void choose_pipelines(actors::membership_config& m, const cluster_shape& shape,
                             const model::model_spec& spec) {
  if (shape.chosen_for == 0) return;
  m.chooses = actors::pipeline_choosing{shape.chosen_for, spec.layers};
  m.poll_interval = 1s;
}

inline actors::worker_terms terms_of(const config::settings& options, const model::model_spec& spec,
                                     const scheduler::kv_layout& layout) {
  actors::worker_terms t;
  t.version = t.kernels = t.shapes = "sim";
  t.wire = t.kv = gpu::half_type::f32;
  t.layers = spec.layers;
  t.kv_heads = spec.kv_heads;
  t.group = spec.group();
  t.head_dim = spec.head_dim;
  t.scale = spec.attention_scale();
  t.pool = actors::pool_terms_of(options, spec, layout);
  t.prefill_owns_kv = options.pools.prefill_owns_kv();
  t.chaos = true;
  return t;
}

} // namespace lamella::simulation
