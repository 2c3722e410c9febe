/// How much of the machine to use: processors and memory of this process's cgroup, KV slots, and
/// members of the pools.
#pragma once

#include "config/settings.hpp"
#include "gpu/kernels/operators.hpp"
#include "model/spec.hpp"
#include "scheduler/membership/epoch_plan.hpp"

#include <cstdint>
#include <string>

namespace lamella::actors {

/// Name of this machine.
std::string host_name();

/// Processors this process may run on.
unsigned usable_processors();

/// Bytes of memory this process may use: the smaller of the machine's and the cgroup's (v1, v2).
uint64_t memory_limit();

/// Slots of one slot table under these settings: what `kv.bytes` holds, or an equal share of
/// `available` bytes for all members of the pool, but not more than all seats could ever fill. At
/// least 0; the caller refuses too few.
uint32_t slots_for(const config::settings& options, const model::model_spec& spec,
                   uint64_t available);

/// Why the memory that this process may use cannot hold one copy of the weights of a file of so
/// many bytes and the KV of so many bytes for each member; empty where it can. Of pools on other
/// machines or on CUDA devices nothing counts.
std::string why_too_large(const config::settings& options, uint64_t weight_bytes,
                          uint64_t member_kv_bytes);

/// Slots of a prefill worker's own KV: what `pools.prefill.kv_bytes` holds, or one prompt of the
/// longest kind and eight chunks; not more than there are in the pool of `pool_slots` per table.
uint32_t prefill_slots(const config::settings& options, const model::model_spec& spec,
                       uint32_t pool_slots);

/// Rows of the largest iteration.
uint32_t rows_most(const config::settings& options);

/// Streams for the suffixes of prompts whose beginning is in the prefix cache: prefill workers with
/// KV of their own do not see what the shards have. One per replica; 0 where they are not needed.
uint32_t suffix_streams(const config::settings& options);

/// Streams that a device of this process has at once, at most: of the pools whose option it is.
size_t streams_on(const config::settings& options, const std::string& device);

/// The type of numbers as kernels and channels know it.
gpu::half_type half_type_of(config::number_type x);
/// As options, fingerprints and errors call it.
const char* name_of(gpu::half_type type);

/// Bytes of K and V of one token, all layers and heads.
uint64_t token_bytes(const config::settings& options, const model::model_spec& spec);

/// Bytes that one member of the attention pool needs per slot.
uint64_t slot_bytes(const config::settings& options, const model::model_spec& spec);

/// What the service wants of an epoch. Prefill workers without seats of their own use the model
/// replicas.
scheduler::epoch_shape shape_of(const config::settings& options);

/// Members without which a pool is not whole: the one with the parity included.
uint32_t members_needed(const config::settings& options, scheduler::worker_role role);

/// The settings of the pool a role belongs to.
const config::pool_settings& pool_of(const config::settings& options, scheduler::worker_role role);

} // namespace lamella::actors
