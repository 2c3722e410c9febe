/// Which workers hear each other over the data plane, from what each says of its peers.
#pragma once

#include "scheduler/membership/link_verdicts.hpp"

#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace lamella::scheduler {

/// What a worker says of a peer that it asks again and again.
struct reach_view {
  seat peer;
  bool answers = false;                 ///< it has, and no question has failed since
  std::chrono::milliseconds failing{0}; ///< for so long each question has failed
};

/// Workers ask the shards, shards each other: who connects is who asks, and the answer has come
/// both ways. A pair fails only while both sides answer the control process: one that stands still
/// is for others to find (scheduler/membership/probe_patience).
class reach_book {
public:
  using time_point = std::chrono::steady_clock::time_point;
  using milliseconds = std::chrono::milliseconds;

  /// Questions of a pair fail for so long before anybody is at fault. Pairs that have failed for
  /// less are waited for, twice as long in all: one of them alone would not tell who it is.
  static constexpr milliseconds failing_needed{300};
  /// Whoever is silent for longer has stood still.
  static constexpr milliseconds silence{500};

  /// A worker takes a seat. `able`: it can ask; where it cannot, there is nothing to prove.
  void sits(const seat& who, bool able);
  void left(const seat& who);

  /// What a worker says of all peers that it asks.
  void told(const seat& by, const std::vector<reach_view>& views, time_point now);

  /// The pairs that fail now; none while others may be about to.
  std::set<failed_pair> failed(time_point now) const;

  /// Does some pair fail that nobody is at fault for yet?
  bool doubtful() const;

  /// Does it hear all others, and they it? Those in `fenced` need not, nor those who are silent.
  bool proven(const seat& who, const std::set<seat>& fenced, time_point now) const;

private:
  struct record {
    bool able = false;
    std::optional<time_point> heard, since; ///< newest word; of words with no silence between them
    std::map<seat, reach_view> views;
  };
  /// What is said of the pair: by the one, or by the other.
  bool answers(const seat& by, const seat& peer) const;

  std::map<seat, record> known_;
};

/// How long a worker that was fenced must be heard by all before it gets a part again: longer each
/// time, so that a link that comes and goes costs few epochs. What others do is not delayed.
class fence_rest {
public:
  using time_point = std::chrono::steady_clock::time_point;
  using milliseconds = std::chrono::milliseconds;
  static constexpr milliseconds first{500}, most{60'000};
  static constexpr std::chrono::seconds forgotten_after{300};

  void fenced(time_point now);
  milliseconds rest() const { return rest_; }

private:
  milliseconds rest_{0};
  std::optional<time_point> newest_;
};

} // namespace lamella::scheduler
