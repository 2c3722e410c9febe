// What links over verbs do when the other side's adapter, memory or process does what it should
// not. The other side is raw: it writes what it likes, where its key lets it.
#include "base/crc32c.hpp"
#include "net/data_plane/peer_address.hpp"
#include "net/rdma/open_verbs.hpp"
#include "net/rdma/verbs_link.hpp"
#include "tests/rdma/verbs_tier.hpp"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

using namespace lamella;
using namespace lamella::tests;
namespace asio = boost::asio;
using gpu::channel_state;
using kind = net::link_event::kind;

namespace {

net::verbs_device& adapter() {
  static std::string why;
  static const auto device = net::open_verbs(why);
  if (!device) throw std::runtime_error{"no adapter: " + why};
  return *device;
}

/// Registered memory and a queue, without the rules of a link.
struct raw_end {
  explicit raw_end(size_t bytes)
      : memory(bytes), queue{adapter().make_queue({memory, memory}, 64)} {}

  /// Writes bytes to a place in the peer's memory and waits for the outcome: nothing, or why not.
  std::optional<std::string> write(const void* from, uint32_t bytes, uint64_t to) {
    std::memcpy(memory.data(), from, bytes);
    const net::verbs_write w{memory.data(), bytes, to, false};
    queue->post({&w, 1}, true);
    std::optional<std::string> failed;
    CHECK(holds_soon([&] { return (failed = queue->poll()) || queue->settled(); }));
    return failed;
  }

  std::vector<std::byte> memory;
  std::unique_ptr<net::verbs_queue> queue;
};

/// A real link whose peer is a raw end that knows its layout.
struct forged_link {
  forged_link() {
    net::verbs_link::terms t;
    t.rings = rings;
    t.bell = bell;
    t.on_end = [this](const std::string& text) { ended.set_value(text); };
    link = std::make_shared<net::verbs_link>(io.get_executor(), adapter(), std::move(t));
    peer.queue->connect(link->here());
    link->connect(peer.queue->here());
    asio::ip::tcp::acceptor door{io, {asio::ip::address_v4::loopback(), 0}};
    theirs.connect(door.local_endpoint());
    on_plane([&] { near = link->start(door.accept()); });
  }
  ~forged_link() {
    on_plane([&] { link->close(channel_state::closed, "the test ends"); });
    io.stop();
    thread.join();
  }

  void on_plane(const std::function<void()>& f) {
    std::promise<void> done;
    asio::post(io, [&] {
      f();
      done.set_value();
    });
    done.get_future().wait();
  }

  /// A header and payload into slot 0 of the link's ring, as an honest sender would.
  gpu::frame_header good_header(std::span<const std::byte> payload) const {
    auto x = gpu::make_header(tag_of(1), static_cast<uint32_t>(payload.size()), rings, {});
    x.flags = gpu::frame_has_payload_crc;
    x.payload_crc = crc32c(payload.data(), payload.size());
    gpu::seal(x);
    return x;
  }
  void write_frame(const gpu::frame_header& header, std::span<const std::byte> payload) {
    const auto slot = ring + gpu::slot_offset(rings.slot_bytes, 0);
    CHECK_FALSE(
        peer.write(payload.data(), static_cast<uint32_t>(payload.size()), slot + sizeof header));
    CHECK_FALSE(peer.write(&header, sizeof header, slot));
  }
  void write_seqno(gpu::seqno x) {
    CHECK_FALSE(peer.write(&x, sizeof x, ring + offsetof(gpu::ring_control, sent)));
  }
  /// The end of the link, as its receiver sees it.
  channel_state seen() {
    CHECK(holds_soon([&] {
      CHECK(near.from->peek(0) == nullptr);
      return near.from->state() != channel_state::open;
    }));
    return near.from->state();
  }

  static constexpr uint64_t ring = net::link_memory::in_at;
  const gpu::ring_terms rings{4, 4096, 1, 0, 7, 0};
  asio::io_context io;
  asio::executor_work_guard<asio::io_context::executor_type> work{io.get_executor()};
  std::thread thread{[this] { io.run(); }};
  std::shared_ptr<gpu::doorbell> bell = std::make_shared<gpu::doorbell>();
  std::promise<std::string> ended;
  raw_end peer{ring + rings.bytes() + sizeof(gpu::ring_control)};
  asio::ip::tcp::socket theirs{io};
  std::shared_ptr<net::verbs_link> link;
  net::link_end near;
};

std::vector<std::byte> payload_of(uint64_t n) {
  std::vector<std::byte> bytes(1000);
  fill(bytes.data(), bytes.size(), n);
  return bytes;
}

/// `address` with one of its parts replaced.
std::string with(const std::string& address,
                 const std::function<void(net::peer_address&)>& change) {
  auto x = net::parse_peer_address(address).value();
  change(x);
  return net::to_string(x);
}

} // namespace

TEST_CASE("what an adapter has written is believed only after its checks") {
  const auto payload = payload_of(1);
  {
    forged_link x; // the forger knows how it is done
    x.write_frame(x.good_header(payload), payload);
    CHECK(x.near.from->peek(0) == nullptr);
    x.write_seqno(gpu::make_seqno(1, 1));
    CHECK(take(*x.near.from, 1, payload.size()));
  }
  const std::vector<std::function<void(gpu::frame_header&)>> wrong{
      [](auto& h) { h.magic ^= 1; },       [](auto& h) { h.payload_bytes = 4097; },
      [](auto& h) { h.cluster = 8; },      [](auto& h) { h.kind = 17; },
      [](auto& h) { h.payload_crc ^= 1; }, // payload and header are not of one frame: torn
  };
  for (size_t i = 0; i < wrong.size(); ++i) {
    CAPTURE(i);
    forged_link x;
    auto header = x.good_header(payload);
    wrong[i](header);
    gpu::seal(header);
    x.write_frame(header, payload);
    x.write_seqno(gpu::make_seqno(1, 1));
    CHECK(x.seen() == channel_state::torn);
  }
  forged_link unsealed;
  auto header = unsealed.good_header(payload);
  header.layer = 54;
  unsealed.write_frame(header, payload);
  unsealed.write_seqno(gpu::make_seqno(1, 1));
  CHECK(unsealed.seen() == channel_state::torn);
}

TEST_CASE("a seqno of another epoch or of frames that cannot be ends the link") {
  forged_link stale, torn;
  stale.write_seqno(gpu::make_seqno(2, 1));
  CHECK(stale.seen() == channel_state::stale);
  torn.write_seqno(gpu::make_seqno(1, 5)); // of four slots
  CHECK(torn.seen() == channel_state::torn);
}

TEST_CASE("a peer writes into the memory it was given and nowhere else") {
  forged_link x;
  const auto payload = payload_of(1);
  const auto end = x.link->here().landing_bytes;
  CHECK_FALSE(x.peer.write(payload.data(), 64, end - 64));
  CHECK_THROWS(x.peer.write(payload.data(), 64, end - 63)); // it would not even post it
  // An adapter that does not know its bounds is stopped by the key.
  raw_end a{4096}, b{4096};
  auto wide = b.queue->here();
  wide.landing_bytes = 1 << 20;
  b.queue->connect(a.queue->here());
  a.queue->connect(wide);
  CHECK_FALSE(a.write(payload.data(), 64, 0));
  const auto failed = a.write(payload.data(), 64, 8192);
  REQUIRE(failed);
  CHECK(failed->find("remote access error") != std::string::npos);
}

TEST_CASE("a key that has been taken back writes nothing, and its queue ends") {
  raw_end a{4096};
  net::verbs_end old;
  {
    raw_end before{4096};
    old = before.queue->here();
  }
  raw_end b{4096};
  b.queue->connect(a.queue->here());
  auto forged = b.queue->here();
  CHECK(forged.key != old.key);
  forged.key = old.key;
  a.queue->connect(forged);
  const uint64_t word = 54;
  const auto failed = a.write(&word, sizeof word, 0);
  REQUIRE(failed);
  CHECK(failed->find("remote access error") != std::string::npos);
  CHECK(std::all_of(b.memory.begin(), b.memory.end(), [](auto x) { return x == std::byte{0}; }));
}

TEST_CASE("a write that fails ends the link with the adapter's reason") {
  forged_link x;
  x.peer.queue.reset(); // its memory and queue are gone, its process and socket are not
  REQUIRE(send(*x.near.to, 1, 1000));
  auto ended = x.ended.get_future();
  REQUIRE(ended.wait_for(timeout) == std::future_status::ready);
  CHECK(ended.get().find("a write has failed: transport retry counter exceeded")
        != std::string::npos);
  CHECK(x.near.to->state() == channel_state::closed);
  CHECK(x.near.to->reserve(1) == nullptr);
}

TEST_CASE("the peer's reason to end comes along") {
  forged_link x;
  const auto why = static_cast<uint64_t>(channel_state::revoked);
  CHECK_FALSE(x.peer.write(&why, sizeof why, sizeof(gpu::ring_word)));
  CHECK(x.seen() == channel_state::revoked);
}

TEST_CASE("a frame larger than what an adapter takes in one write comes in several") {
  constexpr size_t bytes = 9 << 20; // rxe: 8 MiB
  link_rig<verbs_tier> x{{1, bytes, 0, {}}};
  REQUIRE(send(*x.near.to, 1, bytes));
  CHECK(take(*x.far.from, 1, bytes));
}

TEST_CASE("a process that is killed ends its links, with frames under way or without") {
  for (int frames = 0; frames < 3; ++frames) {
    CAPTURE(frames);
    link_rig<verbs_tier> x;
    REQUIRE(send(*x.near.to, 0, 17));
    REQUIRE(take(*x.far.from, 0, 17));
    for (int n = 1; n <= frames; ++n) REQUIRE(send(*x.near.to, n, 4000));
    dynamic_cast<remote_far&>(*x.other).die();
    CHECK(holds_soon([&] { return x.near.from->state() == channel_state::closed; }));
    CHECK(x.near.to->reserve(1) == nullptr);
    x.mine.log->wait_for(kind::ended);
  }
}

TEST_CASE("adapters are preferred to TCP and not to shared memory, and the reason is told") {
  const scratch_folder folder;
  const net::link_key key{1, 0, 0, 0};
  const net::link_terms terms{4, 4096, 0, {}};
  const auto check = [&](const std::string& far_transport, net::link_transport expected,
                         const std::string& reason,
                         const std::function<void(net::peer_address&)>& change) {
    CAPTURE(reason);
    remote_far far{rdma_address("RDMA_PEER"), far_transport};
    test_plane near{"auto", folder, "near", verbs_tier::change};
    const auto b = far.accept(key, terms);
    const auto a = near.plane->connect(with(far.address(), change), key, terms, timeout);
    REQUIRE(send(*a.to, 1, 17));
    CHECK(take(*b.from, 1, 17));
    near.log->wait_for(kind::up, reason);
    CHECK(near.log->first(kind::up).transport == expected);
  };
  const auto elsewhere = [](net::peer_address& a) { a.host = "elsewhere"; };
  check("auto", net::link_transport::verbs_staged,
        "another host; rxe0 port 1, RoCE v2 ::ffff:", elsewhere);
  check("auto", net::link_transport::tcp, "no verbs: the peer has no RDMA port in use",
        [](auto& a) {
          a.host = "elsewhere";
          a.verbs.clear();
        });
  check("tcp", net::link_transport::tcp,
        "no verbs: the peer: RDMA verbs are not available: net.transport is tcp", [](auto& a) {
          a.host = "elsewhere";
          a.verbs = "as it says";
        });
  if (rdma_address("RDMA_PEER") == rdma_address("RDMA_SELF"))
    check("auto", net::link_transport::shm, "same host", [](auto&) {});
}
