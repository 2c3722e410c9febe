#include "actors/protocol/iterations.hpp"
#include "actors/worker/control_scribe.hpp"
#include "tests/actors/worker/taker.hpp"

#include <caf/binary_serializer.hpp>
#include <caf/io/basp/header.hpp>

#include <atomic>
#include <thread>

#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>

namespace lamella::actors::test {

namespace {

std::string text(std::initializer_list<unsigned> bytes) {
  std::string result;
  for (const auto byte : bytes) result += static_cast<char>(byte);
  return result;
}

/// In CAF's binary format: a message in a message in ... an empty message.
std::string nested(size_t levels) {
  std::string result;
  for (size_t i = 0; i < levels; ++i) result += text({0, 0, 12}) + "@<>+@message";
  return result + text({0, 0, 3}) + "@<>";
}

/// A request to an actor that every process has.
std::string request_header(uint32_t payload_bytes) {
  caf::io::basp::header header{caf::io::basp::message_type::direct_message,
                               caf::io::basp::header::named_receiver_flag,
                               payload_bytes,
                               caf::message_id{7}.with_normal_priority().integer_value(),
                               1,
                               static_cast<uint64_t>(caf::atom("ConfigServ"))};
  std::vector<char> bytes;
  caf::binary_serializer sink{nullptr, bytes};
  if (sink(header)) throw std::logic_error{"cannot write a header"};
  return {bytes.begin(), bytes.end()};
}

std::string payload(size_t levels) { return text({0}) + nested(levels); } // forwarded by nobody

std::string request(size_t levels) {
  const auto bytes = payload(levels);
  return request_header(static_cast<uint32_t>(bytes.size())) + bytes;
}

/// Forwards one connection both ways, and can say something itself.
class relay {
public:
  explicit relay(uint16_t to) : to_{socket(AF_INET, SOCK_STREAM, 0)} {
    const net::owned_descriptor listener{socket(AF_INET, SOCK_STREAM, 0)};
    auto address = loopback(0);
    socklen_t size = sizeof address;
    REQUIRE(bind(listener.get(), reinterpret_cast<sockaddr*>(&address), size) == 0);
    REQUIRE(listen(listener.get(), 1) == 0);
    REQUIRE(getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size) == 0);
    port = ntohs(address.sin_port);
    auto target = loopback(to);
    REQUIRE(connect(to_.get(), reinterpret_cast<sockaddr*>(&target), sizeof target) == 0);
    listener_ = dup(listener.get());
    thread_ = std::thread{[this] { run(); }};
  }
  ~relay() {
    stop_ = true;
    thread_.join();
    close(listener_);
  }
  /// To the one that was connected to.
  void say(const std::string& bytes) {
    std::lock_guard lock{mutex_};
    size_t done = 0;
    while (done < bytes.size()) {
      const auto n = send(to_.get(), bytes.data() + done, bytes.size() - done, MSG_NOSIGNAL);
      if (n <= 0) return; // it has hung up
      done += static_cast<size_t>(n);
    }
  }
  bool hung_up() const { return hung_up_; }

  uint16_t port = 0;

private:
  static sockaddr_in loopback(uint16_t port) {
    sockaddr_in x{};
    x.sin_family = AF_INET;
    x.sin_port = htons(port);
    x.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return x;
  }
  void run() {
    const net::owned_descriptor from{accept(listener_, nullptr, nullptr)};
    std::array<char, 4096> bytes;
    while (!stop_) {
      std::array<pollfd, 2> waits{pollfd{from.get(), POLLIN, 0}, pollfd{to_.get(), POLLIN, 0}};
      if (poll(waits.data(), 2, 10) <= 0) continue;
      if (waits[0].revents != 0) {
        const auto n = recv(from.get(), bytes.data(), bytes.size(), 0);
        if (n <= 0) return;
        say({bytes.data(), static_cast<size_t>(n)});
      }
      if (waits[1].revents != 0) {
        const auto n = recv(to_.get(), bytes.data(), bytes.size(), 0);
        if (n <= 0) {
          hung_up_ = true;
          return;
        }
        send(from.get(), bytes.data(), static_cast<size_t>(n), MSG_NOSIGNAL);
      }
    }
  }

  int listener_ = -1;
  net::owned_descriptor to_;
  std::mutex mutex_;
  std::atomic<bool> stop_{false}, hung_up_{false};
  std::thread thread_;
};

/// Somebody with the secret, and what passes between it and the control process.
struct insider {
  explicit insider(taker& control)
      : wire{control.port}, options{1, taker::control()}, system{options},
        reached{reach_door(system, {"127.0.0.1", wire.port}, taker::control(),
                           net::shared_secret::from_file(control.secret_file),
                           std::chrono::seconds{60})} {}
  relay wire;
  system_config options;
  caf::actor_system system;
  reached_door reached;
};

} // namespace

TEST_CASE("control messages may nest as deep as an error in a reply, and some more") {
  CHECK_FALSE(nests_too_deeply(payload(0)));
  CHECK_FALSE(nests_too_deeply(payload(control_nesting_max - 1)));
  CHECK(nests_too_deeply(payload(control_nesting_max)));
  CHECK(nests_too_deeply(payload(1'000'000)));
  // Behind what looks like a message of Lamella's, but is not read as one.
  const auto disguise = text({0, 0, 16}) + "@<>+lamella::x+x";
  CHECK(nests_too_deeply(text({1}) + disguise + nested(control_nesting_max)));
  CHECK(nests_too_deeply(text({0}) + disguise + nested(control_nesting_max)));
  CHECK(nests_too_deeply(text({0, 0, 0, 17}) + "@<>+@config_value"));
}

TEST_CASE("P5 numbers of a user that look like lists of types end no control connection") {
  // 2.9413 and the seed have the bytes that CAF begins each list of types with.
  iteration_launch launch;
  for (uint32_t i = 0; i < 300; ++i) launch.edits.push_back({i, 2.9413F, 0});
  launch.samples.resize(64);
  for (auto& sample : launch.samples) sample.seed = 0x403c3e403c3e0000;
  const std::vector<uint32_t> words(1'000, 0x403c3e2b);
  launch.masks.push_back({std::make_shared<const model::token_mask>(model::token_mask{words})});

  system_config options{1, taker::control()};
  caf::actor_system system{options};
  std::vector<char> bytes;
  caf::binary_serializer sink{system, bytes};
  std::vector<caf::strong_actor_ptr> stages;
  auto message = caf::make_message(launch);
  REQUIRE_FALSE(sink(stages, message));
  const std::string_view written{bytes.data(), bytes.size()};
  REQUIRE(std::count(written.begin(), written.end(), '@') > 1'000);
  CHECK_FALSE(nests_too_deeply(written));
}

TEST_CASE("a control message as deep or as long as its header allows ends its connection alone") {
  spdlog::set_level(spdlog::level::off);
  taker control;
  for (const auto& bytes :
       {request(control_nesting_max), request(4'000'000),
        request_header(control_message_max + 1) + "x", request_header(UINT32_MAX) + "x"}) {
    CAPTURE(bytes.size());
    insider peer{control};
    REQUIRE(peer.reached.door);
    peer.wire.say(bytes);
    CHECK(eventually([&] { return peer.wire.hung_up(); }));
  }
  insider peer{control};
  REQUIRE(peer.reached.door);
  peer.wire.say(request(1)); // nobody expects it: an answer says so, and all goes on
  caf::scoped_actor self{peer.system};
  bool answered = false;
  self->request(peer.reached.door, std::chrono::seconds{60}, join_ask{})
      .receive([&](const join_challenge&) { answered = true; },
               [&](const caf::error&) { answered = true; });
  CHECK(answered);
  CHECK_FALSE(peer.wire.hung_up());
}

} // namespace lamella::actors::test
