/// Token slots of one slot table (V-M11, V-M12; Lamina v1 5.4).
///
/// A slot holds the K and V of one token. Slots are allocated in runs, so that the tokens of a
/// sequence are mostly contiguous, and reference-counted one by one, so that any prefix can be
/// shared.
#pragma once

#include "scheduler/slot_set.hpp"
#include "scheduler/types.hpp"

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace lamella::scheduler {

class slot_pool {
public:
  /// New runs have at least this many slots, as long as such runs are free.
  static constexpr uint32_t run_slots = 16;

  explicit slot_pool(uint32_t slots);

  /// Allocates `slots` slots, each with one reference, or nothing when fewer are free. Extends the
  /// run that ends at `after` (the end of the sequence's last run) where possible, then takes the
  /// run that was freed last (LIFO: its memory is warm). Cost: O(runs * log free runs), amortised.
  std::optional<std::vector<slot_run>> take(uint32_t slots, std::optional<uint32_t> after = {});

  /// Adds a reference to each slot of the runs.
  void share(std::span<const slot_run> runs);

  /// Drops a reference of each slot; slots without references are free.
  void give_back(std::span<const slot_run> runs);

  /// Adds the prefix cache's reference to each slot; the slots are held by sequences and not cached
  /// yet.
  void cache(std::span<const slot_run> runs);

  /// Drops the prefix cache's reference to each slot; slots without references are free.
  void uncache(std::span<const slot_run> runs);

  /// Takes all free slots from `first` on, each with one reference. Cost: O(slots taken).
  std::vector<slot_run> take_from(uint32_t first);

  /// Changes the number of slots; those that go must be free, else throws std::logic_error.
  void resize(uint32_t slots);

  /// From now on the pool remembers which slots become free; or no longer.
  void watch_freed(bool on);
  /// The slots that became free since the last call; some may be in use again.
  std::vector<slot_run> take_freed();

  uint32_t slots() const { return static_cast<uint32_t>(references_.size()); }
  uint32_t free() const { return free_; }
  /// Slots referenced by the prefix cache only: evictable.
  uint32_t cached() const { return cached_; }
  uint32_t used() const { return slots() - free_; }
  /// Slots with a reference, in order and joined. Cost: O(slots).
  std::vector<slot_run> used_runs() const;
  /// Slots that the prefix cache references, in order and joined. Cost: O(slots).
  std::vector<slot_run> cached_runs() const;
  uint32_t references(uint32_t slot) const { return references_[slot]; }

  /// Counts for audits, taken slot by slot; each of the three is stored independently. Cost:
  /// O(slots).
  struct audit {
    uint32_t free = 0;       ///< slots in the free list
    uint32_t used = 0;       ///< slots with a reference
    uint64_t references = 0; ///< of all slots together
  };
  audit count() const;

private:
  struct free_run {
    uint32_t length = 0;
    uint64_t number = 0; ///< grows from run to run
  };
  /// By length: 1, 2 and 3, 4 to 7, 8 to 15, and whole runs.
  static constexpr size_t classes = 5;

  void put_free(uint32_t first, uint32_t length);
  void note(uint32_t first, uint32_t length);
  bool is_there(uint32_t first, uint64_t number) const;
  slot_run take_front(uint32_t first, uint32_t slots);
  std::optional<uint32_t> newest(uint32_t length);

  std::vector<uint16_t> references_;
  std::vector<bool> in_cache_;             ///< one of the references is the prefix cache's
  std::map<uint32_t, free_run> free_runs_; ///< by first slot, never adjacent
  /// Free runs of each class, first slot and number, newest last; may hold some that are gone.
  std::array<std::vector<std::pair<uint32_t, uint64_t>>, classes> stacks_;
  std::optional<slot_set> freed_; ///< while they are watched
  uint64_t numbers_ = 0;
  uint32_t free_ = 0;
  uint32_t cached_ = 0;
};

/// The first `slots` slots of a list of runs.
std::vector<slot_run> prefix(std::span<const slot_run> runs, uint32_t slots);

/// Appends runs, joining those that continue the last one.
void append(std::vector<slot_run>& to, std::span<const slot_run> runs);

/// Slots in a list of runs.
uint32_t length_of(std::span<const slot_run> runs);

} // namespace lamella::scheduler
