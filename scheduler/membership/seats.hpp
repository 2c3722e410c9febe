/// Who sits where: the logical places of workers, and the incarnations of those who take them.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace lamella::scheduler {

/// What a worker process does: run the model for decoding, keep KV and attend, run prompts.
enum class worker_role : uint8_t { model, attention, prefill };

/// "model", "attention", "prefill", as in the keys of pools.
std::string_view to_string(worker_role role);
std::optional<worker_role> role_named(std::string_view text);

/// A seat: a role's place number `index`. Written "model/0".
struct seat {
  worker_role role = worker_role::model;
  uint32_t index = 0;
  friend auto operator<=>(const seat&, const seat&) = default;
};
std::string to_string(const seat& x);

/// A number for each seat of the service, for the headers of frames.
uint16_t number_of(const seat& x);

/// The seats of all pools. A seat that is taken again gets the next incarnation, and an incarnation
/// is never used twice (reliability A3).
class seat_plan {
public:
  /// Adds seats for a role; they are free.
  void add(worker_role role, uint32_t members);

  struct taken {
    seat where;
    uint32_t incarnation = 0; ///< from 1
  };

  /// The wished seat where it is free, else the first free one of the role. Nothing when there is
  /// none.
  std::optional<taken> take(worker_role role, std::optional<uint32_t> wish = std::nullopt);

  /// Frees a seat; false when that incarnation does not sit there (any more).
  bool give_back(const seat& where, uint32_t incarnation);

  bool complete() const { return free_count() == 0; }
  uint32_t free_count() const;
  bool occupied(const seat& where) const;
  uint32_t members(worker_role role) const;
  uint32_t taken_count(worker_role role) const;

  /// The free seats, in order, with the incarnation that sat there last (0: nobody ever did).
  std::vector<taken> free_seats() const;

  std::set<seat> all() const;

  /// The free seats, in order: "model/1, attention/0"; empty when there are none.
  std::string missing() const;

private:
  struct place {
    seat where;
    uint32_t incarnation = 0; ///< of who sits here or sat here last
    bool occupied = false;
  };
  std::vector<place> places_;
};

} // namespace lamella::scheduler
