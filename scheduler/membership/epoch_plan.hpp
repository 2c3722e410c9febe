/// The plan of the next epoch: replicas, shards and the streams between them, from the available
/// workers (L-M25, L-M26; reliability A2).
#pragma once

#include "scheduler/membership/seats.hpp"
#include "scheduler/types.hpp"

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace lamella::scheduler {

/// A replica of an iteration stream. A stream with several places has its slices run by these in
/// turn, in their order (L-M17).
struct stream_place {
  stream_id stream{};
  uint32_t replica = 0; ///< by number: decoding replicas, then those of the prefill pool
  friend bool operator==(const stream_place&, const stream_place&) = default;
};

/// The full shape of an epoch, without missing workers.
struct epoch_shape {
  uint32_t replicas = 1;
  uint32_t shards = 1;           ///< of all cells
  std::vector<uint32_t> cells{}; ///< members of each named attention cell; may be empty
  /// `cell` of the seats of each named cell, see seat_group; none: empty for all.
  std::vector<std::string> cell_seats{};
  uint32_t prefill_seats = 0;   ///< 0: prefill runs on the decoding replicas
  uint32_t batches = 1;         ///< decode streams on replicas of the model pool
  uint32_t prefill_streams = 1; ///< at least `prefill_seats`; 0: batches compute the prompts
  /// Cells of which one more shard holds the parity, ascending (decision 23); {0} where there are
  /// no named ones.
  std::vector<uint32_t> parity{};
  /// Streams after those of prefill, on decoding replicas: for prompts with a prefix-cache hit at
  /// the shards, which only they can use, and for prompts that overflow (S-M07).
  uint32_t mixed_streams = 0;
  bool rotates = false;  ///< slices of a decode stream run on all replicas in turn (L-M17)
  bool one_each = false; ///< a batch for each replica that there is, instead of `batches`
  /// Decode streams after these, on the seats of the prefill pool: machines for prompts that decode
  /// when all others are full (S-M03, S-M07).
  uint32_t prompt_batches = 0;
  /// Named cells that are cut by requests, ascending; the others are cut by heads. Shards are
  /// numbered through the tables of all cells, see members_of_tables().
  std::vector<uint32_t> by_requests{};
  /// KV of a member in bytes, of each named cell or of the one pool; 0: as the service sized it at
  /// its start. None: of all.
  std::vector<uint64_t> kv_bytes{};
  uint64_t prefill_kv_bytes = 0; ///< KV of a prefill worker of its own; 0: likewise
};

/// The seats of an epoch by number; messages and links use the number.
struct epoch_plan {
  std::vector<seat> replicas; ///< of the model pool, then of the prefill pool
  std::vector<seat> shards;
  std::vector<stream_place> streams;
  uint32_t decoding = 0; ///< replicas of the model pool
  /// Cells of the shape whose parity the last shards hold, one each, in this order.
  std::vector<uint32_t> parity{};
};

/// Assigns streams to `decoding` replicas and the following `prefill` prefill replicas, round
/// robin. A decode stream that rotates has all decoding ones, from its own on (L-M20). Prefill and
/// batches of prefill seats run on the decoding ones when there are no others; mixed streams always
/// do.
std::vector<stream_place> place_streams(const epoch_shape& shape, uint32_t decoding,
                                        uint32_t prefill);

/// Decode streams of these, those on prefill seats included. O(places).
uint32_t batches_of(const std::vector<stream_place>& places);

/// The replicas of a stream, by turn. O(places).
std::vector<uint32_t> places_of(const std::vector<stream_place>& places, stream_id stream);

/// The shards of a plan as its shape numbers them: a seat that does not exist where a cell's parity
/// is missing.
std::vector<seat> held_by(const epoch_shape& shape, const epoch_plan& plan);

/// The seats that can have a part as shard: of its cell's group. Shards with parity come last.
seat_group group_of_shard(const epoch_shape& shape, uint32_t number);

/// The next epoch with the workers in `ready`, or nothing when it cannot decode. A shard stays with
/// the seat that held its part before (`held`, by number), because its KV is there; other parts
/// take the first free seats of their group, spares included. A service may run with fewer replicas
/// than the full shape, with its batches distributed over those left; it needs every shard except
/// those of parity. `held` as held_by() has it. `whole`: requires the full shape.
std::optional<epoch_plan> plan_epoch(const epoch_shape& shape, const std::set<seat>& ready,
                                     const std::vector<seat>& held, bool whole);

/// The missing roles without which no epoch could decode: a part of theirs has no worker and no
/// spare. Prefill falls back to the replicas, so it is never one of them.
std::vector<worker_role> lacking_roles(const epoch_shape& shape, const std::set<seat>& ready,
                                       const std::vector<seat>& held);

/// The part of that seat in an epoch, as text: "replica 1", "shard 2", "parity" or "spare".
std::string part_of(const epoch_plan& plan, const seat& where);

/// Whether an epoch with the workers in `ready` would have more replicas than this one, or parity
/// that this one has not.
bool could_grow(const epoch_shape& shape, const epoch_plan& now, const std::set<seat>& ready);

} // namespace lamella::scheduler
