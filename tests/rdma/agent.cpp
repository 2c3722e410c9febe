// The other end of tests over RDMA: takes orders on a port, one process for each test.
#define DOCTEST_CONFIG_IMPLEMENT
#include "tests/net/link/far_side.hpp"
#include "tests/rdma/control.hpp"
#include "tests/rdma/verbs_tier.hpp"

#include <csignal>
#include <cstdio>

#include <sys/socket.h>
#include <unistd.h>

using namespace lamella;
using namespace lamella::tests;

namespace {

/// For a task's end before it is asked for again: other orders wait meanwhile.
constexpr auto result_timeout = 5ms;

/// What one test has here.
class session {
public:
  explicit session(const std::string& transport) : far_{transport, folder_, verbs_tier::change} {}

  message carry_out(message x) {
    message answer;
    answer.put(outcome::done);
    switch (x.get<order>()) {
    case order::address:
      answer.put_text(far_.address());
      break;
    case order::accept: {
      const auto key = x.get<net::link_key>();
      links_.push_back(far_.accept(key, x.get<net::link_terms>()));
      answer.put(static_cast<uint32_t>(links_.size() - 1));
      break;
    }
    case order::end_epoch:
      far_.end_epoch(x.get<uint64_t>());
      break;
    case order::go:
      far_.go();
      break;
    case order::die:
      kill(getpid(), SIGKILL);
      break;
    case order::wait_for: {
      const auto what = x.get<net::link_event::kind>();
      answer.put_text(far_.wait_for(what, x.get_text()));
      break;
    }
    case order::round_trip:
      answer.put(far_.round_trip());
      break;
    case order::exchange:
      answer.put(add(far_.exchange(x.get<uint64_t>())));
      break;
    case order::play: {
      const auto count = x.get<uint64_t>();
      auto status = far_.play(count, x.get<bool>());
      answer.put(add(std::async(std::launch::async, [s = std::move(status)]() mutable {
        return static_cast<uint64_t>(s.get());
      })));
      break;
    }
    case order::result: {
      auto& task = tasks_.at(x.get<uint32_t>());
      const bool ended = task.wait_for(result_timeout) == std::future_status::ready;
      answer.put(ended).put(ended ? task.get() : uint64_t{0});
      break;
    }
    case order::reserve: {
      auto& link = links_.at(x.get<uint32_t>());
      place_ = link.to->reserve(x.get<size_t>());
      answer.put(place_ != nullptr);
      break;
    }
    case order::commit: {
      auto& link = links_.at(x.get<uint32_t>());
      const auto tag = x.get<gpu::frame_tag>();
      const auto payload = x.rest();
      std::copy(payload.begin(), payload.end(), place_);
      link.to->commit(tag);
      answer.put(link.sent->load());
      break;
    }
    case order::peek: {
      auto& link = links_.at(x.get<uint32_t>());
      const auto* f = link.from->peek(x.get<size_t>());
      answer.put(f != nullptr);
      if (f != nullptr) answer.put(f->tag).put_bytes(f->payload);
      break;
    }
    case order::release:
      links_.at(x.get<uint32_t>()).from->release();
      break;
    case order::look:
      answer.put(end_of(x).state());
      break;
    case order::end: {
      auto& end = end_of(x);
      end.end(x.get<gpu::channel_state>());
      break;
    }
    }
    return answer;
  }

private:
  uint32_t add(std::future<uint64_t> task) {
    tasks_.push_back(std::move(task));
    return static_cast<uint32_t>(tasks_.size() - 1);
  }
  gpu::channel_end& end_of(message& x) {
    auto& link = links_.at(x.get<uint32_t>());
    if (x.get<bool>()) return *link.to;
    return *link.from;
  }

  scratch_folder folder_;
  local_far far_;
  std::vector<net::link_end> links_;
  std::vector<std::future<uint64_t>> tasks_;
  std::byte* place_ = nullptr;
};

void serve(int socket) {
  control_socket control{socket};
  session here{control.receive().get_text()};
  while (true) {
    const auto x = control.receive(); // throws when the test has ended
    message answer;
    try {
      answer = here.carry_out(x);
    } catch (const std::length_error& e) {
      answer.put(outcome::too_long).put_text(e.what());
    } catch (const std::exception& e) {
      answer.put(outcome::failed).put_text(e.what());
    }
    control.send(answer);
  }
}

} // namespace

int main() {
  doctest::Context context; // checks of the test's own parts are told here
  context.setAsDefaultForAssertsOutOfTestCases();
  std::signal(SIGCHLD, SIG_IGN); // nobody waits for them
  const int door = listen_as_agent();
  while (true) {
    const int socket = accept(door, nullptr, nullptr);
    if (socket < 0) return 1;
    // A process of its own, which may be killed.
    if (const auto child = fork(); child != 0) {
      close(socket);
      continue;
    }
    close(door);
    try {
      serve(socket);
    } catch (const std::exception& e) {
      if (std::string{e.what()}.find("control:") == std::string::npos)
        std::fprintf(stderr, "agent: %s\n", e.what());
    }
    _exit(0);
  }
}
