/// The control plane's network: one connection between the control process and each worker process.
/// Actors of the other side are proxies; messages arrive later, in order, or not at all.
#pragma once

#include "actors/protocol/actors.hpp"
#include "actors/protocol/epochs.hpp"
#include "actors/protocol/join.hpp"
#include "tests/simulation/timeline.hpp"

#include <caf/actor_proxy.hpp>

#include <array>
#include <deque>
#include <map>
#include <memory>

namespace lamella::simulation {

/// The two sides of a connection.
enum class shore : uint8_t { control, worker };
constexpr shore opposite(shore x) { return x == shore::control ? shore::worker : shore::control; }

class wire : public std::enable_shared_from_this<wire> {
public:
  /// A message takes up to `slowest`.
  wire(caf::actor_system& system, timeline& time, uint32_t number, duration slowest)
      : system_{system}, time_{time}, number_{number}, slowest_{slowest} {}

  /// An actor of one side as the other side sees it.
  caf::strong_actor_ptr seen(const caf::strong_actor_ptr& x, shore home) {
    if (!x) return nullptr;
    auto& known = proxies_[static_cast<int>(home)];
    if (const auto found = known.find(x->id()); found != known.end()) return found->second;
    caf::actor_config config;
    auto made = caf::make_actor<proxy, caf::strong_actor_ptr>(
        system_.next_actor_id(), system_.node(), &system_, config, weak_from_this(), home, x);
    known.emplace(x->id(), made);
    caf::actor_cast<caf::actor>(x)->attach_functor(
        [weak = weak_from_this(), home,
         weak_proxy = caf::actor_cast<caf::weak_actor_ptr>(made)](const caf::error& reason) {
          auto self = weak.lock();
          if (auto p = weak_proxy.lock(); self && p)
            self->push(home, [p, reason] { end(p, reason); });
        });
    return made;
  }

  /// Nothing arrives while it is held, in either direction; both sides go on later.
  void hold() { held_ = true; }
  void go_on() {
    held_ = false;
    for (auto side : {shore::control, shore::worker}) plan(side);
  }
  bool held() const { return held_; }

  /// What is under way is lost, and nothing is taken any more.
  void cut() {
    cut_ = true;
    for (auto& x : lanes_) x.items.clear();
  }
  bool is_cut() const { return cut_; }

  /// That side has found out: all it sees of the other one is gone.
  void lose(shore side) {
    cut();
    auto gone = std::exchange(proxies_[static_cast<int>(opposite(side))], {});
    for (auto& [id, p] : gone) end(p, caf::exit_reason::remote_link_unreachable);
  }

  /// Lets go of all actors.
  void clear() {
    cut();
    for (auto& x : proxies_) x.clear();
  }

  uint64_t delivered() const { return delivered_; }

private:
  class proxy final : public caf::actor_proxy {
  public:
    proxy(caf::actor_config& config, std::weak_ptr<wire> over, shore home,
          caf::strong_actor_ptr real)
        : caf::actor_proxy{config}, wire_{std::move(over)}, home_{home}, real_{std::move(real)} {}

    void enqueue(caf::mailbox_element_ptr x, caf::execution_unit*) override {
      if (auto over = wire_.lock(); over && !ended_)
        over->send(opposite(home_), x->sender, x->mid, x->move_content_to_message(), real_);
    }
    void kill_proxy(caf::execution_unit* context, caf::error reason) override {
      ended_ = true;
      real_ = nullptr;
      cleanup(std::move(reason), context);
    }

  private:
    std::weak_ptr<wire> wire_;
    shore home_;
    caf::strong_actor_ptr real_;
    bool ended_ = false;
  };

  struct item {
    time_point when;
    std::function<void()> arrive;
  };
  struct lane {
    std::deque<item> items;
    time_point last{};
    bool planned = false;
  };

  static void end(const caf::strong_actor_ptr& p, const caf::error& reason) {
    static_cast<proxy*>(caf::actor_cast<caf::abstract_actor*>(p))->kill_proxy(nullptr, reason);
  }

  void send(shore from, const caf::strong_actor_ptr& sender, caf::message_id id,
            const caf::message& what, const caf::strong_actor_ptr& to) {
    auto carried = carry(from, what);
    auto asker = seen(sender, from);
    push(from, [this, from, asker, id, carried, to] {
      ++delivered_;
      time_.note(static_cast<uint64_t>(from) << 32 | number_, id.integer_value());
      time_.note(to->id(), carried.size());
      to->enqueue(asker, id, carried, nullptr);
    });
  }

  /// Handles in a message become those that the other side can use.
  caf::message carry(shore from, const caf::message& what) {
    const auto across = [&](auto handle) {
      using type = decltype(handle);
      if (!handle) return handle;
      return caf::actor_cast<type>(seen(caf::actor_cast<caf::strong_actor_ptr>(handle), from));
    };
    if (what.match_elements<actors::epoch_ready>()) {
      auto x = what.get_as<actors::epoch_ready>(0);
      x.replica = across(x.replica);
      x.shard = across(x.shard);
      x.own = {across(x.own.replica), across(x.own.shard), across(x.own.source)};
      return caf::make_message(std::move(x));
    }
    if (what.match_elements<actors::worker_facts>()) {
      auto x = what.get_as<actors::worker_facts>(0);
      x.handle = across(x.handle);
      return caf::make_message(std::move(x));
    }
    return what;
  }

  void push(shore from, std::function<void()> arrive) {
    if (cut_) return;
    auto& way = lanes_[static_cast<int>(from)];
    // Mostly quick, now and then slow.
    const auto most = time_.chance(50) ? slowest_ : duration{100us};
    way.last = std::max(way.last, time_.now() + time_.between(10us, most));
    way.items.push_back({way.last, std::move(arrive)});
    plan(from);
  }

  void plan(shore from) {
    auto& way = lanes_[static_cast<int>(from)];
    if (way.planned || way.items.empty() || held_) return;
    way.planned = true;
    time_.at(way.items.front().when, [weak = weak_from_this(), from] {
      if (auto self = weak.lock()) self->arrive(from);
    });
  }

  void arrive(shore from) {
    auto& way = lanes_[static_cast<int>(from)];
    way.planned = false;
    if (held_ || way.items.empty()) return;
    auto next = std::move(way.items.front());
    way.items.pop_front();
    next.arrive();
    plan(from);
  }

  caf::actor_system& system_;
  timeline& time_;
  uint32_t number_;
  duration slowest_;
  std::array<lane, 2> lanes_;                                             ///< by sending side
  std::array<std::map<caf::actor_id, caf::strong_actor_ptr>, 2> proxies_; ///< by home
  bool held_ = false, cut_ = false;
  uint64_t delivered_ = 0;
};

} // namespace lamella::simulation
