/// The seats of the control process itself: the real OWN SEATS, WORKERs and links within a process,
/// on one simulated engine.
#pragma once

#include "actors/membership/membership.hpp"
#include "actors/node/own_seats.hpp"
#include "actors/protocol/work_reports.hpp"
#include "actors/worker/in_process_links.hpp"
#include "actors/worker/shared_port.hpp"
#include "tests/simulation/devices.hpp"

#include <set>

namespace lamella::simulation {

class own_process {
public:
  own_process(timeline& time, duration slowest_step, const std::set<scheduler::seat>& seats,
              uint64_t free_bytes)
      : time_{time}, engine_{std::make_shared<engine>(time, slowest_step)},
        seats_{seats.begin(), seats.end()}, free_bytes_{free_bytes} {}

  /// As actors/node/own_maker.hpp has it.
  actors::own_seats_config config() {
    actors::own_seats_config x;
    x.seats = seats_;
    x.own_threads = false;
    x.make = [e = engine_, links = links_, port = port_,
              bytes = free_bytes_](const scheduler::seat& where, const actors::join_grant& grant) {
      actors::worker_config c;
      c.where = where;
      c.incarnation = grant.incarnation;
      c.terms = grant.terms;
      c.make_device = [e](const std::string& name, uint32_t) { return e->make_device(name); };
      c.program = the_model().loaded.program;
      c.weights = the_model().weights;
      c.free_memory = [bytes] { return bytes; };
      c.port = port->of_worker();
      links->sits(scheduler::number_of(where), e->make_device(actors::name_of(where)));
      actors::worker_facts facts{{}, "sim", grant.terms.kernels, "sim", 0, c.port.address, "sim"};
      return actors::own_worker{std::move(c), std::move(facts)};
    };
    return x;
  }

  /// What control_plane does in MEMBERSHIP's name, but for suspects.
  void listen(actors::membership_config& m, const actors::own_seats_actor& own, bool& given_up) {
    m.on_hopeless = [&given_up](const std::string&) { given_up = true; };
    m.on_part_lost = [this](const actors::worker_info&, uint64_t epoch,
                            std::vector<scheduler::stream_id>, bool) { epoch_ = epoch; };
    m.on_worker = [this, own, told = m.on_worker](const actors::worker_info& x, bool lost,
                                                  bool own_fault) {
      if (told) told(x, lost, own_fault);
      if (lost)
        caf::anon_send(own, actors::own_seat_lost{x.seat, x.trouble, std::exchange(epoch_, 0)});
    };
  }

  const std::vector<scheduler::seat>& seats() const { return seats_; }

  /// As worker_box has them.
  void hang(duration how_long) {
    if (!engine_->running()) return;
    time_.note("hang");
    engine_->stop();
    time_.in(how_long, [e = engine_] { e->go_on(); });
  }
  void fail(uint32_t times) {
    time_.note("fail");
    engine_->fail_next(times);
  }
  void slow_down(uint32_t times, duration how_long) {
    time_.note("slow");
    engine_->slow_down(times);
    time_.in(how_long, [e = engine_] { e->slow_down(1); });
  }
  void wipe() { engine_->wipe(); }
  bool idle() const { return engine_->idle(); }
  void die() { engine_->die(); }

private:
  timeline& time_;
  std::shared_ptr<engine> engine_;
  std::shared_ptr<actors::in_process_links> links_ = std::make_shared<actors::in_process_links>();
  std::shared_ptr<actors::shared_port> port_ =
      std::make_shared<actors::shared_port>(links_->port());
  std::vector<scheduler::seat> seats_;
  uint64_t free_bytes_;
  uint64_t epoch_ = 0;
};

} // namespace lamella::simulation
