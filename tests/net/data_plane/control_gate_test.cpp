// The gate before the control port: who knows the secret passes, everybody else costs a descriptor
// for a while and is told nothing but that.
#include "net/data_plane/control_gate.hpp"

#include "tests/random.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <condition_variable>
#include <filesystem>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

using namespace lamella;
using namespace std::chrono_literals;

namespace {

constexpr std::chrono::milliseconds timeout = 120s; ///< on a busy machine

/// A gate, and what it has said and let in.
class watched_gate {
public:
  explicit watched_gate(std::vector<net::shared_secret> secrets, bool tls = false,
                        std::chrono::milliseconds limit = timeout, size_t strangers_max = 64) {
    net::gate_options o;
    o.host = "127.0.0.1";
    o.secrets = std::move(secrets);
    o.tls = tls;
    o.timeout = limit;
    o.strangers_max = strangers_max;
    o.on_pass = [this](net::gate_pass pass) {
      std::lock_guard lock{mutex_};
      passed_.push_back(std::move(pass));
      changed_.notify_all();
    };
    o.on_refuse = [this](const std::string&, const std::string& why) {
      std::lock_guard lock{mutex_};
      refused_.push_back(why);
      changed_.notify_all();
    };
    gate_.emplace(std::move(o));
  }
  uint16_t port() const { return gate_->port(); }
  net::gate_pass passed() {
    std::unique_lock lock{mutex_};
    REQUIRE(changed_.wait_for(lock, timeout, [&] { return !passed_.empty(); }));
    auto x = std::move(passed_.front());
    passed_.erase(passed_.begin());
    return x;
  }
  /// The next reason to refuse somebody.
  std::string refused() {
    std::unique_lock lock{mutex_};
    REQUIRE(changed_.wait_for(lock, timeout, [&] { return !refused_.empty(); }));
    auto x = refused_.front();
    refused_.erase(refused_.begin());
    return x;
  }
  void close() { gate_.reset(); }

private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<net::gate_pass> passed_;
  std::vector<std::string> refused_;
  std::optional<net::control_gate> gate_; ///< ends first
};

net::owned_descriptor connect_to(uint16_t port) {
  net::owned_descriptor fd{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  sockaddr_in a{};
  a.sin_family = AF_INET;
  a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  a.sin_port = htons(port);
  REQUIRE(::connect(fd.get(), reinterpret_cast<sockaddr*>(&a), sizeof a) == 0);
  return fd;
}

/// Waits until the other side has hung up.
bool hung_up(int fd) {
  pollfd p{fd, POLLIN, 0};
  char bytes[4096];
  while (::poll(&p, 1, static_cast<int>(timeout.count())) == 1)
    if (::recv(fd, bytes, sizeof bytes, 0) <= 0) return true;
  return false;
}

size_t open_descriptors() {
  size_t n = 0;
  for (const auto& x : std::filesystem::directory_iterator{"/proc/self/fd"}) n += x.exists();
  return n;
}

std::string refusal_of(uint16_t port, const net::shared_secret& secret, bool tls,
                       net::gate_error::reason expected,
                       std::chrono::milliseconds limit = timeout) {
  try {
    net::pass_gate("127.0.0.1", port, secret, tls, limit);
  } catch (const net::gate_error& e) {
    CHECK(e.why == expected);
    return e.what();
  }
  FAIL_CHECK("it has passed");
  return {};
}

} // namespace

TEST_CASE("who knows one of the secrets passes the gate, and both ends carry bytes") {
  const auto first = net::shared_secret::random(), second = net::shared_secret::random();
  watched_gate gate{{first, second}};
  for (const auto& secret : {first, second}) {
    auto mine = net::pass_gate("127.0.0.1", gate.port(), secret, false, timeout);
    auto theirs = gate.passed();
    CHECK(mine.here == "127.0.0.1");
    CHECK(mine.there == "127.0.0.1");
    CHECK(theirs.there == "127.0.0.1");
    REQUIRE(::send(mine.socket.get(), "word", 4, 0) == 4);
    pollfd p{theirs.socket.get(), POLLIN, 0};
    REQUIRE(::poll(&p, 1, static_cast<int>(timeout.count())) == 1);
    char got[8];
    CHECK(::recv(theirs.socket.get(), got, sizeof got, 0) == 4); // and nothing before it
  }
}

TEST_CASE("the gate denies who does not know the secret, and tells who does what does not fit") {
  using why = net::gate_error::reason;
  const auto secret = net::shared_secret::random();
  watched_gate gate{{secret}, true};
  CHECK(refusal_of(gate.port(), net::shared_secret::random(), true, why::denied) == "wrong secret");
  CHECK(gate.refused() == "wrong secret");
  const auto text = refusal_of(gate.port(), secret, false, why::refused);
  CHECK(text == "control connections: the service has mutual TLS, the worker no TLS");
  CHECK(gate.refused() == text);
  // To a stranger, the secret comes first.
  CHECK(refusal_of(gate.port(), net::shared_secret::random(), false, why::denied)
        == "wrong secret");
  const auto port = gate.port();
  gate.close();
  CHECK(refusal_of(port, secret, true, why::unreachable) == "no process listens on that port");
}

TEST_CASE(
    "garbage, silence, slow bytes and half conversations end at the gate, and leave nothing") {
  const auto secret = net::shared_secret::random();
  watched_gate gate{{secret}, false, 300ms};
  const auto before = open_descriptors();
  tests::splitmix random{11};
  {
    std::vector<net::owned_descriptor> strangers;
    for (int i = 0; i < 20; ++i) {
      strangers.push_back(connect_to(gate.port()));
      std::string bytes;
      switch (i % 5) {
      case 0: // silence
        break;
      case 1:
        bytes = "GET / HTTP/1.1\r\nhost: x\r\n\r\n";
        break;
      case 2: // a header that CAF believes: a payload of 4 GiB follows
        bytes = std::string("\0\0\0\0\xff\xff\xff\xff", 8) + std::string(24, '\1');
        break;
      case 3: // the first word and half of the rest
        bytes = "TGML" + std::string(10, 'x');
        break;
      case 4:
        for (int k = 0; k < 4096; ++k) bytes += static_cast<char>(random.below(256));
        break;
      }
      // On a machine that stalls the gate may have hung up before.
      ::send(strangers.back().get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    }
    for (auto& x : strangers) CHECK(hung_up(x.get()));
  }
  CHECK(gate.refused() != "");
  CHECK(open_descriptors() == before);
  // There too it may take more than one attempt.
  std::optional<net::gate_pass> mine;
  for (int attempt = 0; attempt < 50 && !mine; ++attempt) try {
      mine = net::pass_gate("127.0.0.1", gate.port(), secret, false, timeout);
    } catch (const net::gate_error& e) {
      MESSAGE(e.what());
    }
  REQUIRE(mine);
  CHECK(gate.passed().socket.get() >= 0);
}

TEST_CASE("the gate has room for so many strangers: the next one sends the first one away") {
  const auto secret = net::shared_secret::random();
  watched_gate gate{{secret}, false, timeout, 4};
  std::vector<net::owned_descriptor> silent;
  for (int i = 0; i < 4; ++i) silent.push_back(connect_to(gate.port()));
  auto mine = net::pass_gate("127.0.0.1", gate.port(), secret, false, timeout);
  auto theirs = gate.passed();
  CHECK(hung_up(silent[0].get()));
  CHECK(gate.refused() == "too many connections at the same time");
  pollfd p{silent[3].get(), POLLIN, 0};
  CHECK(::poll(&p, 1, 0) == 0);
}

TEST_CASE("a listener that says nothing, or something else, is no gate") {
  using why = net::gate_error::reason;
  const net::owned_descriptor listener{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  sockaddr_in a{};
  a.sin_family = AF_INET;
  a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof a;
  REQUIRE(::bind(listener.get(), reinterpret_cast<sockaddr*>(&a), sizeof a) == 0);
  REQUIRE(::listen(listener.get(), 4) == 0);
  REQUIRE(::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&a), &length) == 0);
  const auto secret = net::shared_secret::random();
  CHECK(refusal_of(ntohs(a.sin_port), secret, false, why::unreachable, 200ms)
        == "it accepts the connection but sends nothing");
}

TEST_CASE(
    "a lookup that hangs does not outlast the patience of who waits for it, and is made once") {
  const auto secret = net::shared_secret::random();
  watched_gate gate{{secret}};
  std::promise<void> release;
  const auto asked = std::make_shared<std::atomic<int>>(0);
  const auto hangs = [asked, until = release.get_future().share()](const std::string& name) {
    CHECK(name == "service.test");
    ++*asked;
    until.wait();
    return std::vector<std::string>{"127.0.0.1"};
  };
  const auto knock = [&](std::chrono::milliseconds limit) {
    return net::pass_gate("service.test", gate.port(), secret, false, limit, hangs);
  };
  for (int i = 0; i < 3; ++i)
    CHECK_THROWS_WITH_AS(knock(17ms), "name lookup timed out after 17 ms", net::gate_error);
  CHECK(*asked == 1);
  release.set_value();
  CHECK(knock(timeout).there == "127.0.0.1");
  CHECK_THROWS_WITH_AS(net::pass_gate("other.test", gate.port(), secret, false, timeout,
                                      [](const std::string&) -> std::vector<std::string> {
                                        throw std::runtime_error{"there is no such host"};
                                      }),
                       "there is no such host", net::gate_error);
}

// Not under sanitizers: theirs asks by means of a pipe whether an object's memory can be read, and
// takes every object for a wrong one while no descriptor is left.
#if !defined(__SANITIZE_ADDRESS__)
TEST_CASE("a process without descriptors left goes on when it has some again") {
  const auto secret = net::shared_secret::random();
  watched_gate gate{{secret}};
  rlimit old{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &old) == 0);
  const auto before = open_descriptors();
  auto mine = connect_to(gate.port());
  // The gate has taken its end: from here on descriptors are this test's alone.
  for (int look = 0; look < 20'000 && open_descriptors() < before + 2; ++look)
    ::poll(nullptr, 0, 1);
  REQUIRE(open_descriptors() == before + 2);
  auto few = old;
  few.rlim_cur = open_descriptors(); // one of them is the folder's own
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &few) == 0);
  std::vector<net::owned_descriptor> all;
  while (true) {
    net::owned_descriptor x{::dup(mine.get())};
    if (x.get() < 0) break;
    all.push_back(std::move(x));
  }
  REQUIRE(!all.empty());
  all.pop_back();
  const auto waiting = connect_to(gate.port()); // the kernel's backlog takes it, accept() fails
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &old) == 0);
  all.clear();
  auto later = net::pass_gate("127.0.0.1", gate.port(), secret, false, timeout);
  CHECK(gate.passed().socket.get() >= 0);
}
#endif
