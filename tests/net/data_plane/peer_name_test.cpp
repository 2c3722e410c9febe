// Links to peers that are told by name: the lookup is bounded, and its failure is told.
#include "net/data_plane/peer_address.hpp"
#include "tests/net/data_plane/test_plane.hpp"

#include <future>

using namespace lamella;
using namespace lamella::tests;
using gpu::channel_state;
using kind = net::link_event::kind;

namespace {

const net::link_key key{1, 0, 0, 0};
const net::link_terms terms{4, 4096, 0, {}};

/// Two planes; one looks names up in its own way, and knows the other by a name alone, which no
/// other test may use: an answer under way is everybody's.
struct named_peer {
  named_peer(std::string name_of_it, net::host_lookup names)
      : name{std::move(name_of_it)}, far{"tcp", folder, "far"}, near{"tcp", folder, "near",
                                                                     [&](auto& o) {
                                                                       o.names = std::move(names);
                                                                     }} {}

  net::link_end connect(std::chrono::milliseconds limit) {
    auto address = net::parse_peer_address(far.plane->address()).value();
    address.tcp = name + ":" + std::to_string(net::parse_host_and_port(address.tcp)->port);
    return near.plane->connect(net::to_string(address), key, terms, limit);
  }

  /// The reason why there is no link.
  std::string refusal(std::chrono::milliseconds limit) {
    const auto end = connect(limit);
    CHECK(holds_soon([&] { return end.to->state() == channel_state::closed; }));
    return near.log->wait_for(kind::refused);
  }

  std::string name;
  scratch_folder folder;
  test_plane far, near;
};

} // namespace

TEST_CASE("a lookup of a peer's name that hangs does not outlast the patience for the link") {
  std::promise<void> release;
  const auto hangs = [until = release.get_future().share()](const std::string&) {
    until.wait();
    return std::vector<std::string>{};
  };
  const auto reason = named_peer{"hangs.test", hangs}.refusal(std::chrono::milliseconds{100});
  CHECK(reason.find("name lookup timed out after 100 ms") != std::string::npos);
  release.set_value();
}

TEST_CASE("a peer's name that nobody knows is told, one that is known leads to the peer") {
  named_peer unknown{"nobody.test", [](const std::string&) -> std::vector<std::string> {
                       throw std::runtime_error{"no such host"};
                     }};
  const auto reason = unknown.refusal(timeout);
  CHECK(reason.find("nobody.test:") != std::string::npos);
  CHECK(reason.find("no such host") != std::string::npos);
  named_peer known{"known.test",
                   [](const std::string&) { return std::vector<std::string>{"127.0.0.1"}; }};
  const auto b = known.far.plane->accept(key, terms, timeout);
  const auto a = known.connect(timeout);
  REQUIRE(send(*a.to, 1, 17));
  CHECK(take(*b.from, 1, 17));
}
