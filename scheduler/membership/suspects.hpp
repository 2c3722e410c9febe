/// Which request kills workers? Found by running suspects apart from the others, in halves
/// (reliability A8, "poisoned request").
///
/// An end counts when the worker ended by its own fault. A request that was in flight in two of
/// them is a suspect; suspects wait, and run a group at a time. A group whose worker ends is cut in
/// two, one that stays clean is free again, and a request that is alone in flight at two ends at
/// the same place is poisonous. One poisoned request among n costs about log2(n) + 4 ends.
#pragma once

#include "scheduler/types.hpp"

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <vector>

namespace lamella::scheduler {

/// A request that was in flight in a worker when that ended, and how many tokens it had.
struct in_flight {
  request_id request{};
  uint32_t tokens = 0;
};

class suspects {
public:
  static constexpr uint32_t ends_to_suspect = 2;
  static constexpr uint32_t clean_tokens = 8; ///< of each request, for its group to be free again

  /// May a request run now, and with whom?
  enum class leave : uint8_t {
    with_others, ///< it is not suspected
    in_test,     ///< it is of the group under test: with nobody else in the same worker
    wait,        ///< it is of a later group, or others must wait (others_wait())
  };
  leave leave_of(request_id x) const;

  /// A group is under test; nobody else may be where it runs.
  bool hunting() const { return !groups_.empty(); }

  /// While a group is under test nobody else may run at all: to keep others out of its worker was
  /// not enough, the worker that ended served them as well.
  bool others_wait() const { return hunting() && strict_; }

  /// A worker has ended by its own fault with these requests in flight. Returns the one that is
  /// found to be poisonous; it is forgotten. To be told once per run: two workers that end at the
  /// same time are one end. O(n log n).
  std::optional<request_id> on_end(std::span<const in_flight> flights);

  /// The request has so many tokens now. True when that ended the test of a group.
  bool on_tokens(request_id x, uint32_t tokens);

  /// The request is over. True when that ended the test of a group.
  bool forget(request_id x);

  /// The request stops for as long as it likes (its reader does): nobody waits for its test. It is
  /// a suspect again after its next end. True when that ended the test of a group.
  bool excuse(request_id x);

  /// In how many ends it was that are not explained yet.
  uint32_t ends_of(request_id x) const;

private:
  /// Requests that run together when it is their turn.
  struct group {
    std::set<request_id> members;
    /// It and the next one were cut from a group with a poisonous member: when it is clean, the
    /// next one need not be tested as a whole.
    bool paired = false;
  };

  void add_halves(std::deque<group>& to, const std::set<request_id>& members, bool paired) const;
  void on_end_in_test(const std::set<request_id>& in_test, bool others_too);
  void add_suspects(const std::set<request_id>& others);
  bool end_clean_tests();
  void begin_turn();
  void remove(request_id x);
  bool is_suspect(request_id x) const;

  std::deque<group> groups_;                    ///< the first one is under test
  std::map<request_id, uint32_t> ends_;         ///< unexplained ends with it in flight
  std::map<request_id, uint32_t> alone_at_;     ///< tokens it had at an end at which it was alone
  std::map<request_id, uint32_t> first_tokens_; ///< of the group under test: when first told of
  std::set<request_id> clean_;                  ///< of the group under test
  bool strict_ = false;
};

} // namespace lamella::scheduler
