// How links come about: which transport, who is let in, and what strangers and bad wires can do.
#include "net/data_plane/handshake.hpp"
#include "net/data_plane/peer_address.hpp"
#include "net/rdma/open_verbs.hpp"
#include "tests/net/data_plane/tampering_proxy.hpp"
#include "tests/net/http/raw_client.hpp"
#include "tests/net/link/link_rig.hpp"

#include <random>

#include <sys/un.h>

using namespace lamella;
using namespace lamella::tests;
using gpu::channel_state;
using kind = net::link_event::kind;
using test::tampering_proxy;

namespace {

const net::link_key key{1, 0, 0, 0};
const net::link_terms terms{4, 4096, 0, {}};

/// `address` with one of its parts replaced.
std::string with(const std::string& address,
                 const std::function<void(net::peer_address&)>& change) {
  auto x = net::parse_peer_address(address).value();
  change(x);
  return net::to_string(x);
}

uint16_t port_of(const test_plane& x) {
  return net::parse_host_and_port(net::parse_peer_address(x.plane->address())->tcp)->port;
}

struct two_planes {
  explicit two_planes(const std::string& transport = "auto",
                      const std::function<void(net::data_plane_options&)>& change_far = {},
                      const std::function<void(net::data_plane_options&)>& change_near = {})
      : far{transport, folder, "far", change_far}, near{transport, folder, "near", change_near} {}

  /// The other side of a link whose bytes go through a proxy.
  void open(const tampering_proxy& proxy, const net::link_terms& t = terms) {
    b = far.plane->accept(key, t, timeout);
    a = near.plane->connect(
        with(far.plane->address(),
             [&](auto& x) { x.tcp = "127.0.0.1:" + std::to_string(proxy.port()); }),
        key, t, timeout);
  }
  /// A link that works: the planes have survived what was done to them.
  void check_alive() { check_link(near, far); }
  static void check_link(test_plane& from, test_plane& to) {
    const net::link_key other{9, 9, 9, 9};
    auto y = to.plane->accept(other, terms, timeout);
    auto x = from.plane->connect(to.plane->address(), other, terms, timeout);
    CHECK(send(*x.to, 1, 17));
    CHECK(take(*y.from, 1, 17));
  }
  scratch_folder folder;
  test_plane far, near;
  net::link_end a, b;
};

/// Bytes of the connecting side before its first frame.
constexpr uint64_t before_frames = sizeof(net::hello) + sizeof(net::answer);

/// Changes the byte at an offset of the stream.
tampering_proxy::spoiler flip(uint64_t at) {
  return [at](uint64_t offset, std::span<unsigned char> bytes) {
    if (at >= offset && at < offset + bytes.size()) bytes[at - offset] ^= 1;
    return bytes.size();
  };
}

/// Passes on the first `count` bytes only.
tampering_proxy::spoiler cut(uint64_t count) {
  return [count](uint64_t offset, std::span<unsigned char> bytes) {
    return offset >= count ? size_t{0} : std::min<size_t>(bytes.size(), count - offset);
  };
}

} // namespace

TEST_CASE("the transport is the best there is, and the reason is told") {
  two_planes x;
  const auto address = x.far.plane->address();
  const auto up = [&](const std::string& to, const std::string& reason, uint32_t stream,
                      net::data_plane& by) {
    const net::link_key k{1, stream, 0, 0};
    auto b = (to == x.near.plane->address() ? x.near : x.far).plane->accept(k, terms, timeout);
    auto a = by.connect(to, k, terms, timeout);
    REQUIRE(send(*a.to, 1, 17));
    CHECK(take(*b.from, 1, 17));
    x.near.log->wait_for(kind::up, reason);
  };
  up(x.near.plane->address(), "same process", 1, *x.near.plane);
  up(address, "same host", 2, *x.near.plane);
  up(with(address, [](auto& a) { a.host = "elsewhere"; }), "another host", 3, *x.near.plane);
  up(with(address, [](auto& a) { a.unix_path = "/nowhere/at/all"; }), "no shared memory: ", 4,
     *x.near.plane);
  up(with(address, [](auto& a) { a.unix_path.clear(); }), "the peer has no unix socket", 5,
     *x.near.plane);
}

TEST_CASE("a transport that is forced and cannot be had is refused with the reason") {
  const auto refused = [](const std::string& transport, const std::string& reason,
                          const std::function<void(net::peer_address&)>& change) {
    two_planes x{transport};
    auto b = x.far.plane->accept(key, terms, timeout);
    auto a = x.near.plane->connect(with(x.far.plane->address(), change), key, terms, timeout);
    CHECK(holds_soon([&] { return a.to->state() == channel_state::closed; }));
    x.near.log->wait_for(kind::refused, reason);
  };
  refused("in_process", "the peer is another process", [](auto&) {});
  refused("shm", "the peer has no unix socket", [](auto& a) { a.unix_path.clear(); });
  refused("shm", "No such file", [](auto& a) { a.unix_path = "/nowhere/at/all"; });
  refused("tcp", "the peer does not listen on TCP", [](auto& a) { a.tcp.clear(); });
  refused("tcp", "127.0.0.1:1: Connection refused", [](auto& a) { a.tcp = "127.0.0.1:1"; });
  std::string none; // where there is an adapter, it is the peer that has none
  const bool adapter = net::open_verbs(none) != nullptr;
  refused("verbs_staged",
          adapter ? "the peer has no RDMA port in use" : "RDMA verbs are not available: " + none,
          [](auto& a) { a.verbs.clear(); });
}

TEST_CASE("who does not know the secret is not let in, on either side") {
  for (const std::string transport : {"shm", "tcp"}) {
    CAPTURE(transport);
    two_planes x{transport, [](auto& o) { o.secret = "another secret of some length"; }};
    auto b = x.far.plane->accept(key, terms, timeout);
    auto a = x.near.plane->connect(x.far.plane->address(), key, terms, timeout);
    CHECK(holds_soon([&] { return a.to->state() == channel_state::closed; }));
    x.near.log->wait_for(kind::refused, "the peer has another secret");
    x.far.log->wait_for(kind::refused);
    CHECK(b.to->state() == channel_state::open); // still waits for the right one
    CHECK(b.to->reserve(1) == nullptr);
  }
}

TEST_CASE("a peer of another cluster or with other terms is refused with both values") {
  for (const std::string transport : {"shm", "tcp"}) {
    CAPTURE(transport);
    two_planes strangers{transport, [](auto& o) { o.cluster = 8; }};
    auto a = strangers.near.plane->connect(strangers.far.plane->address(), key, terms, timeout);
    CHECK(holds_soon([&] { return a.to->state() == channel_state::closed; }));
    strangers.far.log->wait_for(kind::refused, "cluster 7, this is 8");
    two_planes x{transport};
    auto b = x.far.plane->accept(key, {8, 4096, 0, {}}, timeout);
    auto c = x.near.plane->connect(x.far.plane->address(), key, terms, timeout);
    CHECK(holds_soon([&] { return c.to->state() == channel_state::closed; }));
    x.near.log->wait_for(kind::refused, "4 slots of 4096 bytes, here 8 of 4096");
    x.far.log->wait_for(kind::refused, "4 slots of 4096 bytes, here 8 of 4096");
  }
}

TEST_CASE("a link that nobody comes for, or that nobody expects, ends at its deadline") {
  for (const std::string transport : {"in_process", "shm", "tcp"}) {
    CAPTURE(transport);
    two_planes x{transport, [](auto& o) { o.early = 17ms; }};
    auto b = x.far.plane->accept(key, terms, 17ms);
    CHECK(holds_soon([&] { return b.from->state() == channel_state::closed; }));
    x.far.log->wait_for(kind::refused, "no peer connected within 17 ms");
    auto& connects = transport == "in_process" ? x.far : x.near;
    auto a = connects.plane->connect(x.far.plane->address(), key, terms,
                                     transport == "in_process" ? 17ms : timeout);
    CHECK(holds_soon([&] { return a.from->state() == channel_state::closed; }));
    connects.log->wait_for(kind::refused, "this link is not expected");
  }
}

TEST_CASE("a peer that comes before it is expected waits for that") {
  for (const std::string transport : {"in_process", "shm", "tcp"}) {
    CAPTURE(transport);
    two_planes x{transport};
    auto& connects = transport == "in_process" ? x.far : x.near;
    auto a = connects.plane->connect(x.far.plane->address(), key, terms, timeout);
    CHECK(a.to->reserve(1) == nullptr);
    auto b = x.far.plane->accept(key, terms, timeout);
    CHECK(send(*a.to, 1, 17));
    CHECK(take(*b.from, 1, 17));
  }
}

TEST_CASE("a peer that takes the connection and says nothing is given up at the deadline") {
  two_planes x{"tcp"};
  const tampering_proxy hole{port_of(x.far), cut(0)};
  auto a = x.near.plane->connect(
      with(x.far.plane->address(),
           [&](auto& at) { at.tcp = "127.0.0.1:" + std::to_string(hole.port()); }),
      key, terms, 54ms);
  CHECK(holds_soon([&] { return a.from->state() == channel_state::closed; }));
  x.near.log->wait_for(kind::refused, "within 54 ms");
}

TEST_CASE("garbage of strangers changes nothing for members") {
  two_planes x{"auto", [](auto& o) { o.strangers_max = 7; }};
  std::mt19937 random{54};
  for (int round = 0; round < 17; ++round) {
    test::raw_client stranger{port_of(x.far)};
    std::string bytes(sizeof(net::hello) + random() % 500, '\0');
    for (auto& c : bytes) c = static_cast<char>(random());
    stranger.send(bytes);
    CHECK(stranger.read_all().empty()); // no answer at all, and the connection ends
  }
  x.far.log->wait_for(kind::refused, "not a link hello");
  x.check_alive();
}

TEST_CASE("who only looks whether a plane listens, as probes do, is not told of") {
  two_planes x{"tcp"};
  for (int round = 0; round < 7; ++round) test::raw_client{port_of(x.far)}.close();
  test::raw_client stranger{port_of(x.far)};
  stranger.send(std::string(sizeof(net::hello), 'x'));
  CHECK(stranger.read_all().empty());
  x.far.log->wait_for(kind::refused);
  CHECK(x.far.log->first(kind::refused).text.find("not a link hello") != std::string::npos);
  x.check_alive();
}

TEST_CASE("silence and crowds of strangers end when their time is over, and change nothing else") {
  two_planes x{"auto", [](auto& o) {
                 o.handshake = 170ms;
                 o.strangers_max = 7;
               }};
  std::vector<std::unique_ptr<test::raw_client>> strangers;
  for (int i = 0; i < 17; ++i) {
    strangers.push_back(std::make_unique<test::raw_client>(port_of(x.far)));
    strangers.back()->send(std::string(static_cast<size_t>(i), 'x')); // a hello is longer
  }
  for (auto& s : strangers) CHECK(s->read_all().empty()); // at once, or when their time is over
  x.far.log->wait_for(kind::refused, "did not authenticate within 170 ms");
  // A member may need longer than that on a busy machine to be let in: this side lets one in.
  two_planes::check_link(x.far, x.near);
}

TEST_CASE("any byte that changes on the wire ends the link, and nothing wrong is delivered") {
  const uint64_t last = before_frames + 64 + 1000 - 1;
  for (uint64_t at : {before_frames, before_frames + 20, before_frames + 48, before_frames + 63,
                      before_frames + 64, before_frames + 500, last}) {
    CAPTURE(at);
    two_planes x{"tcp"};
    const tampering_proxy wire{port_of(x.far), flip(at)};
    x.open(wire);
    REQUIRE(send(*x.a.to, 1, 1000));
    CHECK(holds_soon([&] {
      CHECK(x.b.from->peek(0) == nullptr);
      return x.b.from->state() == channel_state::torn;
    }));
    CHECK(holds_soon([&] { return x.a.to->state() != channel_state::open; }));
  }
}

TEST_CASE("a handshake that changes on the wire makes no link") {
  for (uint64_t at : {0u, 5u, 12u, 30u, 60u, 87u, 88u, 119u}) {
    CAPTURE(at);
    two_planes x{"tcp", [](auto& o) { o.early = 54ms; }};
    const tampering_proxy wire{port_of(x.far), flip(at)};
    x.open(wire);
    CHECK(holds_soon([&] { return x.a.to->state() == channel_state::closed; }));
    CHECK(x.b.to->reserve(1) == nullptr);
  }
}

TEST_CASE("a frame that stops in the middle is never seen") {
  for (uint64_t after : {uint64_t{1}, uint64_t{63}, uint64_t{64}, uint64_t{65}, uint64_t{1063}}) {
    CAPTURE(after);
    two_planes x{"tcp"};
    const tampering_proxy wire{port_of(x.far), cut(before_frames + after), true};
    x.open(wire);
    REQUIRE(send(*x.a.to, 1, 1000));
    CHECK(holds_soon([&] { return x.b.from->state() == channel_state::closed; }));
    CHECK(x.b.from->peek(0) == nullptr);
  }
}

TEST_CASE("a frame that comes twice is one more than there is credit for, or torn") {
  two_planes x{"tcp"};
  std::vector<unsigned char> seen;
  // Passes frames on, but each fourth one is replaced by a copy of the one before.
  const tampering_proxy wire{port_of(x.far), [&](uint64_t offset, std::span<unsigned char> bytes) {
                               for (size_t i = 0; i < bytes.size(); ++i) {
                                 const auto at = offset + i;
                                 if (at < before_frames) continue;
                                 seen.push_back(bytes[i]);
                                 if (seen.size() > 3 * 128) bytes[i] = seen[seen.size() - 129];
                               }
                               return bytes.size();
                             }};
  x.open(wire, {4, 64, 0, {}});
  for (uint64_t n = 0; n < 4; ++n) REQUIRE(send(*x.a.to, n, 64));
  // The copy is a whole frame: it arrives, and its tag says that it is not the one expected.
  for (uint64_t n = 0; n < 3; ++n) CHECK(take(*x.b.from, n, 64));
  REQUIRE(holds_soon([&] { return x.b.from->peek(0) != nullptr; }));
  CHECK(x.b.from->receive(tag_of(3), 64) == nullptr);
  CHECK(x.b.from->peek(0) == nullptr); // dropped as older
}

TEST_CASE("a peer that stops reading is cut off, and says why") {
  two_planes x{"tcp", {}, [](auto& o) { o.unread = 170ms; }};
  const tampering_proxy wire{port_of(x.far), cut(before_frames)};
  const net::link_terms large{4, 16 << 20, 0, {}};
  x.open(wire, large);
  uint64_t sent = 0;
  CHECK(holds_soon([&] {
    if (auto* p = x.a.to->reserve(16 << 20)) {
      fill(p, 16 << 20, sent);
      x.a.to->commit(tag_of(sent++));
    }
    return x.a.to->state() == channel_state::unread;
  }));
  CHECK(sent <= 4);
  x.near.log->wait_for(kind::ended, "read nothing for 170 ms");
}

TEST_CASE("a peer that listens everywhere and tells no address is on the control process's host") {
  const auto everywhere = [](net::data_plane_options& o) { o.listen = "0.0.0.0:0"; };
  const auto knows_home = [](net::data_plane_options& o) { o.home = "127.0.0.1"; };
  two_planes planes{"tcp", everywhere, knows_home};
  CHECK(net::parse_host_and_port(net::parse_peer_address(planes.far.plane->address())->tcp)->host
        == "0.0.0.0");
  planes.check_alive();
  // One that knows how others reach it tells that.
  const auto told = [&](net::data_plane_options& o) {
    everywhere(o);
    o.advertise = "127.0.0.2";
  };
  two_planes known{"tcp", told};
  CHECK(net::parse_host_and_port(net::parse_peer_address(known.far.plane->address())->tcp)->host
        == "127.0.0.2");
  known.check_alive();
}

TEST_CASE("who cannot reach a peer that listens for its own host alone is told so") {
  two_planes x;
  const auto gone = with(x.far.plane->address(), [](auto& a) {
    a.host = "elsewhere";
    a.tcp = "127.0.0.1:1";
  });
  auto a = x.near.plane->connect(gone, key, terms, timeout);
  x.near.log->wait_for(kind::refused, "set net.listen of the service or --listen of the worker");
}

TEST_CASE("a link to a peer of IPv4 comes about where the control process is reached at ::1") {
  const auto everywhere = [](net::data_plane_options& o) { o.listen = "0.0.0.0:0"; };
  const auto by_six = [](net::data_plane_options& o) { o.home = "::1"; };
  two_planes planes{"tcp", everywhere, by_six};
  planes.check_alive();
}

TEST_CASE("addresses say where, and nothing else is taken for one") {
  const net::peer_address x{"p", "h", "/a/b", "[::1]:54", "rxe0 port 1"};
  const auto y = net::parse_peer_address(net::to_string(x));
  REQUIRE(y);
  CHECK((y->process == "p" && y->host == "h" && y->unix_path == "/a/b" && y->tcp == "[::1]:54"));
  CHECK(y->verbs == "rxe0 port 1");
  CHECK(net::parse_host_and_port("[::1]:54")->host == "::1");
  CHECK(net::parse_peer_address("lamella-link/1;process=p;later=x"));
  for (const char* no :
       {"", "lamella-link/2;process=p", "lamella-link/1", "lamella-link/1;process",
        "lamella-link/1;process=", "lamella-link/1process=p", "lamella-link/1;process=p;tcp=here",
        "lamella-link/1;process=p;tcp=a:70000"})
    CHECK_FALSE(net::parse_peer_address(no));
  two_planes z;
  CHECK_THROWS_AS(z.near.plane->connect("nonsense", key, terms, 1s), std::invalid_argument);
  CHECK_THROWS_AS(z.near.plane->accept(key, {0, 64, 0, {}}, 1s), std::invalid_argument);
  CHECK_THROWS_AS(z.near.plane->accept(key, {4, 0, 0, {}}, 1s), std::invalid_argument);
  CHECK_THROWS_AS(z.near.plane->accept(key, {4, size_t{1} << 31, 0, {}}, 1s),
                  std::invalid_argument);
}

TEST_CASE("options that cannot work are refused, and a socket that was left behind is not") {
  scratch_folder folder;
  const auto with_options = [&](const std::function<void(net::data_plane_options&)>& change) {
    test_plane{"auto", folder, "x", change};
  };
  CHECK_THROWS_AS(with_options([](auto& o) { o.secret = "short"; }), std::invalid_argument);
  CHECK_THROWS_AS(with_options([](auto& o) { o.transport = "pigeons"; }), std::invalid_argument);
  CHECK_THROWS_AS(with_options([](auto& o) { o.listen = "here"; }), std::invalid_argument);
  CHECK_THROWS_AS(with_options([](auto& o) { o.unix_path = "/" + std::string(200, 'x'); }),
                  std::invalid_argument);
  CHECK_THROWS_AS(with_options([](auto& o) { o.unix_path = "/nowhere/at/all"; }),
                  std::system_error);
  const auto path = (folder / "left").string();
  sockaddr_un left{};
  left.sun_family = AF_UNIX;
  std::copy(path.begin(), path.end(), left.sun_path);
  const int dead = ::socket(AF_UNIX, SOCK_STREAM, 0);
  REQUIRE(::bind(dead, reinterpret_cast<const sockaddr*>(&left), sizeof left) == 0);
  ::close(dead); // as a killed process leaves it
  test_plane first{"auto", folder, "left"};
  CHECK_THROWS_AS((test_plane{"auto", folder, "left"}), std::system_error); // in use
  first.plane.reset();
  CHECK_FALSE(std::filesystem::exists(path));
}
