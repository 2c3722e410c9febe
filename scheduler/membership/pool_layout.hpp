/// The sizes of the pools and how cells are cut, as data: they change while a service runs.
#pragma once

#include "scheduler/membership/epoch_plan.hpp"
#include "scheduler/membership/seats.hpp"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

namespace lamella::scheduler {

/// Members of each pool, without spares and without the member that holds the parity.
struct pool_sizes {
  uint32_t model = 1;
  uint32_t attention = 1;        ///< of all cells
  uint32_t prefill = 0;          ///< seats of their own; 0: prompts run on the model replicas
  std::vector<uint32_t> cells{}; ///< of each named attention cell, in order of names; may be empty
  /// Named cells that are cut by requests, ascending; the others are cut by heads.
  std::vector<uint32_t> by_requests{};
  std::vector<uint64_t> kv_bytes{}; ///< as in epoch_shape; never all 0
  uint64_t prefill_kv_bytes = 0;
  friend bool operator==(const pool_sizes&, const pool_sizes&) = default;
};

constexpr uint32_t size_of(const pool_sizes& x, worker_role role) {
  return role == worker_role::model       ? x.model
         : role == worker_role::attention ? x.attention
                                          : x.prefill;
}

/// Members that sit on the seats of a group; `cell_seats` as epoch_shape has it.
inline uint32_t size_of(const pool_sizes& x, const seat_group& group,
                        const std::vector<std::string>& cell_seats) {
  if (group.role != worker_role::attention || x.cells.empty()) return size_of(x, group.role);
  uint32_t sum = 0;
  for (size_t i = 0; i < x.cells.size(); ++i)
    if ((i < cell_seats.size() ? cell_seats[i] : std::string{}) == group.cell) sum += x.cells[i];
  return sum;
}

/// The same sizes, but for one pool. Not of an attention pool with named cells.
inline pool_sizes with_size(pool_sizes x, worker_role role, uint32_t members) {
  (role == worker_role::model       ? x.model
   : role == worker_role::attention ? x.attention
                                    : x.prefill) = members;
  return x;
}

/// The same sizes, but for one named cell.
inline pool_sizes with_cell(pool_sizes x, size_t cell, uint32_t members) {
  x.cells.at(cell) = members;
  x.attention = std::accumulate(x.cells.begin(), x.cells.end(), 0u);
  return x;
}

/// Whether a named cell is cut by requests; else by heads.
inline bool is_by_requests(const pool_sizes& x, size_t cell) {
  return std::ranges::count(x.by_requests, cell) > 0;
}

/// The same sizes, with one named cell cut by requests or by heads.
inline pool_sizes with_cut(pool_sizes x, size_t cell, bool by_requests) {
  std::erase(x.by_requests, static_cast<uint32_t>(cell));
  if (by_requests) x.by_requests.push_back(static_cast<uint32_t>(cell));
  std::ranges::sort(x.by_requests);
  return x;
}

/// KV of a member of a named cell, or of the pool where there are none (cell 0), in bytes; 0: as
/// the service sized it at its start.
inline uint64_t kv_bytes_of(const pool_sizes& x, size_t cell) {
  return cell < x.kv_bytes.size() ? x.kv_bytes[cell] : 0;
}

/// The same sizes, with so much KV in each member of that cell.
inline pool_sizes with_kv_bytes(pool_sizes x, size_t cell, uint64_t bytes) {
  x.kv_bytes.resize(std::max<size_t>(1, x.cells.size()), 0);
  x.kv_bytes.at(cell) = bytes;
  if (std::ranges::all_of(x.kv_bytes, [](uint64_t n) { return n == 0; })) x.kv_bytes.clear();
  return x;
}

inline pool_sizes sizes_of(const epoch_shape& x) {
  return {x.replicas,    x.shards,   x.prefill_seats,   x.cells,
          x.by_requests, x.kv_bytes, x.prefill_kv_bytes};
}

} // namespace lamella::scheduler
