/// `lamella pools`, `lamella scale`, `lamella drain`: the pools of a running server.
#pragma once

#include "base/json.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace lamella::cli {

/// A pool, or a change of one, as GET /admin/pools, POST /admin/scale and POST /admin/drain-worker
/// tell of it.
struct pool_state {
  std::string pool;
  uint32_t from = 0, members = 0;
  std::string state; ///< "none", "short", "queued", "under way", "done" or "rolled back"
  std::string reason;
  std::string partition;               ///< of a cell: "heads" or "requests", as it serves
  std::string to_partition;            ///< what it will be; empty: the same
  uint64_t kv_bytes = 0;               ///< configured KV of each member, as it serves; 0: not given
  std::optional<uint64_t> to_kv_bytes; ///< what it will be; nothing: the same

  bool under_way() const { return state == "under way"; }
  bool queued() const { return state == "queued"; }  ///< it waits for other changes
  bool is_short() const { return state == "short"; } ///< of workers that were lost
  bool changes_kv() const { return to_kv_bytes.has_value(); }
  bool rolled_back() const { return state == "rolled back"; }
  friend bool operator==(const pool_state&, const pool_state&) = default;
};

/// Throws command_error (1) where the text is none of these answers.
pool_state pool_state_of(const json_value& x);

/// "attention: 1 -> 3, under way: why"; without the sizes where they are equal, and with the
/// partitions or the KV of each member where these change.
std::string line_of(const pool_state& x);

/// Writes the reply of GET /admin/pools as a table. MEMBERS is the size that serves, with the one
/// that is wanted where a change is under way or queued: "1 -> 3", or workers are lacking: "1 of
/// 3". KV EACH is there where a pool has its `kv_bytes`. Ends with a line break.
std::string pools_page(const json_value& pools);

/// What `lamella scale` is asked for.
struct wanted_size {
  std::string pool;
  uint32_t members = 0;
};

/// Of "attention=3". Throws command_error (2).
wanted_size wanted_size_of(const std::string& text);

/// A seat, and which of its workers in a row sits there.
struct seated {
  std::string seat;
  uint32_t incarnation = 0;
};

/// Where the worker of that name, or in that seat, sits by the reply of GET /admin/status.
std::optional<seated> seat_of_worker(const json_value& status, const std::string& worker);

/// Whether it still does.
bool sits(const json_value& status, const seated& x);

/// Whether the service says that the worker of that seat does not drain (any more); false where it
/// says nothing of it.
bool stays(const json_value& status, const std::string& seat);

} // namespace lamella::cli
