/// The data plane between simulated processes: real rings whose frames are seen later, in order,
/// links that break, and hosts that do not hear each other (cables.hpp).
#pragma once

#include "actors/machine/link_port.hpp"
#include "net/link/pending_link.hpp"
#include "tests/simulation/cables.hpp"
#include "tests/simulation/devices.hpp"

#include <map>
#include <set>

namespace lamella::simulation {

class data_plane {
public:
  explicit data_plane(timeline& time) : cables{time}, time_{time} {
    cables.on_change = [this] { let_through(); };
  }

  /// The port of process number `process`, on that host.
  actors::link_port port(uint32_t process, uint32_t host, std::shared_ptr<engine> compute) {
    cables.add(process, host);
    actors::link_port p;
    p.address = std::to_string(process);
    p.open = [=, this](const actors::link_order& x) { return open(process, compute, x); };
    p.watch = [=, this](const std::string& address) {
      return cables.watch(process, static_cast<uint32_t>(std::stoul(address)));
    };
    p.report = [](const net::link_key&) { return actors::link_report{"simulated", 1}; };
    p.close = [=, this](uint64_t epoch) {
      for (auto& [key, x] : links_)
        for (auto& s : x.sides)
          if (key.epoch == epoch && s.pending && s.process == process)
            end(s, gpu::channel_state::revoked);
    };
    return p;
  }

  /// The process is gone: its peers see that soon, each at its own time.
  void die(uint32_t process) {
    gone_.insert(process);
    cables.die(process);
    for (auto& [key, x] : links_)
      for (int i = 0; i < 2; ++i)
        if (x.sides[i].pending && x.sides[i].process == process) end_later(x.sides[1 - i]);
  }

  /// Breaks a link of that process, if there is one; both sides see it.
  void cut_one(uint32_t process) {
    std::vector<link*> mine;
    for (auto& [key, x] : links_)
      if (x.bound && (x.sides[0].process == process || x.sides[1].process == process))
        mine.push_back(&x);
    if (mine.empty()) return;
    auto& x = *mine[time_.dice().below(mine.size())];
    end_later(x.sides[0]);
    end_later(x.sides[1]);
  }

  /// Nothing of that process arrives anywhere before then.
  void hold(uint32_t process, time_point until) {
    held_[process] = until;
    cables.hold(process, until);
  }

  /// Links of epochs before this one are forgotten once nobody can use them.
  void forget_before(uint64_t epoch) {
    std::erase_if(links_, [&](const auto& x) { return x.first.epoch + 2 < epoch; });
  }

  class cables cables;

  uint64_t frames() const { return frames_; }
  /// Frames of another epoch than their link's that a receiver was shown.
  uint64_t strangers() const { return strangers_; }

private:
  struct side {
    std::shared_ptr<net::pending_link> pending; ///< null: has not asked yet
    uint32_t process = 0;
    std::shared_ptr<engine> compute;
    gpu::ring_identity self;
    std::optional<gpu::ring_identity> other;
  };
  struct link {
    side sides[2]; ///< replica, shard
    uint64_t bytes = 0;
    uint32_t frames = 0;
    bool bound = false;
  };
  /// When the frames of one direction arrive.
  struct lane {
    uint32_t from = 0, to = 0; ///< processes
    std::shared_ptr<engine> receiver;
    std::deque<time_point> arrivals;
    time_point last{};
  };
  /// Of frames that wait for the other host to be heard of again.
  static constexpr time_point not_yet = time_point::max();

  class late_sender final : public gpu::channel_sender {
  public:
    late_sender(data_plane& of, gpu::ring_place ring, gpu::ring_identity self,
                std::shared_ptr<lane> way, uint32_t process, std::shared_ptr<engine> to)
        : of_{of}, ring_{ring, self}, way_{std::move(way)}, process_{process}, to_{std::move(to)} {}
    gpu::channel_state state() const override { return ring_.state(); }
    void end(gpu::channel_state why) override { ring_.end(why); }
    std::byte* reserve(size_t bytes) override { return ring_.reserve(bytes); }
    size_t slot_bytes() const override { return ring_.slot_bytes(); }
    void commit(const gpu::frame_tag& tag) override {
      ++of_.frames_;
      ring_.commit(tag);
      auto when = of_.time_.now() + of_.time_.between(1us, 80us);
      if (auto held = of_.held_.find(process_); held != of_.held_.end())
        when = std::max(when, held->second);
      if (!of_.cables.carries(way_->from, way_->to)) {
        way_->arrivals.push_back(not_yet);
        return;
      }
      way_->last = std::max(way_->last, when);
      way_->arrivals.push_back(way_->last);
      of_.time_.at(way_->last, [to = to_] { to->ring(); });
    }

  private:
    data_plane& of_;
    gpu::ring_sender ring_;
    std::shared_ptr<lane> way_;
    uint32_t process_;
    std::shared_ptr<engine> to_;
  };

  class late_receiver final : public gpu::channel_receiver {
  public:
    late_receiver(data_plane& of, gpu::ring_place ring, std::shared_ptr<lane> way,
                  std::shared_ptr<engine> from)
        : of_{of}, ring_{ring}, epoch_{ring.terms.epoch}, way_{std::move(way)}, from_{std::move(
                                                                                    from)} {}
    gpu::channel_state state() const override { return ring_.state(); }
    void end(gpu::channel_state why) override { ring_.end(why); }
    const gpu::frame* peek(size_t ahead) override {
      if (ahead >= way_->arrivals.size() || way_->arrivals[ahead] > of_.time_.now()) return nullptr;
      const auto* found = ring_.peek(ahead);
      if (found != nullptr && found->tag.epoch != epoch_) ++of_.strangers_;
      return found;
    }
    void release() override {
      way_->arrivals.pop_front();
      ring_.release();
      from_->ring();
    }

  private:
    data_plane& of_;
    gpu::ring_receiver ring_;
    uint64_t epoch_;
    std::shared_ptr<lane> way_;
    std::shared_ptr<engine> from_;
  };

  net::link_end open(uint32_t process, const std::shared_ptr<engine>& compute,
                     const actors::link_order& x) {
    auto& l = links_[x.key];
    auto& mine = l.sides[x.side == actors::link_side::replica ? 0 : 1];
    mine = {std::make_shared<net::pending_link>(x.key, gpu::slot_room(x.frame_bytes), compute,
                                                [](gpu::channel_state) {}),
            process, compute, x.self, x.other};
    l.bytes = std::max(l.bytes, gpu::slot_room(x.frame_bytes));
    l.frames = x.frames;
    time_.in(x.timeout, [this, key = x.key, pending = mine.pending] {
      const auto found = links_.find(key);
      if (found != links_.end() && !found->second.bound) pending->end(gpu::channel_state::closed);
    });
    if (l.sides[0].pending && l.sides[1].pending)
      time_.in(time_.between(50us, 5ms), [this, key = x.key] { meet(key); });
    return mine.pending->ends();
  }

  void meet(const net::link_key& key) {
    const auto found = links_.find(key);
    if (found == links_.end() || found->second.bound) return;
    auto& x = found->second;
    for (const auto& s : x.sides)
      if (gone_.contains(s.process) || s.pending->state() != gpu::channel_state::open) return;
    if (!cables.hear_each_other(x.sides[0].process, x.sides[1].process)) {
      time_.in(time_.between(50ms, 300ms), [this, key] { meet(key); }); // as it is tried again
      return;
    }
    x.bound = true;
    const auto forth = make_way(key, x, 0), back = make_way(key, x, 1);
    x.sides[0].pending->bind({forth.first, back.second});
    x.sides[1].pending->bind({back.first, forth.second});
  }

  /// A ring from one side to the other.
  std::pair<std::shared_ptr<gpu::channel_sender>, std::shared_ptr<gpu::channel_receiver>>
  make_way(const net::link_key& key, const link& x, int from) {
    gpu::ring_terms terms;
    terms.slots = x.frames;
    terms.slot_bytes = x.bytes;
    terms.epoch = key.epoch;
    terms.crc_every = 1;
    auto memory = std::make_shared<actors::test::plain_memory>(terms.bytes());
    gpu::make_ring(memory->data(), terms);
    const auto& sender = x.sides[from];
    const auto& receiver = x.sides[1 - from];
    terms.peer = receiver.other;
    const auto way = std::make_shared<lane>();
    way->from = sender.process;
    way->to = receiver.process;
    way->receiver = receiver.compute;
    lanes_.push_back(way);
    return {
        std::make_shared<late_sender>(
            *this, gpu::ring_place{memory->data(), memory, sender.compute, receiver.compute, terms},
            sender.self, way, sender.process, receiver.compute),
        std::make_shared<late_receiver>(
            *this, gpu::ring_place{memory->data(), memory, receiver.compute, sender.compute, terms},
            way, sender.compute)};
  }

  /// What waited is sent again, in its order; a link of which nothing is acknowledged is given up.
  void let_through() {
    std::erase_if(lanes_, [](const auto& weak) { return weak.expired(); });
    for (const auto& weak : lanes_) {
      const auto way = weak.lock();
      if (!cables.carries(way->from, way->to)) continue;
      for (auto& when : way->arrivals) {
        if (when != not_yet) continue;
        way->last = when = std::max(way->last, time_.now() + time_.between(1ms, 200ms));
        time_.at(when, [to = way->receiver] { to->ring(); });
      }
    }
    for (auto& [key, x] : links_)
      if (x.bound && !cables.hear_each_other(x.sides[0].process, x.sides[1].process))
        time_.in(unread, [this, key = key] { give_up_unread(key); });
  }
  void give_up_unread(const net::link_key& key) {
    const auto found = links_.find(key);
    if (found == links_.end()) return;
    const auto& sides = found->second.sides;
    if (cables.hear_each_other(sides[0].process, sides[1].process)) return;
    for (const auto& s : sides) end(s, gpu::channel_state::closed);
  }

  static void end(const side& s, gpu::channel_state why) { s.pending->end(why); }
  void end_later(const side& s) {
    if (!s.pending) return;
    time_.in(time_.between(100us, 100ms),
             [pending = s.pending] { pending->end(gpu::channel_state::closed); });
  }

  static constexpr duration unread = 5s; ///< as net::data_plane_options has it

  timeline& time_;
  std::map<net::link_key, link> links_;
  std::vector<std::weak_ptr<lane>> lanes_;
  std::set<uint32_t> gone_;
  std::map<uint32_t, time_point> held_;
  uint64_t frames_ = 0, strangers_ = 0;
};

} // namespace lamella::simulation
