// A worker process whose WORKER has ended can serve nobody: it must end, too, whether or not the
// actor could still say why (reliability A8).
#include "tests/actors/worker/taker.hpp"

namespace lamella::actors::test {

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

TEST_CASE("a worker that cannot be drained at the moment serves on, and asks again") {
  spdlog::set_level(spdlog::level::off);
  taker control;
  control.busy = true;
  leaving worker{control, std::chrono::minutes{10}};
  worker.tell_to_stop();
  CHECK(eventually([&] { return control.drained().size() == 2; }));
  CHECK_FALSE(worker.over);
  control.busy = false;
  CHECK(eventually([&] { return control.drained().size() == 3; }));
  caf::anon_send(control.joined(), worker_leave{"it was drained"});
  CHECK(worker.ends());
  CHECK(worker.last == session_end::stopped);
  CHECK(control.drained().size() == 3);
}

} // namespace lamella::actors::test
