/// Who does what in the next epoch: replicas, shards and the streams between them, from the workers
/// that are there (L-M25, L-M26; reliability A2).
#pragma once

#include "scheduler/membership/seats.hpp"
#include "scheduler/types.hpp"

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace lamella::scheduler {

/// Where an iteration stream runs.
struct stream_place {
  stream_id stream{};
  uint32_t replica = 0; ///< by number: decoding replicas, then those of the prefill pool
  friend bool operator==(const stream_place&, const stream_place&) = default;
};

/// What a service wants when nobody is missing.
struct epoch_shape {
  uint32_t replicas = 1;
  uint32_t shards = 1;
  uint32_t prefill_seats = 0;   ///< 0: prompts run on the decoding replicas
  uint32_t batches = 1;         ///< decode streams
  uint32_t prefill_streams = 1; ///< at least `prefill_seats`
  bool parity = false;          ///< one more shard holds the parity of the others (decision 23)
  /// Streams behind those of prefill, for prompts whose beginning the shards have already: on
  /// decoding replicas, which reach it.
  uint32_t suffix_streams = 0;
};

/// The seats of an epoch by number; the number is what messages and links call them.
struct epoch_plan {
  std::vector<seat> replicas; ///< of the model pool, then of the prefill pool
  std::vector<seat> shards;
  std::vector<stream_place> streams;
  uint32_t decoding = 0; ///< replicas of the model pool
  bool parity = false;   ///< the last shard holds the parity
};

/// Streams over `decoding` replicas and `prefill` prefill replicas behind them, in turn. Prompts
/// run on the decoding ones when there are no others, and suffixes always do.
std::vector<stream_place> place_streams(const epoch_shape& shape, uint32_t decoding,
                                        uint32_t prefill);

/// The next epoch with the workers in `ready`, or nothing when it cannot decode. A shard stays with
/// the seat that held its part before (`held`, by number), because its KV is there; others take the
/// first free ones, spares among them. A service may run with fewer replicas than it wants, and its
/// batches are shared out among those left; it needs every shard but the one of the parity.
/// `whole`: nobody may be missing.
std::optional<epoch_plan> plan_epoch(const epoch_shape& shape, const std::set<seat>& ready,
                                     const std::vector<seat>& held, bool whole);

/// The roles for want of which there is no epoch that could decode: a part of theirs has neither a
/// member nor a spare. Prompts run on replicas when there are no others, so prefill is never one.
std::vector<worker_role> lacking_roles(const epoch_shape& shape, const std::set<seat>& ready,
                                       const std::vector<seat>& held);

/// What that seat does in an epoch, in words: "replica 1", "shard 2", "parity" or "spare".
std::string part_of(const epoch_plan& plan, const seat& where);

/// Would an epoch with the workers in `ready` have more replicas than this one, or a parity that
/// this one lacks?
bool could_grow(const epoch_shape& shape, const epoch_plan& now, const std::set<seat>& ready);

} // namespace lamella::scheduler
