/// MOVER: copies the KV of a pool to the shards of the next epoch while the present one serves.
#pragma once

#include "actors/protocol/actors.hpp"
#include "net/metrics/metrics.hpp"
#include "scheduler/kv/kv_move_chase.hpp"
#include "scheduler/kv/memory_room.hpp"
#include "scheduler/kv_move.hpp"
#include "scheduler/slot_pool.hpp"

#include <caf/all.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace lamella::actors {

/// Configuration of a move; fixed.
struct kv_mover_config {
  uint64_t epoch_before = 0, epoch = 0;
  scheduler::kv_move_shape shape;
  bool level = false; ///< sequences change their tables until these are about equally full
  std::vector<kv_source_actor> lenders;      ///< members of the present epoch, by number
  std::vector<attention_shard_actor> shards; ///< members of the next one
  std::vector<scheduler::memory_room> rooms; ///< of these
  kv_allocator_actor allocator;
  uint64_t slot_bytes = 1;        ///< K and V of a slot, all heads and layers
  uint64_t window_bytes = 0;      ///< that a member's cache makes resident at once
  uint64_t piece_bytes = 8 << 20; ///< copied at once
};

/// A move under way. Its functions run on the thread of the actor that it was made for, and call
/// `done` once: with nothing, or with the reason of a failure.
class kv_mover : public std::enable_shared_from_this<kv_mover> {
public:
  using result = std::function<void(std::optional<std::string> failure)>;

  kv_mover(caf::event_based_actor* self, kv_mover_config config)
      : self_{self}, config_{std::move(config)} {}

  /// Reserves places in the tables of the next epoch. Fails when there is no room.
  void begin(result done);

  /// Why the memory of the next epoch's members does not hold what is in use at the beginning;
  /// nothing: it does.
  const std::optional<scheduler::memory_shortage>& shortage() const { return shortage_; }

  /// Copies what is committed and not yet copied, until nothing is left or little that does not get
  /// less: what is decoded while it is copied is left for copy_rest(). Fails where much is left and
  /// that does not get less.
  void copy(result done);

  /// The same while nothing is launched: a piece that takes seconds is a failure.
  void copy_rest(result done);

  /// Gives back all that was reserved, and ends copies under way.
  void abort();

  uint64_t slots_copied() const { return slots_copied_; }
  uint64_t bytes_copied() const { return slots_copied_ * config_.slot_bytes; }

private:
  struct piece;
  void copy_next(caf::timespan limit, const result& done);
  void copy_piece(const std::shared_ptr<piece>& x, const result& done);
  void copied(const std::shared_ptr<piece>& x, const result& done);
  /// Whether pieces go on behind this one; else `done` is told.
  bool goes_on(const kv_move_piece& x, const result& done);
  uint64_t piece_slots() const;

  caf::event_based_actor* self_;
  kv_mover_config config_;
  uint64_t number_ = 0; ///< of the newest copy
  uint64_t slots_copied_ = 0;
  std::optional<scheduler::kv_move_chase> chase_; ///< while sequences decode
  bool over_ = false;
  std::optional<scheduler::memory_shortage> shortage_;
};

} // namespace lamella::actors
