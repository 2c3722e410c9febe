// Places where the program fails on demand: what their flag may say, and what they then do.
#include "base/failpoint.hpp"

#include <doctest/doctest.h>

#include <array>
#include <chrono>

#include <csignal>
#include <sys/wait.h>
#include <unistd.h>

using namespace lamella;

namespace {

struct armed {
  explicit armed(const char* text) { arm_failpoint(text); }
  ~armed() { disarm_failpoints(); }
};

std::string refusal(const char* text) {
  try {
    arm_failpoint(text);
  } catch (const std::invalid_argument& e) {
    return e.what();
  }
  disarm_failpoints();
  return {};
}

/// How a child process ends that passes a place.
int end_of_child(void (*passes)()) {
  const auto child = fork();
  if (child == 0) {
    passes();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

} // namespace

TEST_CASE("no place fires unless it is armed, and only that one") {
  CHECK_FALSE(failpoint_hit(failpoint::batch_commit));
  const armed one{"batch.commit=1:error"};
  CHECK(failpoint_hit(failpoint::batch_commit));
  CHECK_FALSE(failpoint_hit(failpoint::link_send));
  CHECK(armed_failpoints() == std::vector<std::string>{"batch.commit=1:error"});
  CHECK_THROWS_AS(failpoint_or_throw(failpoint::batch_commit), failpoint_error);
  CHECK_NOTHROW(failpoint_or_throw(failpoint::link_send));
}

TEST_CASE("a place fires as often as its probability says, and the same times in every run") {
  const auto hits = [] {
    const armed some{"link.send=0.1:error"};
    std::vector<int> when;
    for (int i = 0; i < 20'000; ++i)
      if (failpoint_hit(failpoint::link_send)) when.push_back(i);
    return when;
  };
  const auto first = hits();
  // Ten standard deviations of a binomial count on both sides.
  CHECK(first.size() > 1576);
  CHECK(first.size() < 2424);
  CHECK(first == hits());
}

TEST_CASE("a place that looks for a token fires where it is among the rows") {
  const armed one{"worker.token=1:error:17"};
  CHECK(failpoint_hit(failpoint::worker_token, std::array<uint32_t, 3>{1, 17, 2}));
  CHECK_FALSE(failpoint_hit(failpoint::worker_token, std::array<uint32_t, 2>{1, 2}));
  CHECK_FALSE(failpoint_hit(failpoint::worker_token, {}));
}

TEST_CASE("a delay takes its time and fails nothing") {
  const armed one{"prefill.chunk=1:delay:30"};
  const auto begin = std::chrono::steady_clock::now();
  CHECK_FALSE(failpoint_hit(failpoint::prefill_chunk));
  CHECK(std::chrono::steady_clock::now() - begin >= std::chrono::milliseconds{30});
}

TEST_CASE("a crash ends the process as a bad access does") {
  const armed one{"worker.launch=1:crash"};
  const auto status = end_of_child([] { failpoint_hit(failpoint::worker_launch); });
  REQUIRE(WIFSIGNALED(status));
  CHECK(WTERMSIG(status) == SIGSEGV);
}

TEST_CASE("a thread that hangs goes no further") {
  const armed one{"shard.launch=1:hang"};
  const auto status = end_of_child([] {
    std::signal(SIGALRM, SIG_DFL);
    alarm(1);
    failpoint_hit(failpoint::shard_launch);
  });
  REQUIRE(WIFSIGNALED(status));
  CHECK(WTERMSIG(status) == SIGALRM);
}

TEST_CASE("what a flag cannot mean is refused with the reason") {
  CHECK(refusal("batch.comit=1:crash").find("no failpoint 'batch.comit'") != std::string::npos);
  CHECK(failpoint_names().starts_with("worker.launch, worker.token, "));
  CHECK(refusal("").find("there is no failpoint ''") != std::string::npos);
  for (const char* text :
       {"batch.commit", "batch.commit=", "batch.commit=0:crash", "batch.commit=1.5:crash",
        "batch.commit=nan:crash", "batch.commit=-1:crash", "batch.commit=x:crash"})
    CHECK(refusal(text).find("probability") != std::string::npos);
  for (const char* text : {"batch.commit=1", "batch.commit=1:", "batch.commit=1:explode"})
    CHECK(refusal(text).find("action") != std::string::npos);
  for (const char* text :
       {"batch.commit=1:delay", "batch.commit=1:delay:0", "batch.commit=1:delay:600001",
        "batch.commit=1:delay:3s", "batch.commit=1:crash:3", "worker.token=1:crash",
        "worker.token=1:crash:x", "worker.token=1:crash:-1"})
    CHECK(refusal(text).find("argument") != std::string::npos);
  CHECK(refusal("worker.token=1:delay:3").find("cannot delay") != std::string::npos);
  CHECK(armed_failpoints().empty());
  CHECK_FALSE(failpoint_armed(failpoint::batch_commit));
}
