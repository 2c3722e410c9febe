// The links of an epoch that is large: all members connect at the same moment.
#include "net/data_plane/handshake.hpp"
#include "net/data_plane/peer_address.hpp"
#include "tests/net/data_plane/test_plane.hpp"
#include "tests/net/http/raw_client.hpp"

#include <doctest/doctest.h>

#include <cstring>

using namespace lamella;
using namespace lamella::tests;

namespace {

/// The connecting side of a handshake over TCP, one message at a time.
struct member : test::raw_client {
  explicit member(uint16_t port) : raw_client{port} {}

  /// Sends the hello, and returns when the other side has checked it.
  void greet(uint32_t stream) {
    h.transport = static_cast<uint16_t>(net::link_transport::tcp);
    h.cluster = 7;
    h.slots = 4;
    h.slot_bytes = 4096;
    h.epoch = 1;
    h.stream = stream;
    h.mine = net::make_nonce();
    send(text_of(h));
    take(theirs);
  }
  /// Sends the proof; whether the other side takes it.
  bool prove() {
    send(text_of(net::prove("a secret of twenty-six bytes", "connecting", h, theirs.mine)));
    net::verdict v;
    v.refused = 1; // unless it is told otherwise
    take(v);
    return v.refused == 0;
  }

private:
  template <class T> static std::string_view text_of(const T& x) {
    return {reinterpret_cast<const char*>(&x), sizeof x};
  }
  template <class T> void take(T& x) {
    const auto bytes = read_bytes(sizeof x);
    CHECK(bytes.size() == sizeof x);
    std::memcpy(&x, bytes.data(), bytes.size());
  }

  net::hello h;
  net::challenge theirs;
};

uint16_t port_of(const test_plane& x) {
  return net::parse_host_and_port(net::parse_peer_address(x.plane->address())->tcp)->port;
}

} // namespace

TEST_CASE("more links than strangers may be there come up at once, whatever the transport") {
  for (const std::string transport : {"tcp", "shm"}) {
    CAPTURE(transport);
    const scratch_folder folder;
    test_plane far{transport, folder, "far", [](auto& o) {
                     o.strangers_max = 3;
                     o.silence = timeout; // members may be slow
                   }};
    test_plane near{transport, folder, "near"};
    const net::link_terms terms{4, 4096, 0, {}};
    std::vector<net::link_end> shards, replicas;
    for (uint32_t i = 0; i < 40; ++i)
      shards.push_back(far.plane->accept({1, i, 0, 0}, terms, timeout));
    for (uint32_t i = 0; i < 40; ++i)
      replicas.push_back(near.plane->connect(far.plane->address(), {1, i, 0, 0}, terms, timeout));
    for (uint32_t i = 0; i < 40; ++i) {
      CAPTURE(i);
      REQUIRE(send(*replicas[i].to, i + 1, 17));
      CHECK(take(*shards[i].from, i + 1, 17));
    }
  }
}

TEST_CASE("a member is let in though all places are taken by strangers that say nothing") {
  const scratch_folder folder;
  test_plane far{"tcp", folder, "far", [](auto& o) {
                   o.strangers_max = 3;
                   o.silence = std::chrono::milliseconds{0};
                 }};
  test_plane near{"tcp", folder, "near"};
  const auto port = port_of(far);
  std::vector<std::unique_ptr<test::raw_client>> strangers;
  for (int i = 0; i < 7; ++i) {
    strangers.push_back(std::make_unique<test::raw_client>(port));
    strangers.back()->send(std::string(static_cast<size_t>(i % 2), 'x'));
  }
  const net::link_terms terms{4, 4096, 0, {}};
  const auto shard = far.plane->accept({1, 0, 0, 0}, terms, timeout);
  const auto replica = near.plane->connect(far.plane->address(), {1, 0, 0, 0}, terms, timeout);
  REQUIRE(send(*replica.to, 1, 17));
  CHECK(take(*shard.from, 1, 17)); // long before the time of the strangers is over
  CHECK(strangers.front()->read_all().empty());
  far.log->wait_for(net::link_event::kind::refused,
                    "it was silent while others waited for its place");
}

TEST_CASE("a member whose hello is good makes no room while an older stranger has sent none") {
  const scratch_folder folder;
  test_plane far{"tcp", folder, "far", [](auto& o) {
                   o.strangers_max = 3;
                   o.silence = std::chrono::milliseconds{0};
                 }};
  const auto shard = far.plane->accept({1, 0, 0, 0}, {4, 4096, 0, {}}, timeout);
  const auto port = port_of(far);
  member first{port};
  test::raw_client silent{port};
  member second{port};
  second.greet(1); // so all three have been let in
  first.greet(0);
  member third{port};
  third.greet(2); // so one of them has made room
  REQUIRE(first.prove());
  CHECK(silent.read_all().empty());
}
