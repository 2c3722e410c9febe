/// Which simulated hosts hear each other on the data network, and what processes find out by
/// asking. The control network is another one.
#pragma once

#include "net/data_plane/peer_reach.hpp"
#include "tests/simulation/timeline.hpp"

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <vector>

namespace lamella::simulation {

class cables {
public:
  explicit cables(timeline& time) : time_{time} {}

  /// A process begins on that host.
  void add(uint32_t process, uint32_t host) {
    host_of_[process] = host;
    hosts_.insert(host);
  }
  void die(uint32_t process) {
    gone_.insert(process);
    tell(process);
  }
  /// It stands still until then.
  void hold(uint32_t process, time_point until) {
    held_[process] = until;
    tell(process);
    time_.at(until, [this, process] { tell(process); });
  }

  /// What one host sends to another goes nowhere for so long.
  void block(uint32_t from, uint32_t to, duration how_long) {
    ++blocked_[{from, to}];
    changed();
    time_.in(how_long, [this, way = std::pair{from, to}] {
      if (--blocked_[way] == 0) blocked_.erase(way);
      changed();
    });
  }
  /// Two hosts do not hear each other.
  void part(uint32_t a, uint32_t b, duration how_long) {
    block(a, b, how_long);
    block(b, a, how_long);
  }
  /// A host's cable is pulled, or, `one_way`, what it sends goes nowhere.
  void pull(uint32_t host, bool one_way, duration how_long) {
    for (auto other : std::set{hosts_}) {
      if (other == host) continue;
      block(host, other, how_long);
      if (!one_way) block(other, host, how_long);
    }
  }

  /// Does what the one process sends arrive at the other?
  bool carries(uint32_t from, uint32_t to) const {
    return !blocked_.contains({host_of_.at(from), host_of_.at(to)});
  }
  bool hear_each_other(uint32_t a, uint32_t b) const { return carries(a, b) && carries(b, a); }

  /// As net::data_plane::watch: for as long as it is held.
  std::shared_ptr<const net::peer_reach> watch(uint32_t from, uint32_t to) {
    const auto reach = std::make_shared<net::peer_reach>();
    asked_.push_back({from, to, reach});
    look(asked_.back());
    return reach;
  }

  /// Somebody is heard of again, or no more.
  std::function<void()> on_change;

private:
  struct question {
    uint32_t from, to;
    std::weak_ptr<net::peer_reach> reach;
  };

  bool held(uint32_t process) const {
    const auto found = held_.find(process);
    return found != held_.end() && found->second > time_.now();
  }
  bool answered(const question& x) const {
    return hear_each_other(x.from, x.to) && !gone_.contains(x.to) && !held(x.to);
  }

  /// What that process finds out soon, unless it changes before.
  void look(const question& x) {
    if (gone_.contains(x.from) || held(x.from)) return; // it asks nobody
    const bool now = answered(x);
    time_.in(now ? time_.between(1ms, 100ms) : time_.between(300ms, 400ms), [this, x, now] {
      const auto reach = x.reach.lock();
      if (!reach || held(x.from) || answered(x) != now) return;
      if (now)
        reach->answered();
      else
        reach->failed(time_.now());
    });
  }
  void tell(uint32_t process) {
    std::erase_if(asked_, [](const auto& x) { return x.reach.expired(); });
    for (const auto& x : asked_)
      if (x.from == process || x.to == process) look(x);
  }
  void changed() {
    std::erase_if(asked_, [](const auto& x) { return x.reach.expired(); });
    for (const auto& x : asked_) look(x);
    if (on_change) on_change();
  }

  timeline& time_;
  std::map<uint32_t, uint32_t> host_of_;
  std::set<uint32_t> hosts_, gone_;
  std::map<uint32_t, time_point> held_;
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> blocked_; ///< how often
  std::vector<question> asked_;
};

} // namespace lamella::simulation
