// Where a data plane says it is reached, and where its peers look for it.
#include "net/data_plane/peer_address.hpp"

#include <doctest/doctest.h>

#include <stdexcept>

using namespace lamella;

TEST_CASE("where a peer is reached over TCP depends on who asks") {
  net::peer_address peer{"p", "there", "", "0.0.0.0:70", ""};
  CHECK(net::reachable_tcp(peer, "10.0.0.1") == "10.0.0.1:70");
  CHECK(net::reachable_tcp(peer, "") == "127.0.0.1:70");
  peer.tcp = "[::]:70";
  CHECK(net::reachable_tcp(peer, "10.0.0.1") == "10.0.0.1:70");
  CHECK(net::reachable_tcp(peer, "fe80::1") == "[fe80::1]:70");
  peer.tcp = "10.0.0.9:70";
  CHECK(net::reachable_tcp(peer, "10.0.0.1") == "10.0.0.9:70");
  peer.tcp = "127.0.0.1:70";
  CHECK(net::reachable_tcp(peer, "10.0.0.1") == "127.0.0.1:70");
  for (const auto* hidden : {"127.0.0.1:70", "[::1]:70", "localhost:70"}) {
    peer.tcp = hidden;
    CHECK(net::hides(peer, "here"));
    CHECK_FALSE(net::hides(peer, "there"));
  }
  peer.tcp = "0.0.0.0:70";
  CHECK_FALSE(net::hides(peer, "here"));
  peer.tcp = "";
  CHECK_THROWS_WITH_AS(net::reachable_tcp(peer, "10.0.0.1"), "the peer does not listen on TCP",
                       std::runtime_error);
}

TEST_CASE("what listens for IPv4 alone is never looked for, or told, by an address of IPv6") {
  net::peer_address peer{"p", "there", "", "0.0.0.0:70", ""};
  CHECK(net::reachable_tcp(peer, "::1") == "127.0.0.1:70"); // --join [::1]:PORT
  CHECK(net::reachable_tcp(peer, "::ffff:10.0.0.1") == "[::ffff:10.0.0.1]:70");
  CHECK_THROWS_WITH_AS(net::reachable_tcp(peer, "fd00::1"),
                       "the peer listens on 0.0.0.0 (IPv4 only), but its host is known as "
                       "fd00::1: set its listen address to [::]:0",
                       std::runtime_error);
  CHECK(net::advertised("0.0.0.0:0", "10.0.0.2") == "10.0.0.2");
  CHECK(net::advertised("[::]:0", "fd00::2") == "fd00::2");
  CHECK(net::advertised("[::]:0", "10.0.0.2") == "10.0.0.2"); // takes both
  for (const auto* here : {"", "127.0.0.1", "::1"})
    CHECK(net::advertised("0.0.0.0:0", here).empty());
  CHECK(net::advertised("10.0.0.2:0", "fd00::2").empty()); // as it is
  CHECK_THROWS_AS(net::advertised("0.0.0.0:0", "fd00::2"), std::invalid_argument);
}
