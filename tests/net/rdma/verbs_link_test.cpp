// Links over verbs where the adapter is short of room, reaches nobody, or stops doing so. The same
// links over a real driver: tests/rdma.
#include "net/data_plane/handshake.hpp"
#include "net/data_plane/peer_address.hpp"
#include "tests/net/data_plane/tampering_proxy.hpp"
#include "tests/net/link/link_rig.hpp"

using namespace lamella;
using namespace lamella::tests;
using gpu::channel_state;
using kind = net::link_event::kind;

namespace {

const net::link_key key{1, 0, 0, 0};

/// Two planes that share an adapter.
struct two_ends {
  explicit two_ends(std::shared_ptr<soft_adapter> of, const std::string& transport = "verbs_staged")
      : adapter{std::move(of)}, far{transport, folder, "far", change}, near{transport, folder,
                                                                            "near", change} {}

  void open(const net::link_terms& terms, uint16_t through = 0) {
    auto address = net::parse_peer_address(far.plane->address()).value();
    address.host = "elsewhere";
    if (through != 0) address.tcp = "127.0.0.1:" + std::to_string(through);
    b = far.plane->accept(key, terms, timeout);
    a = near.plane->connect(net::to_string(address), key, terms, timeout);
  }

  std::shared_ptr<soft_adapter> adapter;
  std::function<void(net::data_plane_options&)> change = [this](auto& o) { o.adapter = adapter; };
  scratch_folder folder;
  test_plane far, near;
  net::link_end a, b;
};

} // namespace

TEST_CASE("a queue that is often full delays frames and loses none") {
  // Room for a frame of two writes, its seqno and a credit, twice over; a ring of many slots.
  two_ends x{std::make_shared<soft_adapter>(12, 64)};
  x.open({17, 64, 0, {}});
  auto other = std::async(std::launch::async, [&] {
    for (uint64_t n = 0; n < 2'000; ++n)
      if (!send(*x.b.to, n, n % 65)) return false;
    return true;
  });
  for (uint64_t n = 0; n < 2'000; ++n) REQUIRE(take(*x.a.from, n, n % 65));
  CHECK(other.get());
}

TEST_CASE("a queue too short for one frame is refused with the reason") {
  two_ends x{std::make_shared<soft_adapter>(12, 64)};
  x.open({4, 4096, 0, {}});
  CHECK(holds_soon([&] { return x.a.to->state() == channel_state::closed; }));
  x.near.log->wait_for(kind::refused, "queues are too short for frames of 4096 bytes");
}

TEST_CASE("adapters that do not reach each other are told of, and TCP is taken where it may be") {
  for (const std::string transport : {"verbs_staged", "auto"}) {
    CAPTURE(transport);
    two_ends x{std::make_shared<soft_adapter>(), transport};
    x.adapter->cut();
    x.open({4, 4096, 0, {}});
    const std::string reason = "does not reach the peer: a write has failed: nobody answers";
    if (transport == "auto") {
      REQUIRE(send(*x.a.to, 1, 17));
      CHECK(take(*x.b.from, 1, 17));
      x.near.log->wait_for(kind::up, reason);
      CHECK(x.near.log->first(kind::up).transport == net::link_transport::tcp);
    } else {
      CHECK(holds_soon([&] { return x.a.to->state() == channel_state::closed; }));
      x.near.log->wait_for(kind::refused, reason);
      CHECK(x.b.to->state() == channel_state::open); // still waits
    }
  }
}

TEST_CASE("a write that fails ends the link on both sides") {
  two_ends x{std::make_shared<soft_adapter>()};
  x.open({4, 4096, 0, {}});
  REQUIRE(send(*x.a.to, 1, 17));
  REQUIRE(take(*x.b.from, 1, 17));
  x.adapter->cut();
  REQUIRE(send(*x.a.to, 2, 17)); // goes into the queue
  CHECK(holds_soon([&] { return x.a.to->state() == channel_state::closed; }));
  CHECK(holds_soon([&] { return x.b.to->state() == channel_state::closed; }));
  x.near.log->wait_for(kind::ended, "a write has failed: nobody answers");
  x.far.log->wait_for(kind::ended, "the peer closed it");
  CHECK(x.b.from->peek(0) == nullptr);
}

TEST_CASE("why one side ends a link is what the other side sees") {
  two_ends x{std::make_shared<soft_adapter>()};
  x.open({4, 4096, 0, {}});
  REQUIRE(send(*x.a.to, 1, 17));
  REQUIRE(take(*x.b.from, 1, 17));
  x.near.plane->end_epoch(1);
  CHECK(holds_soon([&] { return x.b.from->state() == channel_state::revoked; }));
}

TEST_CASE("planes that go let out what was sent before") {
  for (int round = 0; round < 17; ++round) {
    CAPTURE(round);
    two_ends x{std::make_shared<soft_adapter>()};
    x.open({4, 64 << 10, 0, {}});
    REQUIRE(send(*x.a.to, 0, 54));
    REQUIRE(take(*x.b.from, 0, 54));
    for (uint64_t n = 1; n < 4; ++n) REQUIRE(send(*x.a.to, n, 64 << 10));
    x.near.plane.reset();
    for (uint64_t n = 1; n < 4; ++n) CHECK(take(*x.b.from, n, 64 << 10));
  }
}

TEST_CASE("a queue or key that changes on the wire makes no link") {
  constexpr uint64_t begin = sizeof(net::hello) + sizeof(net::answer);
  for (const auto at :
       {begin, begin + offsetof(net::verbs_end, landing), begin + offsetof(net::verbs_end, key),
        begin + offsetof(net::offer, proof), begin + sizeof(net::offer) - 1}) {
    CAPTURE(at);
    two_ends x{std::make_shared<soft_adapter>()};
    const auto where = net::parse_peer_address(x.far.plane->address()).value().tcp;
    const test::tampering_proxy wire{net::parse_host_and_port(where)->port,
                                     [at](uint64_t offset, std::span<unsigned char> bytes) {
                                       if (at >= offset && at < offset + bytes.size())
                                         bytes[at - offset] ^= 1;
                                       return bytes.size();
                                     }};
    x.open({4, 4096, 0, {}}, wire.port());
    CHECK(holds_soon([&] { return x.a.to->state() == channel_state::closed; }));
    x.far.log->wait_for(kind::refused, "the proof of its offer is wrong");
    CHECK(x.b.to->reserve(1) == nullptr);
  }
}
