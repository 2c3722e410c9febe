// The links of an epoch that is large: all members connect at the same moment.
#include "tests/net/data_plane/test_plane.hpp"

#include <doctest/doctest.h>

using namespace lamella;
using namespace lamella::tests;

TEST_CASE("more links than strangers may be there come up at once, whatever the transport") {
  for (const std::string transport : {"tcp", "shm"}) {
    CAPTURE(transport);
    const scratch_folder folder;
    test_plane far{transport, folder, "far", [](auto& o) { o.strangers_max = 3; }};
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
