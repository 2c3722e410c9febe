// Whether two data planes hear each other: what asking comes to over real sockets.
#include "net/data_plane/peer_address.hpp"
#include "tests/net/data_plane/tampering_proxy.hpp"
#include "tests/net/data_plane/test_plane.hpp"

using namespace lamella;
using namespace lamella::tests;
using test::tampering_proxy;

namespace {

/// Asks often, so that tests need not wait.
void quick(net::data_plane_options& o) {
  using namespace std::chrono_literals;
  o.asking = {2ms, 200ms, 2ms};
}

struct two {
  explicit two(const std::string& transport = "auto")
      : far{transport, folder, "far", quick}, near{transport, folder, "near", quick} {}
  std::string through(const tampering_proxy& proxy) const {
    auto x = net::parse_peer_address(far.plane->address()).value();
    x.tcp = "127.0.0.1:" + std::to_string(proxy.port());
    x.unix_path.clear();
    return net::to_string(x);
  }
  uint16_t far_port() const {
    return net::parse_host_and_port(net::parse_peer_address(far.plane->address())->tcp)->port;
  }
  scratch_folder folder;
  test_plane far, near;
};

bool fails(const net::peer_reach& x) {
  return x.failing(net::peer_reach::clock::now()).has_value();
}

} // namespace

TEST_CASE("A1 peers answer by each way that links may take, and no link is made for it") {
  for (const char* transport : {"auto", "shm", "tcp"}) {
    CAPTURE(transport);
    two x{transport};
    const auto reach = x.near.plane->watch(x.far.plane->address());
    CHECK(holds_soon([&] { return reach->answers(); }));
    CHECK_FALSE(fails(*reach));
    CHECK(x.near.log->all().empty());
    CHECK(x.far.log->all().empty());
    CHECK(x.near.plane->watch(x.near.plane->address())->answers()); // of itself it need not ask
  }
  two x;
  CHECK_THROWS_AS(x.near.plane->watch("no address"), std::invalid_argument);
}

TEST_CASE("A1 a peer that is gone, or knows another secret, does not answer") {
  two x;
  const auto reach = x.near.plane->watch(x.far.plane->address());
  CHECK(holds_soon([&] { return reach->answers(); }));
  x.far.plane.reset();
  CHECK(holds_soon([&] { return fails(*reach) && !reach->answers(); }));
  test_plane stranger{"auto", x.folder, "stranger", [](net::data_plane_options& o) {
                        quick(o);
                        o.secret = "another secret of its own";
                      }};
  const auto other = x.near.plane->watch(stranger.plane->address());
  CHECK(holds_soon([&] { return fails(*other); }));
  CHECK_FALSE(other->answers());
}

TEST_CASE("A1 one way is no way: what is asked arrives nowhere, and fails until it does") {
  two x{"tcp"};
  std::atomic<bool> mute{false};
  tampering_proxy proxy{x.far_port(), [&](uint64_t, std::span<unsigned char> bytes) {
                          return mute ? size_t{0} : bytes.size();
                        }};
  const auto reach = x.near.plane->watch(x.through(proxy));
  CHECK(holds_soon([&] { return reach->answers(); }));
  mute = true;
  CHECK(holds_soon([&] { return fails(*reach); }));
  CHECK_FALSE(reach->answers());
}

TEST_CASE("A1 an isolated process hears nobody and is not heard, and is again afterwards") {
  using namespace std::chrono_literals;
  two x;
  const auto there = x.near.plane->watch(x.far.plane->address());
  const auto back = x.far.plane->watch(x.near.plane->address());
  CHECK(holds_soon([&] { return there->answers() && back->answers(); }));
  x.far.plane->isolate(10min);
  CHECK(holds_soon([&] { return fails(*there) && fails(*back); }));
  x.far.plane->isolate(0ms);
  CHECK(holds_soon([&] { return there->answers() && back->answers(); }));
}

TEST_CASE("A1 nobody is asked any more once nobody wants to know") {
  two x;
  auto reach = x.near.plane->watch(x.far.plane->address());
  CHECK(holds_soon([&] { return reach->answers(); }));
  const std::weak_ptr<const net::peer_reach> weak = reach;
  reach.reset();
  CHECK(weak.expired()); // the plane keeps none
}
