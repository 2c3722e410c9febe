// Every field of a frame's header wrong in turn, and the header sealed again, so that nothing but
// the field tells: on the wire of TCP, and in the memory of rings (shared memory and RDMA).
#include "net/data_plane/handshake.hpp"
#include "net/data_plane/peer_address.hpp"
#include "tests/net/data_plane/tampering_proxy.hpp"
#include "tests/net/data_plane/test_plane.hpp"

#include <atomic>
#include <cstring>
#include <vector>

using namespace lamella;
using namespace lamella::tests;
using gpu::channel_state, gpu::frame_header;
using test::tampering_proxy;

namespace {

struct wrong_field {
  const char* name;
  std::function<void(frame_header&)> spoil;
  channel_state why = channel_state::torn;
};

/// Those by which a frame is refused, whoever reads it.
const std::vector<wrong_field> refused = {
    {"magic", [](auto& h) { h.magic ^= 1; }},
    {"version", [](auto& h) { ++h.version; }},
    {"kind", [](auto& h) { h.kind = 200; }},
    {"flags", [](auto& h) { h.flags |= 4; }},
    {"cluster", [](auto& h) { ++h.cluster; }},
    {"unused", [](auto& h) { h.unused = 1; }},
    {"payload_bytes, more than a slot", [](auto& h) { h.payload_bytes = 1u << 30; }},
    {"payload_crc", [](auto& h) { h.payload_crc ^= 1; }},
    {"seat", [](auto& h) { ++h.seat; }, channel_state::stale},
    {"incarnation, a retired one", [](auto& h) { --h.incarnation; }, channel_state::stale},
};

/// Those that say which work a frame is of: one of another epoch or another step is never taken for
/// what is expected.
const std::vector<wrong_field> other_work = {
    {"epoch before", [](auto& h) { h.epoch = 0; }},
    {"epoch after", [](auto& h) { h.epoch = 2; }},
    {"iteration before", [](auto& h) { h.iteration = 0; }},
    {"iteration after", [](auto& h) { h.iteration = 2; }},
    {"attempt", [](auto& h) { h.attempt = 1; }},
    {"layer", [](auto& h) { h.layer = 1; }},
    {"table_version", [](auto& h) { h.table_version = 1; }},
    {"kind, of another sort", [](auto& h) { h.kind = 1; }},
};

const gpu::ring_identity near_self{3, 9}, far_self{0x4001, 2};
const net::link_terms near_terms{4, 4096, 0, near_self, far_self},
    far_terms{4, 4096, 0, far_self, near_self};

/// A TCP link whose first frame is changed on its way.
struct spoiled_link {
  explicit spoiled_link(const wrong_field& field)
      : far{"tcp", folder, "far"}, near{"tcp", folder, "near"},
        wire{port(), [this, field](uint64_t offset, std::span<unsigned char> bytes) {
               constexpr uint64_t before = sizeof(net::hello) + sizeof(net::answer);
               if (offset <= before && offset + bytes.size() >= before + sizeof(frame_header)) {
                 frame_header h;
                 std::memcpy(&h, bytes.data() + (before - offset), sizeof h);
                 field.spoil(h);
                 gpu::seal(h);
                 std::memcpy(bytes.data() + (before - offset), &h, sizeof h);
                 spoiled = true;
               }
               return bytes.size();
             }} {
    const net::link_key key{1, 0, 0, 0};
    b = far.plane->accept(key, far_terms, timeout);
    auto address = net::parse_peer_address(far.plane->address()).value();
    address.tcp = "127.0.0.1:" + std::to_string(wire.port());
    a = near.plane->connect(net::to_string(address), key, near_terms, timeout);
    REQUIRE(send(*a.to, 1, 1000));
  }
  uint16_t port() const {
    return net::parse_host_and_port(net::parse_peer_address(far.plane->address())->tcp)->port;
  }
  scratch_folder folder;
  test_plane far, near;
  std::atomic<bool> spoiled = false;
  tampering_proxy wire;
  net::link_end a, b;
};

/// A ring whose first frame is changed where it lies.
struct spoiled_ring {
  explicit spoiled_ring(const wrong_field& field) {
    gpu::make_ring(base(), terms());
    fill(to.reserve(1000), 1000, 1);
    to.commit(tag_of(1));
    auto& h = *reinterpret_cast<frame_header*>(base() + gpu::slot_offset(4096, 0));
    field.spoil(h);
    gpu::seal(h);
  }
  static gpu::ring_terms terms() {
    gpu::ring_terms x;
    x.slot_bytes = 4096;
    x.epoch = 1;
    x.crc_every = 1;
    x.peer = near_self;
    return x;
  }
  std::byte* base() { return reinterpret_cast<std::byte*>(memory.data()); }
  gpu::ring_place place() { return {base(), nullptr, nullptr, nullptr, terms()}; }
  std::vector<frame_header> memory{terms().bytes() / sizeof(frame_header)}; // whole lines
  gpu::ring_sender to{place(), near_self};
  gpu::ring_receiver from{place()};
};

} // namespace

TEST_CASE("a frame with any field of its header wrong in turn is refused: TCP") {
  for (const auto& field : refused) {
    CAPTURE(field.name);
    spoiled_link x{field};
    CHECK(holds_soon([&] {
      CHECK(x.b.from->peek(0) == nullptr);
      return x.b.from->state() == field.why;
    }));
    CHECK(x.spoiled);
    CHECK(holds_soon([&] { return x.a.to->state() != channel_state::open; }));
  }
}

TEST_CASE("a frame with any field of its header wrong in turn is refused: memory of a ring") {
  for (const auto& field : refused) {
    CAPTURE(field.name);
    spoiled_ring x{field};
    CHECK(x.to.state() == channel_state::open);
    CHECK(x.from.peek(0) == nullptr);
    CHECK(x.from.state() == field.why);
  }
}

TEST_CASE("a frame of other work is never taken for the expected one: memory of a ring") {
  for (const auto& field : other_work) {
    CAPTURE(field.name);
    spoiled_ring x{field};
    CHECK(x.from.receive(tag_of(1), 1000) == nullptr);
  }
}

TEST_CASE("links between two incarnations carry frames of these two alone, whatever the tier") {
  const net::link_key key{1, 0, 0, 0};
  for (const std::string transport : {"in_process", "shm", "tcp"}) {
    CAPTURE(transport);
    scratch_folder folder;
    test_plane far{transport, folder, "far"}, other{transport, folder, "near"};
    auto& near = transport == "in_process" ? far : other;
    const auto answers = [&](const net::link_terms& of_near) {
      auto b = far.plane->accept(key, far_terms, timeout);
      auto a = near.plane->connect(far.plane->address(), key, of_near, timeout);
      REQUIRE(send(*a.to, 1, 17));
      const bool came =
          holds_soon(
              [&] { return b.from->peek(0) != nullptr || b.from->state() != channel_state::open; })
          && b.from->peek(0) != nullptr;
      if (!came) CHECK(b.from->state() == channel_state::stale);
      return came;
    };
    CHECK(answers(near_terms));
    auto retired = near_terms;
    --retired.self.incarnation;
    CHECK_FALSE(answers(retired));
    auto another = near_terms;
    ++another.self.seat;
    CHECK_FALSE(answers(another));
  }
}

TEST_CASE("a frame of other work is never taken for the expected one: TCP") {
  for (const auto& field : other_work) {
    CAPTURE(field.name);
    spoiled_link x{field};
    REQUIRE(holds_soon([&] { return x.b.from->peek(0) != nullptr; }));
    CHECK(x.spoiled);
    CHECK(x.b.from->peek(0)->tag != tag_of(1));
  }
}
