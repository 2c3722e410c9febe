// A worker process whose WORKER has ended can serve nobody: it must end, too, whether or not the
// actor could still say why (reliability A8).
#include "actors/protocol/epochs.hpp"
#include "actors/protocol/join.hpp"
#include "actors/protocol/pools.hpp"
#include "actors/protocol/status.hpp"
#include "actors/protocol/system_config.hpp"
#include "actors/protocol/traces.hpp"
#include "actors/protocol/workers.hpp"
#include "actors/worker/control_link.hpp"
#include "actors/worker/door.hpp"
#include "tests/actors/worker/joined.hpp"

#include <caf/io/all.hpp>

namespace lamella::actors::test {

namespace {

/// A control process as small as can be: a real door, and a membership that takes whoever comes.
class taker {
public:
  taker() : options_{2, control()}, system_{options_} {
    const auto members =
        system_.spawn([this](membership_actor::pointer self) { return behavior(self); });
    door_config d{net::shared_secret::from_file(secret_file),
                  "cluster",
                  LAMELLA_VERSION,
                  100,
                  120'000,
                  members,
                  [] { return net::random_bytes(nonce_bytes); }};
    door_ = system_.spawn(door, std::move(d));
    members_ = members;
    gate_ = publish_door(system_, door_, control(), {net::shared_secret::from_file(secret_file)});
    port = gate_->port();
  }
  ~taker() {
    gate_.reset();
    caf::scoped_actor self{system_}; // the door obeys nobody without a name
    self->send_exit(door_, caf::exit_reason::user_shutdown);
    self->send_exit(members_, caf::exit_reason::user_shutdown);
  }

  /// The worker that has joined; null before.
  worker_actor joined() {
    std::lock_guard lock{mutex_};
    return joined_;
  }

  /// Who wanted to leave.
  std::vector<std::string> drained() {
    std::lock_guard lock{mutex_};
    return drained_;
  }

  static config::control_settings control() {
    config::control_settings x;
    x.listen = "127.0.0.1:0";
    x.dead = std::chrono::seconds{120};
    return x;
  }

  tests::scratch_folder folder;
  std::filesystem::path secret_file = make_secret();
  uint16_t port = 0;
  std::atomic<bool> refuses{false}; ///< to let a worker leave

private:
  std::filesystem::path make_secret() {
    const auto file = folder / "secret";
    std::ofstream{file} << std::string(40, 's') << "\n";
    chmod(file.c_str(), 0400);
    return file;
  }

  membership_actor::behavior_type behavior(membership_actor::pointer self) {
    return {[](const seat_ask& x) {
              worker_terms t;
              t.version = LAMELLA_VERSION;
              t.kernels = "reference";
              t.shapes = "any";
              t.threads = 1;
              t.transport = "shm";
              t.link_secret = std::string(32, 'l');
              return join_grant{x.proof, x.role, 0, 1, 0, t};
            },
            [this](const worker_facts& x) {
              std::lock_guard lock{mutex_};
              joined_ = x.handle;
              return true;
            },
            [self](caf::open_atom, uint64_t) -> caf::result<epoch_members> {
              return self->make_response_promise<epoch_members>();
            },
            [](const epoch_next&) -> caf::result<epoch_members> {
              return caf::make_error(ec::aborted);
            },
            [](const epoch_settled&) {},
            [](const pool_resize&) { return pool_change{}; },
            [this](const worker_drain& x) -> caf::result<pool_change> {
              std::lock_guard lock{mutex_};
              drained_.push_back(x.worker);
              if (refuses) return caf::make_error(ec::resize_refused, "test");
              return pool_change{"attention", 2, 1, "under way", {}};
            },
            [](const pool_balance&) {},
            [](const pool_bounds&) {},
            [](wake_atom, const std::string&, uint32_t) {},
            [](const worker_stopped&) {},
            [](const seat_failing&) {},
            [](caf::tick_atom) {},
            [](probe_atom) {},
            [](const injure&) { return std::string{}; },
            [](const trace_workers_ask&) { return trace_workers{}; },
            [](status_atom) { return system_status{}; }};
  }

  system_config options_;
  caf::actor_system system_;
  std::mutex mutex_; ///< of the next one
  worker_actor joined_;
  std::vector<std::string> drained_;
  door_actor door_;
  std::unique_ptr<net::control_gate> gate_;
  membership_actor members_;
};

} // namespace

TEST_CASE("A2 worker process: when its WORKER ends, it ends and says that it failed") {
  spdlog::set_level(spdlog::level::off);
  taker control;
  const auto ends_with = [&](auto end, session_end wanted) {
    worker_options o;
    o.role = scheduler::worker_role::attention;
    o.name = "w";
    o.join = {"127.0.0.1", control.port};
    o.control = taker::control();
    worker_process process{o, net::shared_secret::from_file(control.secret_file),
                           data_plane_links("127.0.0.1:0")};
    const auto known = control.joined();
    std::atomic<bool> over{false}, stop{false};
    auto last = session_end::stopped;
    std::thread runs{[&] {
      do // a join that a busy machine was too slow for is tried again, as a worker does
        last = process.run([&] { return stop.load(); });
      while (!process.served() && !stop && last != session_end::failed);
      over = true;
    }};
    CHECK(eventually([&] { return control.joined() != known; }));
    end(control.joined());
    CHECK(eventually([&] { return over.load(); }));
    stop = true;
    runs.join();
    CHECK(last == wanted);
    CHECK(process.served());
  };
  // By a bug: it says nothing.
  ends_with([](const worker_actor& x) { caf::anon_send_exit(x, caf::exit_reason::kill); },
            session_end::failed);
  // It is sent away.
  ends_with([](const worker_actor& x) { caf::anon_send(x, worker_leave{"test"}); },
            session_end::lost);
}

namespace {

/// A worker that serves, and what becomes of it when it is told to stop.
struct leaving {
  taker& control;
  worker_process process;
  std::atomic<bool> stop{false}, hurry{false}, over{false};
  std::atomic<session_end> last{session_end::unreachable};
  std::thread thread;

  leaving(taker& t, std::chrono::milliseconds drain)
      : control{t}, process{options(t, drain), net::shared_secret::from_file(t.secret_file),
                            data_plane_links("127.0.0.1:0")} {
    const auto known = control.joined();
    thread = std::thread{[this] {
      do last = process.run([this] { return stop.load(); }, [this] { return hurry.load(); });
      while (!process.served() && !stop);
      over = true;
    }};
    CHECK(eventually([&] { return control.joined() != known; }));
  }
  ~leaving() {
    stop = hurry = true;
    thread.join();
  }
  static worker_options options(taker& t, std::chrono::milliseconds drain) {
    worker_options o;
    o.role = scheduler::worker_role::attention;
    o.name = "w";
    o.join = {"127.0.0.1", t.port};
    o.control = taker::control();
    o.drain = drain;
    return o;
  }
  /// As by SIGTERM; waits until it has asked to leave.
  void tell_to_stop() {
    const auto before = control.drained().size();
    stop = true;
    CHECK(eventually([&] { return control.drained().size() > before; }));
  }
  bool ends() {
    return eventually([&] { return over.load(); });
  }
};

} // namespace

TEST_CASE(
    "a worker that is told to stop serves on until it is sent away, and then rejoins nobody") {
  spdlog::set_level(spdlog::level::off);
  taker control;
  leaving worker{control, std::chrono::minutes{10}};
  worker.tell_to_stop();
  CHECK(control.drained() == std::vector<std::string>{"attention/0"});
  CHECK_FALSE(worker.over);
  caf::anon_send(control.joined(), worker_leave{"it was drained"});
  CHECK(worker.ends());
  CHECK(worker.last == session_end::stopped);
  CHECK(control.drained().size() == 1);
}

TEST_CASE("a worker whose seat is gone ends, and one that is sent away joins again") {
  spdlog::set_level(spdlog::level::off);
  taker control;
  leaving worker{control, std::chrono::minutes{10}};
  caf::anon_send(control.joined(), worker_leave{"it is slow"});
  CHECK(worker.ends()); // the session; the command begins the next one
  CHECK(worker.last == session_end::lost);
  leaving other{control, std::chrono::minutes{10}};
  caf::anon_send(control.joined(), worker_leave{"its pool was scaled in", true});
  CHECK(other.ends());
  CHECK(other.last == session_end::stopped);
  CHECK(control.drained().empty());
}

TEST_CASE("a worker that cannot be drained, has no time for it or is told twice ends at once") {
  spdlog::set_level(spdlog::level::off);
  taker control;
  {
    leaving twice{control, std::chrono::minutes{10}};
    twice.tell_to_stop();
    CHECK_FALSE(twice.over);
    twice.hurry = true;
    CHECK(twice.ends());
    CHECK(twice.last == session_end::stopped);
  }
  {
    leaving late{control, std::chrono::milliseconds{1}}; // nobody sends it away
    late.tell_to_stop();
    CHECK(late.ends());
    CHECK(late.last == session_end::stopped);
  }
  {
    leaving none{control, std::chrono::milliseconds{0}};
    none.stop = true;
    CHECK(none.ends());
    CHECK(none.last == session_end::stopped);
  }
  CHECK(control.drained().size() == 2);
  control.refuses = true;
  leaving alone{control, std::chrono::minutes{10}};
  alone.tell_to_stop();
  CHECK(alone.ends());
  CHECK(alone.last == session_end::stopped);
}

} // namespace lamella::actors::test
