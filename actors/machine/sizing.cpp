#include "actors/machine/sizing.hpp"

#include "actors/machine/control_groups.hpp"
#include "actors/machine/seat_groups.hpp"
#include "actors/machine/topology.hpp"
#include "config/cells.hpp"
#include "config/streams.hpp"
#include "scheduler/cell_tables.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include <unistd.h>

namespace lamella::actors {

namespace {

static_assert(config::cells_most == scheduler::cells_max);

/// Minimum number of slots of a useful service.
constexpr uint32_t slots_min = 128;

/// Slots of a table at most.
constexpr uint32_t slots_max = 1u << 30;

/// KV of each member of a table; nothing: not given.
std::optional<uint64_t> given_bytes(const config::settings& options, uint32_t table) {
  const auto& cell_pool = settings_of_cell(options, table);
  return cell_pool.kv_bytes ? cell_pool.kv_bytes : options.kv.bytes;
}

/// What the members of a table are to store: what was asked for, where that is more than a table
/// can have slots.
uint64_t wanted_bytes(const config::settings& options, uint64_t token_bytes,
                      const scheduler::kv_layout& layout, uint32_t table) {
  const auto bytes = stored_bytes(layout, table, token_bytes);
  const auto given = given_bytes(options, table);
  if (!given || layout.slots_of(table) < slots_max) return bytes;
  const auto holders = layout.cells[table].members + (layout.has_parity(table) ? 1 : 0);
  return std::max(bytes, *given * holders);
}

/// The tables of the attention pool, without their slots.
scheduler::kv_layout members_of_cells(const config::settings& options) {
  const auto& pool = options.pools.attention;
  scheduler::kv_layout layout;
  if (!pool.cells.empty()) {
    const auto sizes = cell_sizes(options);
    for (const auto members : scheduler::members_of_tables(sizes, cells_by_requests(options)))
      layout.cells.push_back({members, 0, false});
    for (uint32_t i = 0; i < sizes.size(); ++i)
      layout.cells[i].parity = settings_of_cell(options, i).parity;
    return layout;
  }
  if (pool.partition == config::partition::requests)
    layout.cells.assign(pool.members, {1, 0});
  else
    layout.cells = {{pool.members, 0, pool.parity}};
  return layout;
}

} // namespace

const config::attention_pool_settings& settings_of_cell(const config::settings& options,
                                                        uint32_t table) {
  const auto& pool = options.pools.attention;
  if (pool.cells.empty()) return pool;
  const auto cell = scheduler::cell_of_table(table, pool.cells.size());
  if (cell >= pool.cells.size()) return pool; // a number between those of tables
  return std::next(pool.cells.begin(), static_cast<ptrdiff_t>(cell))->second;
}

std::vector<uint32_t> parity_cells(const config::settings& options) {
  std::vector<uint32_t> result;
  for (uint32_t i = 0; const auto& [name, cell] : options.pools.attention.resolved()) {
    if (cell.parity) result.push_back(i);
    ++i;
  }
  return result;
}

std::vector<uint32_t> cell_sizes(const config::settings& options) {
  std::vector<uint32_t> result;
  for (const auto& [name, cell] : options.pools.attention.cells) result.push_back(cell.members);
  return result;
}

std::vector<uint32_t> cells_by_requests(const config::settings& options) {
  std::vector<uint32_t> result;
  for (uint32_t i = 0; const auto& [name, cell] : options.pools.attention.cells) {
    if (cell.partition == config::partition::requests) result.push_back(i);
    ++i;
  }
  return result;
}

std::vector<uint64_t> kv_bytes_of_cells(const config::settings& options) {
  std::vector<uint64_t> result;
  for (const auto& [name, cell] : options.pools.attention.resolved())
    result.push_back(cell.kv_bytes.value_or(options.kv.bytes.value_or(0)));
  if (std::ranges::all_of(result, [](uint64_t n) { return n == 0; })) result.clear();
  return result;
}

std::string host_name() {
  char host[256] = {};
  gethostname(host, sizeof host - 1);
  return host;
}

unsigned usable_processors() {
  const auto count = static_cast<double>(computing(own_topology()).size());
  return std::max(
      1u, static_cast<unsigned>(std::min<double>(count, processor_bound(own_groups("cpu")) + 0.5)));
}

uint64_t memory_limit() {
  const auto machine =
      static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  return std::min(machine, memory_bound(own_groups("memory")));
}

uint64_t stored_bytes(const scheduler::kv_layout& layout, uint32_t table, uint64_t token_bytes) {
  const auto bytes = layout.slots_of(table) * token_bytes;
  return layout.has_parity(table) ? bytes + bytes / layout.cells[table].members : bytes;
}

std::string why_too_large(const config::settings& options, uint64_t weight_bytes,
                          uint64_t token_bytes, const scheduler::kv_layout& layout) {
  const auto is_here = [](const config::pool_settings& pool) {
    return pool.placement != config::placement::remote && !config::is_cuda(pool.device);
  };
  const auto& pools = options.pools;
  const auto limit = memory_limit();
  const auto weights = is_here(pools.model) ? weight_bytes : 0;
  uint64_t kv = 0;
  for (uint32_t i = 0; i < layout.tables(); ++i)
    if (is_here(settings_of_cell(options, i))) kv += wanted_bytes(options, token_bytes, layout, i);
  if (weights + kv <= limit) return {};
  if (weights == 0)
    return fmt::format("the KV cache ({} bytes) is more than the memory limit of {} bytes", kv,
                       limit);
  return fmt::format("the weights ({} bytes) and the KV cache ({} bytes) are more than the memory "
                     "limit of {} bytes",
                     weights, kv, limit);
}

uint32_t decode_rows_most(const config::settings& options) {
  const auto& b = options.batching;
  return b.max_batch + (mixed_batches(options) > 0 ? b.prefill_chunk_tokens : 0);
}

uint32_t rows_most(const config::settings& options) {
  return std::max(decode_rows_most(options), options.batching.prefill_chunk_tokens);
}

size_t streams_on(const config::settings& options, const std::string& device) {
  const auto& pools = options.pools;
  const size_t streams = served_streams(options);
  size_t count = 0;
  for (const auto& [name, cell] : pools.attention.resolved())
    if (device == cell.device) count += cell.members * (streams + 1);
  if (!config::devices_of_ranks(pools.model.device, pools.model.tensor_parallel).contains(device))
    return count;
  // A prefill worker with KV of its own has a shard, and an offer to each other one.
  const auto own = pools.prefill_owns_kv() ? pools.prefill.members : 0;
  return count + streams + own * (size_t{1} + pools.attention.members);
}

gpu::half_type half_type_of(config::number_type x) {
  switch (x) {
  case config::number_type::f32:
    return gpu::half_type::f32;
  case config::number_type::bf16:
    return gpu::half_type::bf16;
  case config::number_type::q8:
    return gpu::half_type::q8;
  case config::number_type::q4:
    return gpu::half_type::q4;
  case config::number_type::f16:
    break;
  }
  return gpu::half_type::f16;
}

const char* name_of(gpu::half_type type) {
  switch (type) {
  case gpu::half_type::f32:
    return "f32";
  case gpu::half_type::bf16:
    return "bf16";
  case gpu::half_type::q8:
    return "q8";
  case gpu::half_type::q4:
    return "q4";
  case gpu::half_type::f16:
    break;
  }
  return "f16";
}

uint64_t token_bytes(const config::settings& options, const model::model_spec& spec) {
  const gpu::kv_layer layer{nullptr, half_type_of(options.kv.dtype), spec.kv_heads, spec.head_dim};
  return spec.layers * layer.row_bytes();
}

uint64_t slot_bytes(const config::settings& options, const model::model_spec& spec) {
  return token_bytes(options, spec) / members_of_cells(options).fewest();
}

scheduler::kv_layout layout_of(const config::settings& options, const model::model_spec& spec,
                               uint64_t available) {
  const auto seats = uint64_t{options.batching.max_batch}
                     * options.batching.batches_for(options.pools.model.members);
  const auto context = options.model.context_tokens.value_or(spec.context_tokens);
  auto layout = members_of_cells(options);
  const auto share = available / std::max(1u, layout.all());
  for (uint32_t i = 0; auto& cell : layout.cells) {
    const auto given = given_bytes(options, i++);
    const auto member_bytes = token_bytes(options, spec) / std::max(1u, cell.members);
    auto slots = given.value_or(share) / std::max<uint64_t>(1, member_bytes);
    if (!given) slots = std::min(slots, seats * (uint64_t{context} + 64));
    cell.slots = static_cast<uint32_t>(std::min<uint64_t>(slots, slots_max));
  }
  return layout;
}

std::string why_too_small(const config::settings& options, const model::model_spec& spec,
                          const scheduler::kv_layout& layout) {
  if (const auto slots = layout.smallest(); slots < slots_min)
    return fmt::format("kv.bytes: room for {} tokens, too small for one request; at least {} bytes "
                       "({} tokens) are needed",
                       slots, slots_min * slot_bytes(options, spec), slots_min);
  if (!options.pools.prefill_owns_kv()) return {};
  const auto longest =
      std::min(options.model.context_tokens.value_or(spec.context_tokens), layout.largest());
  if (const auto own = prefill_slots(options, spec, layout); own < longest)
    return fmt::format("pools.prefill.kv_bytes: room for {} tokens, a prompt may have {}", own,
                       longest);
  return {};
}

uint32_t prefill_slots(const config::settings& options, const model::model_spec& spec,
                       const scheduler::kv_layout& layout) {
  const auto context = options.model.context_tokens.value_or(spec.context_tokens);
  const auto wanted = options.pools.prefill.kv_bytes
                          ? *options.pools.prefill.kv_bytes / token_bytes(options, spec)
                          : context + uint64_t{8} * options.batching.prefill_chunk_tokens;
  return static_cast<uint32_t>(std::min(wanted, layout.slots()));
}

scheduler::epoch_shape shape_of(const config::settings& options) {
  const auto& pools = options.pools;
  scheduler::epoch_shape shape;
  shape.replicas = pools.model.members;
  shape.shards = pools.attention.members;
  shape.cells = cell_sizes(options);
  shape.by_requests = cells_by_requests(options);
  shape.kv_bytes = kv_bytes_of_cells(options);
  shape.prefill_kv_bytes = pools.prefill.kv_bytes.value_or(0);
  shape.cell_seats = cell_seats(options);
  shape.parity = members_of_cells(options).parity_cells();
  if (pools.prefill.has_seats()) shape.prefill_seats = pools.prefill.members;
  shape.batches = options.batching.batches_for(pools.model.members);
  shape.rotates = options.batching.pipeline == config::pipeline::rotational;
  shape.one_each = options.batching.pipeline == config::pipeline::off
                   || options.batching.pipeline == config::pipeline::automatic;
  shape.prompt_batches = prompt_batches(options);
  shape.prefill_streams = prompt_streams(options);
  shape.mixed_streams = mixed_streams(options);
  return shape;
}

} // namespace lamella::actors
