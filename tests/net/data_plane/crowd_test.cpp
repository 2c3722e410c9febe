// The links of an epoch that is large: all members connect at the same moment.
#include "net/data_plane/peer_address.hpp"
#include "tests/net/data_plane/test_plane.hpp"
#include "tests/net/http/raw_client.hpp"

#include <doctest/doctest.h>

using namespace lamella;
using namespace lamella::tests;

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
  const auto address = net::parse_peer_address(far.plane->address())->tcp;
  const auto port = net::parse_host_and_port(address)->port;
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
