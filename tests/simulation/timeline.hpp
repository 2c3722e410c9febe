/// The only clock of a simulation and what will happen on it, beside the timers of actors.
#pragma once

#include "tests/simulation/integer_model.hpp"

#include <caf/all.hpp>
#include <caf/scheduler/test_coordinator.hpp>
#include <spdlog/spdlog.h>

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string_view>

namespace lamella::simulation {

using namespace std::chrono_literals;
using time_point = caf::actor_clock::time_point;
using duration = std::chrono::nanoseconds;

/// Events in the order of their times; of equal times in the order they were asked for.
class timeline {
public:
  timeline(caf::scheduler::test_coordinator& actors, uint64_t seed)
      : actors_{actors}, random{seed}, began_{now()} {}

  time_point now() const { return actors_.clock().current_time; }
  duration elapsed() const { return now() - began_; }

  void at(time_point when, std::function<void()> what) {
    events_.emplace(std::max(when, now()), std::move(what));
  }
  void in(duration after, std::function<void()> what) { at(now() + after, std::move(what)); }

  /// Between `least` and `most`, drawn.
  duration between(duration least, duration most) {
    return least
           + duration{static_cast<int64_t>(
               random.below(static_cast<uint64_t>((most - least).count()) + 1))};
  }
  bool chance(uint64_t per_mille) { return random.below(1000) < per_mille; }

  /// One message of one actor, drawn among those that have one; or time goes on to whatever is
  /// next, until `end` at most. False when nothing is left to happen before it.
  bool step(time_point end) {
    auto& jobs = actors_.jobs;
    if (!jobs.empty()) {
      const auto turn = random.below(jobs.size());
      std::swap(jobs.front(), jobs[turn]);
      note(turn, jobs.size());
      if (random.below(1000) < starved_per_mille)
        put_aside();
      else
        actors_.run_once();
      // An actor's turn takes time now and then, so that devices and wires come in between.
      if (random.below(4) == 0) advance_to(now() + between(0us, 40us));
      return true;
    }
    auto next = end;
    if (!events_.empty()) next = std::min(next, events_.begin()->first);
    const auto& timers = actors_.clock().schedule();
    if (!timers.empty()) next = std::min(next, timers.begin()->first);
    advance_to(next);
    return next < end;
  }

  /// Mixes something that has happened into the log.
  void note(uint64_t what, uint64_t more = 0) {
    log_ = mix(log_, mix(mix(what, more), static_cast<uint64_t>(elapsed().count())));
    ++noted_;
  }
  void note(std::string_view text) {
    spdlog::info("t={:.6f} {}", std::chrono::duration<double>(elapsed()).count(), text);
    for (char c : text) log_ = mix(log_, static_cast<unsigned char>(c));
    note(text.size());
  }
  /// Of all that has happened, in order and with its time.
  uint64_t log() const { return log_; }
  uint64_t noted() const { return noted_; }

  tests::splitmix& dice() { return random; }

  /// So many turns of an actor come much later than they could.
  uint32_t starved_per_mille = 0;

  /// From now on no actor waits for its turn longer than the others do.
  void feed_all() {
    starved_per_mille = 0;
    for (auto* x : std::exchange(aside_, {})) actors_.jobs.push_back(x);
  }

private:
  /// Others go first, for a while.
  void put_aside() {
    auto* starved = actors_.jobs.front();
    actors_.jobs.pop_front();
    aside_.push_back(starved);
    in(between(10us, chance(100) ? 500ms : 10ms), [this, starved] {
      if (std::erase(aside_, starved) > 0) actors_.jobs.push_back(starved);
    });
  }

  void advance_to(time_point when) {
    while (!events_.empty() && events_.begin()->first <= when) {
      auto event = events_.extract(events_.begin());
      turn_clock(event.key());
      event.mapped()();
    }
    turn_clock(when);
  }
  void turn_clock(time_point when) {
    if (when >= now()) actors_.advance_time(when - now());
  }

  caf::scheduler::test_coordinator& actors_;
  tests::splitmix random;
  time_point began_;
  std::multimap<time_point, std::function<void()>> events_;
  std::vector<caf::resumable*> aside_; ///< theirs is the next turn
  uint64_t log_ = 0, noted_ = 0;
};

} // namespace lamella::simulation
