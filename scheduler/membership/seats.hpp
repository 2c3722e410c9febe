/// Seats: the logical places of workers, and the incarnations of their workers.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace lamella::scheduler {

/// Role of a worker process: decode with the model, keep KV and run attention, run prefill.
enum class worker_role : uint8_t { model, attention, prefill };

/// "model", "attention", "prefill", as in the keys of pools.
std::string_view to_string(worker_role role);
std::optional<worker_role> role_named(std::string_view text);

/// Seats whose workers can replace each other: of a pool, or of the attention cells whose device,
/// placement or threads are others than the pool's.
struct seat_group {
  worker_role role = worker_role::model;
  std::string cell{}; ///< name of the first of these cells; empty: as the pool itself says
  seat_group(worker_role pool, std::string own = {}) : role{pool}, cell{std::move(own)} {}
  friend auto operator<=>(const seat_group&, const seat_group&) = default;
};
/// "attention", "attention/far", as `lamella scale` names pools and cells.
std::string to_string(const seat_group& x);

/// A seat: place `index` of a role, whatever its group is. Written "model/0".
struct seat {
  worker_role role = worker_role::model;
  uint32_t index = 0;
  std::string cell{}; ///< of its group
  seat_group group() const { return {role, cell}; }
  friend auto operator<=>(const seat&, const seat&) = default;
};
std::string to_string(const seat& x);

/// A number for each seat of the service, for the headers of frames.
uint16_t number_of(const seat& x);

/// The seats of all pools. A seat that is retaken gets the next incarnation, and an incarnation is
/// never reused (reliability A3).
class seat_plan {
public:
  /// Adds seats for a group, at the lowest unused places of its role; they are free.
  void add(const seat_group& group, uint32_t members);

  /// Takes a free seat away. Its place may be added again; incarnations go on from there.
  void remove(const seat& where);

  struct taken {
    seat where;
    uint32_t incarnation = 0; ///< from 1
  };

  /// Takes the preferred seat if it is free, else the first free one of the group. Nothing when
  /// there is none.
  std::optional<taken> take(const seat_group& group,
                            std::optional<uint32_t> preferred = std::nullopt);

  /// Frees a seat; false when that incarnation is not its current holder.
  bool give_back(const seat& where, uint32_t incarnation);

  bool complete() const { return free_count() == 0; }
  uint32_t free_count() const;
  bool occupied(const seat& where) const;
  /// The seat with that index, whatever its group is.
  std::optional<seat> find(worker_role role, uint32_t index) const;

  /// How many seats of its group have lower indices.
  uint32_t place_of(const seat& x) const;

  /// Of all groups of a role.
  uint32_t members(worker_role role) const;
  uint32_t members_of(const seat_group& group) const;
  uint32_t taken_count(worker_role role) const;

  /// The free seats, in order, with the last incarnation (0: never taken).
  std::vector<taken> free_seats() const;

  std::set<seat> all() const;

  /// The free seats, in order: "model/1, attention/0"; empty when there are none.
  std::string missing() const;

private:
  struct place {
    seat where;
    uint32_t incarnation = 0; ///< of the current or last holder
    bool occupied = false;
  };
  std::vector<place> places_; ///< in order; one for each index of a role
  /// Last incarnation of seats that were taken away, by role and index.
  std::map<std::pair<worker_role, uint32_t>, uint32_t> removed_;
};

} // namespace lamella::scheduler
