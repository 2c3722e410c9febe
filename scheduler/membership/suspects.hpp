/// Search for poison requests, by bisecting isolated suspects (reliability A8, "poisoned request").
///
/// A crash counts when it is the worker's own fault. A request in flight in two crashes is a
/// suspect; suspects wait, and run one group at a time. A group whose worker crashes is split in
/// two, a group that stays clean is released, and a request that is alone in flight in two crashes
/// at the same place is poisonous. One poison request among n costs about log2(n) + 4 crashes.
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

/// A request in flight in a crashed worker, and its number of tokens.
struct in_flight {
  request_id request{};
  uint32_t tokens = 0;
};

class suspects {
public:
  static constexpr uint32_t ends_to_suspect = 2;
  static constexpr uint32_t clean_tokens = 8; ///< of each request, until its group is released

  /// Whether a request may run now, and with which others.
  enum class leave : uint8_t {
    with_others, ///< not a suspect
    in_test,     ///< in the group under test: isolated in its worker
    wait,        ///< in a later group, or others must wait (others_wait())
  };
  leave leave_of(request_id x) const;

  /// A group is under test; no other request may run in its worker.
  bool hunting() const { return !groups_.empty(); }

  /// While a group is under test no other request may run at all: isolating its worker was not
  /// enough, because the crashed worker served them as well.
  bool others_wait() const { return hunting() && strict_; }

  /// A worker has crashed with these requests in flight. Returns the request found to be poisonous,
  /// which is then dropped. Call once per run: two workers that crash at the same time are one
  /// crash. O(n log n).
  std::optional<request_id> on_end(std::span<const in_flight> flights);

  /// The request now has `tokens` tokens. True when that ended the test of a group.
  bool on_tokens(request_id x, uint32_t tokens);

  /// The request has ended. True when that ended the test of a group.
  bool forget(request_id x);

  /// The request is paused for an unknown time (by its client): its test is not waited for. It is a
  /// suspect again after its next crash. True when that ended the test of a group.
  bool excuse(request_id x);

  /// Number of unexplained crashes with it in flight.
  uint32_t ends_of(request_id x) const;

private:
  /// Requests that are tested together.
  struct group {
    std::set<request_id> members;
    /// It and the next one were split from a group with a poisonous member: when it is clean, the
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
  std::map<request_id, uint32_t> ends_;         ///< unexplained crashes with it in flight
  std::map<request_id, uint32_t> alone_at_;     ///< tokens at a crash in which it was alone
  std::map<request_id, uint32_t> first_tokens_; ///< of the group under test: when first reported
  std::set<request_id> clean_;                  ///< of the group under test
  bool strict_ = false;
};

} // namespace lamella::scheduler
