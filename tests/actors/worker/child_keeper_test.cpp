// CHILD KEEPER on virtual time, with real processes: one that ends again and again is tried for
// ever and told of, and costs the others nothing.
#include "actors/protocol/supervisors.hpp"
#include "actors/protocol/workers.hpp"
#include "actors/worker/child_keeper.hpp"
#include "tests/actors/stage.hpp"
#include "tests/scratch_folder.hpp"

#include <filesystem>
#include <fstream>

#include <csignal>

#include <poll.h>

namespace lamella::actors::test {

using namespace std::chrono_literals;

namespace {

struct keeper_stage : stage {
  tests::scratch_folder folder;
  std::filesystem::path program = folder / "program";
  std::vector<seat_failing> told;
  bool waits = false; ///< for a processor, half of the time
  child_keeper_actor keeper;

  keeper_stage() {
    child_keeper_config c;
    c.children = {{{scheduler::worker_role::model, 0}, "model-0", {"/bin/sleep", "1000"}},
                  {{scheduler::worker_role::model, 1}, "model-1", {program.string()}}};
    c.secret_text = "secret";
    c.grace = 10s;
    c.waited_of = [this](uint32_t) {
      using std::chrono::nanoseconds;
      return std::optional{waits ? nanoseconds{sched.clock().now().time_since_epoch()} / 2
                                 : nanoseconds{0}};
    };
    c.on_failing = [this](const seat_failing& x) { told.push_back(x); };
    keeper = spawn(child_keeper, std::move(c));
  }
  ~keeper_stage() {
    // The children go first; a keeper that is killed leaves them to the kernel.
    ask<uint32_t>(keeper, caf::close_atom_v);
    settle();
    end_all();
  }

  /// Replaces the program as an installation does.
  void install(const std::string& text) {
    const auto fresh = folder / "fresh";
    std::ofstream{fresh} << "#!/bin/sh\n" << text << "\n";
    std::filesystem::permissions(fresh, std::filesystem::perms::owner_all);
    std::filesystem::rename(fresh, program);
  }

  /// Lets virtual time pass, a look of the keeper at a time, until that holds. Processes end in
  /// real time.
  template <class F> void until(F&& holds) {
    for (int i = 0; i < 60'000 && !holds(); ++i) {
      advance(250ms, 250ms);
      poll(nullptr, 0, 1);
    }
    REQUIRE(holds());
  }

  std::vector<uint32_t> running() {
    const auto status = ask<supervisor_status>(keeper, status_atom_v);
    settle();
    std::vector<uint32_t> counts;
    for (const auto& x : status->value.children) counts.push_back(x.count);
    return counts;
  }
};

/// The pid that a program wrote there; 0: none.
uint32_t pid_in(const std::filesystem::path& file) {
  uint32_t pid = 0;
  std::ifstream{file} >> pid;
  return pid;
}

} // namespace

TEST_CASE_FIXTURE(
    keeper_stage,
    "reliability A8: a lost worker's process is killed when it hangs, and later where "
    "it waits for processors") {
  const auto file = folder / "pid";
  install("echo $$ > '" + file.string() + "'; exec sleep 1000");
  until([&] { return pid_in(file) > 0; });
  const auto pid = pid_in(file);
  const auto lose = [&](bool busy) {
    waits = busy;
    caf::anon_send(keeper, pid, worker_news::lost);
    settle();
    return sched.clock().now();
  };
  SUBCASE("it hangs") {
    const auto lost = lose(false);
    until([&] { return pid_in(file) != pid; });
    CHECK(sched.clock().now() - lost > 5s);
  }
  SUBCASE("it waits for processors") {
    const auto lost = lose(true);
    until([&] { return pid_in(file) != pid; });
    CHECK(sched.clock().now() - lost > 30s);
  }
  SUBCASE("it waits, and is back") {
    lose(true);
    advance(20s, 250ms);
    caf::anon_send(keeper, pid, worker_news::joined);
    advance(60s, 250ms);
    CHECK(pid_in(file) == pid);
    CHECK(kill(static_cast<pid_t>(pid), 0) == 0);
  }
}

TEST_CASE_FIXTURE(keeper_stage,
                  "reliability A8: a worker process that ends at once, or cannot be started, is "
                  "tried again for ever, and the others run") {
  until([&] { return told.size() >= 2; }); // the program is not there
  CHECK(told[0].role == "model");
  CHECK(told[0].index == 1);
  CHECK(told[0].faults == 6);
  CHECK(told[1].faults == 7);
  CHECK(told[0].how.find("No such file") != std::string::npos);
  CHECK(running() == std::vector<uint32_t>{1, 0});
  install("exit 3");
  const auto before = sched.clock().now();
  until([&] { return told.back().how == "exit code 3"; });
  until([&] { return told.size() >= 8; });
  CHECK(sched.clock().now() - before > 90s); // ever more rarely
  CHECK(sched.clock().now() - before < 5min);
  CHECK(running() == std::vector<uint32_t>{1, 0});
  install("exec sleep 1000");
  until([&] { return running()[1] == 1; });
  CHECK(running() == std::vector<uint32_t>{1, 1});
}

} // namespace lamella::actors::test
