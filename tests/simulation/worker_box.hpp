/// One seat's process after another: the real WORKER on a simulated device, joining, dying,
/// standing still, and coming back as the next incarnation.
#pragma once

#include "actors/protocol/join.hpp"
#include "actors/protocol/workers.hpp"
#include "actors/worker/worker.hpp"
#include "tests/simulation/links.hpp"
#include "tests/simulation/wires.hpp"

#include <string>

namespace lamella::simulation {

/// What all worker processes share.
struct worker_world {
  caf::actor_system& system;
  timeline& time;
  data_plane& links;
  actors::membership_actor members;
  duration slowest_step = 60us, slowest_message = 2ms;
  std::optional<device_pace> pace{};
  uint64_t free_bytes = scheduler::memory_room::no_limit;
  duration dead = 1s; ///< silence that means death
  uint32_t hosts = 1; ///< by name
  uint32_t next_process = 1, next_host = 1;
};

class worker_box {
public:
  worker_box(worker_world& world, scheduler::seat where)
      : world_{world}, where_{std::move(where)}, host_{world.next_host++} {}
  ~worker_box() { clear(); }
  worker_box(const worker_box&) = delete;
  worker_box& operator=(const worker_box&) = delete;

  /// A new process starts and joins.
  void start() {
    if (alive_ || retired_) return;
    alive_ = true;
    process_ = world_.next_process++;
    wire_ = std::make_shared<wire>(world_.system, world_.time, process_, world_.slowest_message);
    engine_ = std::make_shared<engine>(world_.time, world_.slowest_step, world_.pace);
    joiner_ = world_.system.spawn(
        [this, mine = process_](caf::event_based_actor* self) { return join(self, mine); });
  }

  /// Its seat is taken away: the process that is told to go is not started again; or it is added
  /// again.
  void retire(bool yes) {
    retired_ = yes;
    if (!yes) start();
  }
  bool retired() const { return retired_; }

  /// SIGKILL, a crash: it is gone without a word, and starts again after a while.
  void crash(duration until_restart) {
    if (!alive_) return;
    world_.time.note("crash " + name());
    die();
    // The connection is closed by the system: the other side sees it soon.
    world_.time.in(world_.time.between(100us, 50ms), [w = wire_] { w->lose(shore::control); });
    world_.time.in(until_restart, [this] { start(); });
  }

  /// SIGSTOP and, later, SIGCONT.
  void stop(duration how_long) {
    if (!alive_ || !engine_->running()) return;
    world_.time.note("stop " + name());
    engine_->stop();
    world_.links.hold(process_, world_.time.now() + how_long);
    silence(how_long, [e = engine_] { e->go_on(); });
  }

  /// The control connection carries nothing for so long; the process works on.
  void partition(duration how_long) {
    if (!alive_ || wire_->held()) return;
    world_.time.note("partition " + name());
    silence(how_long, [] {});
  }

  void cut_link() {
    if (!alive_) return;
    world_.time.note("cut " + name());
    world_.links.cut_one(process_);
  }

  /// Its host's data cable is pulled for so long, or what the host sends goes nowhere; the control
  /// network is another one.
  void pull_data_cable(duration how_long, bool one_way = false) {
    world_.time.note((one_way ? "mute data of " : "pull data cable of ") + name());
    world_.links.cables.pull(host_, one_way, how_long);
  }
  /// The data network loses what these two send each other.
  void part_from(const worker_box& other, duration how_long) {
    if (other.host_ == host_) return;
    world_.time.note("part " + name() + " from " + other.name());
    world_.links.cables.part(host_, other.host_, how_long);
  }

  /// Its streams stand still for so long; the process lives.
  void hang(duration how_long) {
    if (!alive_ || !engine_->running()) return;
    world_.time.note("hang " + name());
    engine_->stop();
    world_.time.in(how_long, [e = engine_] { e->go_on(); });
  }

  /// The next works on its streams fail.
  void fail(uint32_t times = 1) {
    if (!alive_) return;
    world_.time.note("fail " + name());
    engine_->fail_next(times);
  }

  /// Its memory forgets all: no trouble that the product can cure, but one that a checker must see.
  void wipe() {
    if (alive_) engine_->wipe();
  }

  void slow_down(uint32_t times, duration how_long) {
    if (!alive_) return;
    world_.time.note("slow " + name());
    engine_->slow_down(times);
    world_.time.in(how_long, [e = engine_] { e->slow_down(1); });
  }

  /// The next frame it sends is lost ("drop") or says that it is another one ("corrupt"), or its
  /// links are closed ("partition"): the product's own injuries.
  void injure(const char* what) {
    if (!alive_ || !worker_) return;
    world_.time.note(std::string{what} + " by " + name());
    caf::anon_send(worker_, actors::worker_injury{what, 0});
  }

  /// Ends all that is left of its processes.
  void clear() {
    if (alive_) die();
    if (wire_) wire_->clear();
  }

  bool alive() const { return alive_; }
  bool idle() const { return !alive_ || engine_->idle(); }
  /// Of a device with a pace.
  duration busy() const { return alive_ ? engine_->busy() : duration{0}; }
  uint32_t incarnations() const { return incarnations_; }
  const scheduler::seat& where() const { return where_; }
  std::string name() const { return scheduler::to_string(where_); }

private:
  void die() {
    alive_ = false;
    wire_->cut();
    engine_->die();
    world_.links.die(process_);
    for (auto& x : {std::exchange(joiner_, nullptr), std::exchange(worker_, nullptr)})
      if (x) caf::anon_send_exit(x, caf::exit_reason::user_shutdown);
  }

  /// Both sides hear nothing of each other; after `dead` each gives the other up.
  void silence(duration how_long, std::function<void()> over) {
    wire_->hold();
    const auto w = wire_;
    const auto mine = process_;
    const auto given_up = world_.time.between(world_.dead, world_.dead + 200ms);
    if (how_long > given_up) world_.time.in(given_up, [w] { w->lose(shore::control); });
    world_.time.in(how_long, [this, w, mine, over] {
      over();
      if (!w->is_cut()) return w->go_on();
      if (alive_ && process_ == mine) leave(); // it finds its connection closed
    });
  }

  /// The process ends and another one takes its place.
  void leave() {
    die();
    wire_->lose(shore::control);
    world_.time.in(world_.time.between(5ms, 300ms), [this] { start(); });
  }

  /// The life of a process, as worker_process has it.
  caf::behavior join(caf::event_based_actor* self, uint32_t mine) {
    const auto door = caf::actor_cast<actors::membership_actor>(
        wire_->seen(caf::actor_cast<caf::strong_actor_ptr>(world_.members), shore::control));
    const auto failed = [this, mine](const caf::error&) { give_up(mine); };
    self->request(door, 5s,
                  actors::seat_ask{std::string{scheduler::to_string(where_.role)}, name(),
                                   host_name(), mine, where_.index, "", where_.cell})
        .then(
            [=, this](const actors::join_grant& grant) {
              // Loading takes a while.
              self->delayed_send(self, world_.time.between(1ms, 80ms), grant);
            },
            failed);
    return {[=, this](const actors::join_grant& grant) {
      ++incarnations_;
      worker_ = nullptr;
      actors::worker_config c;
      c.where = {where_.role, grant.index};
      c.incarnation = grant.incarnation;
      c.terms = grant.terms;
      c.make_device = [e = engine_](const std::string& x, uint32_t) { return e->make_device(x); };
      if (where_.role != scheduler::worker_role::attention) {
        c.program = the_model().loaded.program;
        c.weights = the_model().weights;
      }
      c.free_memory = [bytes = world_.free_bytes] { return bytes; };
      c.port = world_.links.port(mine, host_, engine_);
      c.on_end = [this, mine](const std::string&, actors::worker_end) { give_up(mine); };
      actors::worker_facts facts;
      facts.address = c.port.address;
      const auto handle = world_.system.spawn(actors::worker, std::move(c));
      worker_ = caf::actor_cast<caf::actor>(handle);
      facts.handle = handle;
      facts.version = grant.terms.version;
      facts.kernels = grant.terms.kernels;
      facts.shapes = grant.terms.shapes;
      facts.model_digest = grant.terms.model_digest;
      facts.device = "sim";
      self->request(door, 5s, facts).then([](bool) {}, failed);
    }};
  }

  /// Attention seats are one host further, so that seats with the same number are apart.
  std::string host_name() const {
    const auto further = where_.role == scheduler::worker_role::attention ? 1 : 0;
    return "sim" + std::to_string((where_.index + further) % world_.hosts);
  }

  /// That process has no place any more, or has ended by itself.
  void give_up(uint32_t mine) {
    world_.time.in(0us, [this, mine] {
      if (alive_ && process_ == mine) leave();
    });
  }

  worker_world& world_;
  scheduler::seat where_;
  uint32_t host_;
  bool alive_ = false, retired_ = false;
  uint32_t process_ = 0, incarnations_ = 0;
  std::shared_ptr<wire> wire_;
  std::shared_ptr<engine> engine_;
  caf::actor joiner_, worker_;
};

} // namespace lamella::simulation
