/// Data plane reachability between workers, from the reports of each on its peers.
#pragma once

#include "scheduler/membership/link_verdicts.hpp"

#include <algorithm>
#include <chrono>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace lamella::scheduler {

/// Report of a worker on a peer that it probes.
struct reach_view {
  seat peer;
  bool answers = false;                 ///< it has replied, and no probe has failed since
  std::chrono::milliseconds failing{0}; ///< for how long all probes have failed
};

/// Time for which the probes of a pair must fail before a worker is blamed, and reply timeout of
/// one probe. `dead`: control.dead_seconds; machines whose workers may be silent for long have
/// threads that get no processor for long, those of the data plane too.
constexpr std::chrono::milliseconds failing_needed(std::chrono::milliseconds dead) {
  return std::max(std::chrono::milliseconds{300}, dead / 10);
}

/// Workers probe the shards, and shards probe each other: the connecting side probes, and a reply
/// proves both directions. A pair fails only while both sides reply to the control process: stopped
/// workers are detected elsewhere (scheduler/membership/probe_timeout).
class reach_book {
public:
  using time_point = std::chrono::steady_clock::time_point;
  using milliseconds = std::chrono::milliseconds;

  /// A worker that is silent for longer counts as stopped.
  static constexpr milliseconds silence{500};
  static constexpr milliseconds torn_window{10'000};
  static constexpr size_t torn_needed = 4;

  /// `failing_needed`: see there. Pairs that have failed for less are waited for, up to twice as
  /// long in all: one pair alone does not identify the worker at fault.
  explicit reach_book(milliseconds failing_needed = scheduler::failing_needed({}))
      : failing_needed_{failing_needed} {}

  /// Replicas connect links among themselves too (L-M21).
  void replicas_meet() { replicas_meet_ = true; }

  /// A worker takes a seat. `able`: it can probe; if not, nothing is checked.
  void sits(const seat& who, bool able);
  void left(const seat& who);

  /// Report of a worker on all peers that it probes.
  void told(const seat& by, const std::vector<reach_view>& views, time_point now);

  /// The pairs that fail now; none while further pairs may be about to fail.
  std::set<failed_pair> failed(time_point now) const;

  /// Links that `by` has ended since it sits there because frames of whoever sat in the seat `peer`
  /// failed their checks.
  void torn(const seat& by, const seat& peer, uint32_t links, time_point now);

  /// Pairs whose links were torn, made anew and torn again within `torn_window`; none while no
  /// worker has had `torn_needed` of these. One bit that flips is no reason to move a part.
  std::set<failed_pair> torn_again(time_point now) const;

  /// Whether a pair fails for which no worker is at fault yet.
  bool doubtful() const;

  /// Whether it reaches all others and they reach it, except for those in `fenced` and silent ones.
  bool proven(const seat& who, const std::set<seat>& fenced, time_point now) const;

private:
  struct tears {
    uint32_t told = 0;
    std::deque<time_point> when; ///< the newest `torn_needed`
  };
  struct record {
    bool able = false;
    std::optional<time_point> heard, since; ///< newest report; start of reports without a gap
    std::map<seat, reach_view> views;
    std::map<seat, tears> torn; ///< of links with these peers
  };
  /// The report on the pair by the one, or by the other.
  bool answers(const seat& by, const seat& peer) const;

  /// Whether the one connects links to the other.
  bool connects(const seat& by, const seat& peer) const;

  milliseconds failing_needed_;
  bool replicas_meet_ = false;
  std::map<seat, record> known_;
};

/// How long a fenced worker must be reachable by all before it gets a part again: longer each time,
/// so that a flapping link costs few epochs. Other workers are not delayed.
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
