// Links between two real processes, one of which may be killed at any time.
#include "tests/net/link/link_rig.hpp"

#include <csignal>
#include <iostream>
#include <random>

#include <sys/wait.h>
#include <unistd.h>

using namespace lamella;
using namespace lamella::tests;
using gpu::channel_state;

namespace {

const net::link_key key{1, 0, 0, 0};
const net::link_terms terms{7, 64 << 10, gpu::seqno_counter_mask - 54, {}};

/// Sends back what comes until the link ends.
void echo(const std::string& transport, const scratch_folder& folder, int address_to) {
  test_plane plane{transport, folder, "child"};
  auto link = plane.plane->accept(key, terms, timeout);
  const auto& address = plane.plane->address();
  if (write(address_to, address.data(), address.size()) < 0) return;
  close(address_to);
  const auto until = clock::now() + timeout;
  while (clock::now() < until) {
    const auto* f = link.from->peek(0);
    if (f == nullptr) {
      if (link.from->state() != channel_state::open) return;
      std::this_thread::yield();
      continue;
    }
    std::byte* p = nullptr;
    if (!holds_soon([&] {
          p = link.to->reserve(f->payload.size());
          return p != nullptr || link.to->state() != channel_state::open;
        })
        || p == nullptr)
      return;
    std::copy(f->payload.begin(), f->payload.end(), p);
    link.to->commit(f->tag);
    link.from->release();
  }
}

/// A child that echoes. Made before this process has threads of its own.
struct echoing_child {
  explicit echoing_child(const std::string& transport) {
    int ends[2];
    REQUIRE(pipe(ends) == 0);
    std::cout.flush();
    process = fork();
    REQUIRE(process >= 0);
    if (process == 0) {
      close(ends[0]);
      try {
        echo(transport, folder, ends[1]);
      } catch (...) {
        _exit(1);
      }
      _exit(0);
    }
    close(ends[1]);
    char buffer[1024];
    for (ssize_t n = 0; (n = read(ends[0], buffer, sizeof buffer)) > 0;)
      address.append(buffer, static_cast<size_t>(n));
    close(ends[0]);
  }
  ~echoing_child() {
    if (process > 0) end(SIGKILL);
  }
  /// Its wait status, after a signal (0: none).
  int end(int signal) {
    if (signal != 0) kill(process, signal);
    int status = 0;
    waitpid(process, &status, 0);
    process = -1;
    return status;
  }
  scratch_folder folder;
  pid_t process = -1;
  std::string address;
};

} // namespace

TEST_CASE_TEMPLATE("two processes echo frames of all sizes, and part as they should", tier,
                   shm_tier, tcp_tier) {
  echoing_child child{tier::name};
  REQUIRE_FALSE(child.address.empty());
  {
    test_plane mine{tier::name, child.folder, "parent"};
    auto link = mine.plane->connect(child.address, key, terms, timeout);
    constexpr uint64_t count = 5'000;
    const auto size_of = [](uint64_t n) { return n * 7919 % (n % 54 == 0 ? 65'537 : 700); };
    uint64_t sent = 0, taken = 0;
    const bool all = holds_soon([&] {
      while (sent < count && sent - taken < 14) {
        auto* p = link.to->reserve(size_of(sent));
        if (p == nullptr) break;
        fill(p, size_of(sent), sent);
        link.to->commit(tag_of(sent++));
      }
      while (const auto* f = link.from->peek(0)) {
        REQUIRE(f->tag == tag_of(taken));
        REQUIRE(f->payload.size() == size_of(taken));
        REQUIRE(is_filled(f->payload, taken));
        link.from->release();
        ++taken;
      }
      return taken == count || link.from->state() != channel_state::open;
    });
    CHECK(all);
    CHECK(taken == count);
  }
  // The parent's plane has gone: the child sees the end and leaves by itself.
  const auto status = child.end(0);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}

TEST_CASE_TEMPLATE("a process that is killed at any moment ends its links within the deadline",
                   tier, shm_tier, tcp_tier) {
  const uint64_t seed = 7;
  MESSAGE("seed " << seed);
  std::mt19937_64 random{seed};
  for (int round = 0; round < 7; ++round) {
    CAPTURE(round);
    echoing_child child{tier::name};
    REQUIRE_FALSE(child.address.empty());
    test_plane mine{tier::name, child.folder, "parent"};
    auto link = mine.plane->connect(child.address, key, terms, timeout);
    const auto victim_after = random() % 300; // 0: perhaps in the middle of the handshake
    uint64_t sent = 0, taken = 0, wrong = 0;
    if (victim_after == 0 || round == 0) child.end(SIGKILL);
    CHECK(holds_soon([&] {
      if (auto* p = link.to->reserve(4'000)) {
        fill(p, 4'000, sent);
        link.to->commit(tag_of(sent++));
      }
      while (const auto* f = link.from->peek(0)) {
        wrong += f->tag == tag_of(taken) && is_filled(f->payload, taken) ? 0 : 1;
        link.from->release();
        ++taken;
      }
      if (taken >= victim_after && child.process > 0) child.end(SIGKILL);
      return link.from->state() != channel_state::open;
    }));
    CHECK(link.from->state() == channel_state::closed);
    CHECK(wrong == 0);
  }
}
