// How large the frames of a pipeline's links get.
#include "actors/node/pipeline.hpp"

#include "actors/device/shard_pull.hpp"
#include "actors/machine/sizing.hpp"
#include "gpu/runners/parity_frames.hpp"

#include <algorithm>

namespace lamella::actors {

namespace {

/// Q, or K and V, of one row and all heads, whichever is larger.
uint64_t qkv_row_bytes(const config::settings& options, const model::model_spec& spec) {
  return uint64_t{std::max(spec.heads, 2 * spec.kv_heads)} * spec.head_dim
         * gpu::bytes_of(half_type_of(options.numerics.wire));
}

/// Largest piece of rows that a shard pulls: rows of smaller cells may fill a frame better.
uint64_t largest_pull(const config::settings& options, const model::model_spec& spec) {
  const auto row = token_bytes(options, spec) / spec.layers;
  uint64_t most = 0;
  for (const auto& cell : layout_of(options, spec, 0).cells)
    if (cell.members > 0) most = std::max(most, pull_frame_bytes(row / cell.members));
  return most;
}

uint64_t rows_of(const config::settings& options, bool prefills) {
  return prefills ? options.batching.prefill_chunk_tokens : decode_rows_most(options);
}

} // namespace

uint64_t frame_bytes(const config::settings& options, const model::model_spec& spec,
                     uint32_t stream) {
  const bool prefills = stream >= scheduler::prefill_streams;
  const auto rows = rows_of(options, prefills);
  const auto row = qkv_row_bytes(options, spec);
  const auto qkv = rows * (row / layout_of(options, spec, 0).fewest());
  if (!prefills || !options.pools.prefill_owns_kv()) return qkv;
  // Without prefill workers left, prompts run on the model replicas.
  return std::max(qkv, largest_pull(options, spec));
}

uint64_t own_frame_bytes(const config::settings& options, const model::model_spec& spec) {
  return options.batching.prefill_chunk_tokens * qkv_row_bytes(options, spec);
}

uint64_t member_frame_bytes(const config::settings& options, const model::model_spec& spec) {
  if (!options.pools.attention.any_parity()) return 0;
  return largest_pull(options, spec);
}

uint64_t parity_frame_bytes(const config::settings& options, const model::model_spec& spec) {
  if (!options.pools.attention.any_parity()) return 0;
  return gpu::parity_frame_bytes(rows_most(options), slot_bytes(options, spec) / spec.layers);
}

uint64_t rank_frame_bytes(const config::settings& options, const model::model_spec& spec,
                          uint32_t stream) {
  const auto ranks = options.pools.model.tensor_parallel;
  return rows_of(options, stream >= scheduler::prefill_streams)
         * std::max(uint64_t{spec.hidden} * sizeof(float), qkv_row_bytes(options, spec) / ranks);
}

namespace {

std::optional<uint64_t> given(uint64_t bytes) {
  return bytes > 0 ? std::optional{bytes} : std::nullopt;
}

} // namespace

config::settings at_sizes(const config::settings& options, const pool_sizes& sizes) {
  auto result = options;
  auto& pools = result.pools;
  pools.model.members = sizes.model;
  pools.attention.members = sizes.attention;
  result.kv.bytes.reset(); // what it gave is in the sizes
  pools.attention.kv_bytes = given(scheduler::kv_bytes_of(sizes, 0));
  // The cells of an epoch are those that there were when it was planned.
  pools.attention.cells.shorten(sizes.cells.size());
  for (size_t cell = 0; auto& [name, x] : pools.attention.cells) {
    x.members = sizes.cells.at(cell);
    x.kv_bytes = given(scheduler::kv_bytes_of(sizes, cell));
    x.partition = scheduler::is_by_requests(sizes, cell++) ? config::partition::requests
                                                           : config::partition::heads;
  }
  // Without seats of their own, prefill workers run on the model replicas.
  if (pools.prefill.has_seats()) pools.prefill.members = sizes.prefill;
  pools.prefill.kv_bytes = given(sizes.prefill_kv_bytes);
  return result;
}

pool_terms pool_terms_of(const config::settings& options, const model::model_spec& spec,
                         scheduler::kv_layout layout) {
  pool_terms t;
  t.layout = std::move(layout);
  t.own_slots = prefill_slots(options, spec, t.layout);
  t.decode_rows = static_cast<uint32_t>(rows_of(options, false));
  t.decode_frame_bytes = frame_bytes(options, spec, 0);
  t.prefill_frame_bytes = frame_bytes(options, spec, scheduler::prefill_streams);
  t.own_frame_bytes = own_frame_bytes(options, spec);
  t.parity_frame_bytes = parity_frame_bytes(options, spec);
  t.member_frame_bytes = member_frame_bytes(options, spec);
  // Rows of any number of heads: pieces of whichever fill a frame best.
  t.move_frame_bytes =
      std::max<uint64_t>(scheduler::move_piece_bytes, token_bytes(options, spec) / spec.layers);
  return t;
}

} // namespace lamella::actors
