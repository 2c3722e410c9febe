/// Sizing: processors and memory of this process's cgroup, KV slots, and members of the pools.
#pragma once

#include "config/settings.hpp"
#include "gpu/kernels/operators.hpp"
#include "model/program/program.hpp"
#include "model/spec.hpp"
#include "scheduler/kv_layout.hpp"
#include "scheduler/membership/epoch_plan.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace lamella::actors {

/// Name of this machine.
std::string host_name();

/// Processors this process may run on.
unsigned usable_processors();

/// Bytes of memory this process may use: the smaller of the machine's and the cgroup's (v1, v2).
uint64_t memory_limit();

/// The tables of the attention pool under these settings. Slots of a table: the capacity of its
/// cell's `kv_bytes` or of `kv.bytes`, or an equal share of `available` bytes for all members of
/// the pool, at most as many as all seats could fill; may be 0, the caller rejects too few. A table
/// without members has the slots that one member would give it.
scheduler::kv_layout layout_of(const config::settings& options, const model::model_spec& spec,
                               uint64_t available);

/// The settings of the cell of a table of such a layout: of a named cell, else of the pool, as for
/// the numbers between those of the tables of cells by requests.
const config::attention_pool_settings& settings_of_cell(const config::settings& options,
                                                        uint32_t table);

/// Members of each named attention cell, in order of names.
std::vector<uint32_t> cell_sizes(const config::settings& options);

/// The named attention cells, by number, that are cut by requests; the others are cut by heads.
std::vector<uint32_t> cells_by_requests(const config::settings& options);

/// KV of a member of each named attention cell, or of the pool: its `kv_bytes`, else `kv.bytes`; 0:
/// neither is given. None where all are 0.
std::vector<uint64_t> kv_bytes_of_cells(const config::settings& options);

/// The attention cells that shall have parity, in use or not (decision 23); {0} for a pool without
/// named ones.
std::vector<uint32_t> parity_cells(const config::settings& options);

/// Bytes of KV that the members of that table store, with the one that holds its parity;
/// `token_bytes` for each slot. 0 where the table is not in use.
uint64_t stored_bytes(const scheduler::kv_layout& layout, uint32_t table, uint64_t token_bytes);

/// Why the memory limit of this process is too small for one copy of the weights and the KV of all
/// cells, `token_bytes` for each slot; empty when it suffices. Pools and cells on other machines or
/// on CUDA devices do not count.
std::string why_too_large(const config::settings& options, uint64_t weight_bytes,
                          uint64_t token_bytes, const scheduler::kv_layout& layout);

/// Why the tables in use, or the KV of prefill workers of their own, are too small for one request;
/// empty when they suffice.
std::string why_too_small(const config::settings& options, const model::model_spec& spec,
                          const scheduler::kv_layout& layout);

/// Slots of a prefill worker's own KV: the capacity of `pools.prefill.kv_bytes`, or one longest
/// prompt and eight chunks; at most those of the pool.
uint32_t prefill_slots(const config::settings& options, const model::model_spec& spec,
                       const scheduler::kv_layout& layout);

/// Rows of the largest iteration of a batch; of prompts beside it where launches are mixed.
uint32_t decode_rows_most(const config::settings& options);

/// Rows of the largest iteration.
uint32_t rows_most(const config::settings& options);

/// Upper bound of concurrent streams of a device of this process: of the pools on it.
size_t streams_on(const config::settings& options, const std::string& device);

/// The order of a replica's program under `batching.early_q`.
constexpr model::query_order query_order_of(bool early) {
  return early ? model::query_order::early : model::query_order::with_kv;
}

/// The number type in terms of kernels and channels.
gpu::half_type half_type_of(config::number_type x);
/// Its name in options, fingerprints and errors.
const char* name_of(gpu::half_type type);

/// Bytes of K and V of one token, all layers and heads.
uint64_t token_bytes(const config::settings& options, const model::model_spec& spec);

/// Bytes that a member of the attention pool needs per slot; of the members with the most heads.
uint64_t slot_bytes(const config::settings& options, const model::model_spec& spec);

/// The full shape of an epoch. Prefill workers without own seats use the model replicas.
scheduler::epoch_shape shape_of(const config::settings& options);

} // namespace lamella::actors
