/// What `lamella scale` and a reload can change: a pool, or a cell of the attention pool.
#pragma once

#include "actors/membership/membership_state.hpp"
#include "actors/protocol/pools.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace lamella::actors {

/// Changes of sizes.
struct size_changes {
  std::optional<pool_change> current; ///< under way
  caf::actor_clock::time_point since{};
  std::map<std::string, pool_change> ended; ///< the newest of each pool
};

struct resized_part {
  scheduler::worker_role role = scheduler::worker_role::model;
  std::optional<size_t> cell{}; ///< by number
};

/// What a pool or cell shall be.
struct wanted_part {
  uint32_t members = 0;
  std::string partition{};         ///< of a cell; empty: as it is
  uint64_t kv_bytes = kv_as_it_is; ///< of each member
};

/// "attention", or "attention/far".
std::string name_of(const membership_state& st, const resized_part& x);

/// The pool or cell of that name; nothing: there is none.
std::optional<resized_part> part_named(const membership_state& st, const std::string& name);

/// What becomes smaller when the worker of that seat goes for good: its pool, or its cell.
resized_part part_with(const membership_state& st, const scheduler::seat& where);

/// The names of all cells.
std::string cells_of(const membership_state& st);

uint32_t size_of(const pool_sizes& sizes, const resized_part& x);

/// "heads" or "requests" of a cell; of a pool empty.
std::string partition_of(const pool_sizes& sizes, const resized_part& x);

/// KV of each member in bytes; 0: as the service sized it, or none.
uint64_t kv_bytes_of(const pool_sizes& sizes, const resized_part& x);

pool_sizes with_part(const pool_sizes& sizes, const resized_part& x, const wanted_part& wanted);

/// Those sizes, but of that pool or cell what it shall have.
pool_sizes with_wanted(const pool_sizes& sizes, const membership_state& st, const resized_part& x);

/// What `x` asks for, which may be what the part is wanted to be already.
wanted_part wanted_by(const membership_state& st, const resized_part& what, const pool_resize& x);

/// Whether that is not what the part is wanted to be already.
bool is_new(const membership_state& st, const resized_part& what, const wanted_part& x);

/// "attention/far 1 -> 3 by heads with 268435456 bytes of KV each"
std::string text_of(const pool_change& x);

/// Why a pool or cell cannot become that now; empty: it can, though in place of a change of its
/// own.
std::string why_not(const membership_state& st, const resized_part& what,
                    const wanted_part& wanted);

/// The pools and cells with their newest changes, for status.
std::vector<pool_change> changes_of(const membership_state& st);

/// A pool or cell that keeps what it was asked to have: "done", or "short" with the reason where it
/// has fewer members for now, after a loss.
pool_change as_wanted(const membership_state& st, const resized_part& what);

} // namespace lamella::actors
