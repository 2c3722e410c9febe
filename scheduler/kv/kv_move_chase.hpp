/// When the copies of a move have come as near to what is decoded meanwhile as they can.
#pragma once

#include <cstdint>
#include <map>
#include <utility>

namespace lamella::scheduler {

/// Follows the pieces of a move whose sequences go on decoding. It ends: each piece either finds
/// less to copy than the piece before it between the same tables, or is counted.
class kv_move_chase {
public:
  enum class state : uint8_t {
    on,    ///< copying gains on decoding
    near,  ///< about a piece of each pair of tables is left, and it does not get less
    behind ///< more than that is left, and it does not get less
  };
  static constexpr uint32_t growths_max = 64;

  /// A piece between these tables; `left`: all slots that were not copied before it; `piece`: the
  /// slots of the largest piece.
  state look(uint32_t from, uint32_t to, uint64_t left, uint64_t piece) {
    const auto [seen, first] = left_.try_emplace({from, to}, left);
    if (first || left < std::exchange(seen->second, left)) return state::on;
    if (left <= piece * left_.size()) return state::near;
    return ++growths_ < growths_max ? state::on : state::behind;
  }

private:
  std::map<std::pair<uint32_t, uint32_t>, uint64_t> left_; ///< at the newest piece of each pair
  uint32_t growths_ = 0;
};

} // namespace lamella::scheduler
