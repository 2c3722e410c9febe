// Frames, rings and bells as memory. What channels promise is in
// tests/net/link/channel_conformance_test.
#include "base/crc32c.hpp"
#include "gpu/ring/doorbell.hpp"
#include "gpu/ring/ring_end.hpp"

#include <doctest/doctest.h>

#include <cstring>
#include <random>
#include <stdexcept>
#include <thread>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

using namespace lamella;
using namespace lamella::gpu;
using std::chrono::steady_clock;

namespace {

/// A ring in ordinary memory, and both ends of it.
struct ring_fixture {
  explicit ring_fixture(ring_terms t)
      : terms{t}, lines(t.bytes() / 64), base{reinterpret_cast<std::byte*>(lines.data())} {
    make_ring(base, terms);
    sender = std::make_unique<ring_sender>(ring_place{base, nullptr, nullptr, nullptr, terms});
    receiver = std::make_unique<ring_receiver>(ring_place{base, nullptr, nullptr, nullptr, terms});
  }
  void send(uint64_t iteration, size_t bytes = 7) {
    auto* p = sender->reserve(bytes);
    REQUIRE(p != nullptr);
    std::memset(p, static_cast<int>(iteration), bytes);
    sender->commit({terms.epoch, iteration, 0, 0, frame_kind::q, 0});
  }
  ring_control& control() { return *reinterpret_cast<ring_control*>(base); }
  frame_header& header(uint64_t slot) {
    return *reinterpret_cast<frame_header*>(base + slot_offset(terms.slot_bytes, slot));
  }

  struct alignas(64) line {
    std::byte bytes[64];
  };
  ring_terms terms;
  std::vector<line> lines;
  std::byte* base;
  std::unique_ptr<ring_sender> sender;
  std::unique_ptr<ring_receiver> receiver;
};

} // namespace

TEST_CASE("CRC32C gives the published values, by instruction, table and bit alike") {
  // RFC 3720, appendix B.4.
  const std::string digits = "123456789";
  CHECK(crc32c(digits.data(), digits.size()) == 0xe3069283);
  const std::vector<unsigned char> zeros(32, 0), ones(32, 0xff);
  CHECK(crc32c(zeros.data(), 32) == 0x8a9136aa);
  CHECK(crc32c(ones.data(), 32) == 0x62a8ab43);
  std::mt19937 random{7};
  std::vector<unsigned char> bytes(54'321);
  for (auto& b : bytes) b = static_cast<unsigned char>(random());
  for (size_t length : {0, 1, 7, 8, 17, 60, 64, 3071, 3072, 3073, 6144, 54'321}) {
    CAPTURE(length);
    const auto whole = crc32c(bytes.data(), length);
    CHECK(whole == crc32c_portable(bytes.data(), length));
    const auto cut = length / 3;
    CHECK(whole == crc32c(bytes.data() + cut, length - cut, crc32c(bytes.data(), cut)));
  }
}

TEST_CASE("seqnos count within an epoch, and wrap") {
  constexpr auto last = make_seqno(0x12345, seqno_counter_mask);
  static_assert(last == 0x2345'ffff'ffff'ffff);
  static_assert(after(last) == make_seqno(0x12345, 0));
  static_assert(frames_between(last, after(last, 17)) == 17);
  static_assert(frames_between(after(last), last) == seqno_counter_mask);
  static_assert(same_epoch(make_seqno(1, 5), make_seqno(65'537, 7)));
  static_assert(!same_epoch(make_seqno(1, 5), make_seqno(2, 5)));
  static_assert(ring_bytes(4, 64) == 256 + 4 * 128);
}

TEST_CASE("a ring is recognised by its terms") {
  ring_fixture x{{.slots = 7, .slot_bytes = 128, .epoch = 5}};
  CHECK(is_ring(x.base, x.terms));
  for (auto other : {ring_terms{.slots = 8, .slot_bytes = 128, .epoch = 5},
                     ring_terms{.slots = 7, .slot_bytes = 192, .epoch = 5},
                     ring_terms{.slots = 7, .slot_bytes = 128, .epoch = 6}})
    CHECK_FALSE(is_ring(x.base, other));
}

TEST_CASE("frames lie in memory as the header says") {
  ring_fixture x{{.slots = 2, .slot_bytes = 64, .epoch = 5, .cluster = 0xc1}};
  auto* p = x.sender->reserve(17);
  CHECK(p == x.base + 256 + 64);
  std::memset(p, 7, 17);
  x.sender->commit({5, 1'000'000'007, 3, 29, frame_kind::kv, 54});
  CHECK(x.control().sent.value == make_seqno(5, 1));
  const auto h = x.header(0);
  CHECK(h.magic == frame_magic);
  CHECK(h.kind == 1);
  CHECK(h.cluster == 0xc1);
  CHECK(h.epoch == 5);
  CHECK(h.iteration == 1'000'000'007);
  CHECK(h.table_version == 54);
  CHECK(h.attempt == 3);
  CHECK(h.layer == 29);
  CHECK(h.payload_bytes == 17);
  CHECK(h.header_crc == crc32c_portable(&h, 60));
}

TEST_CASE("any changed bit of a header ends the ring as torn") {
  for (size_t bit = 0; bit < 512; ++bit) {
    CAPTURE(bit);
    ring_fixture x{{.slots = 2}};
    x.send(1);
    reinterpret_cast<unsigned char*>(&x.header(0))[bit / 8] ^=
        static_cast<unsigned char>(1 << bit % 8);
    CHECK(x.receiver->peek(0) == nullptr);
    CHECK(x.receiver->state() == channel_state::torn);
    CHECK(x.sender->state() == channel_state::torn);
    CHECK(x.sender->reserve(1) == nullptr);
    CHECK_THROWS_AS(x.receiver->receive({}, 1), channel_ended);
    CHECK_THROWS_AS(reserve(*x.sender, 1), channel_ended);
  }
}

TEST_CASE("a header that is whole but wrong ends the ring as torn") {
  for (int field = 0; field < 8; ++field) {
    CAPTURE(field);
    ring_fixture x{{.slots = 2, .cluster = 7}};
    x.send(1);
    auto& h = x.header(0);
    if (field == 0) h.magic ^= 1;
    if (field == 1) h.version = 2;
    if (field == 2) h.kind = 54;
    if (field == 3) h.payload_bytes = 65;
    if (field == 4) h.cluster = 8;
    if (field == 5) h.flags = 2;
    if (field == 6) h.unused = 1;
    if (field == 7) h.payload_crc = 1; // without the flag that says it is one
    seal(h);
    CHECK(x.receiver->peek(0) == nullptr);
    CHECK(x.receiver->state() == channel_state::torn);
  }
}

TEST_CASE("a payload with a CRC is checked, and every n-th frame has one") {
  ring_fixture x{{.slots = 7, .slot_bytes = 128, .crc_every = 3}};
  for (uint64_t i = 0; i < 6; ++i) x.send(i, 100);
  for (uint64_t i = 0; i < 6; ++i) CHECK((x.header(i).flags == 1) == (i % 3 == 2));
  x.base[slot_offset(128, 5) + 64 + 99] ^= std::byte{1};
  for (uint64_t i = 0; i < 5; ++i) CHECK(x.receiver->peek(i) != nullptr);
  CHECK(x.receiver->peek(5) == nullptr);
  CHECK(x.receiver->state() == channel_state::torn);
}

TEST_CASE("words of the other side that cannot be right end the ring") {
  SUBCASE("a sender of another epoch") {
    ring_fixture x{{.slots = 2, .epoch = 5}};
    x.control().sent.value = make_seqno(6, 1);
    CHECK(x.receiver->peek(0) == nullptr);
    CHECK(x.receiver->state() == channel_state::stale);
  }
  SUBCASE("a sender that has sent more than there is room for") {
    ring_fixture x{{.slots = 2, .epoch = 5}};
    x.control().sent.value = make_seqno(5, 3);
    CHECK(x.receiver->peek(0) == nullptr);
    CHECK(x.receiver->state() == channel_state::torn);
  }
  SUBCASE("a receiver that gives back what it never got") {
    ring_fixture x{{.slots = 1, .epoch = 5}};
    x.send(1);
    x.control().released.value = make_seqno(5, 2);
    CHECK(x.sender->reserve(1) == nullptr);
    CHECK(x.sender->state() == channel_state::torn);
  }
  SUBCASE("a receiver of another epoch") {
    ring_fixture x{{.slots = 1, .epoch = 5}};
    x.send(1);
    x.control().released.value = make_seqno(4, 1);
    CHECK(x.sender->reserve(1) == nullptr);
    CHECK(x.sender->state() == channel_state::stale);
  }
}

TEST_CASE("the first reason to end stays, and a closed ring gives what it still holds") {
  ring_fixture x{{.slots = 4}};
  x.send(1);
  x.sender->end(channel_state::closed);
  x.receiver->end(channel_state::aborted);
  CHECK(x.receiver->state() == channel_state::closed);
  REQUIRE(x.receiver->peek(0) != nullptr);
  x.receiver->release();
  CHECK(x.receiver->peek(0) == nullptr);
  ring_fixture y{{.slots = 4}};
  y.send(1);
  y.sender->end(channel_state::revoked);
  CHECK(y.receiver->peek(0) == nullptr);
}

TEST_CASE("a bell wakes who sleeps on it, whoever rings, and never loses a ring") {
  auto bell = std::make_shared<doorbell>();
  const auto other = std::make_shared<doorbell>(bell->descriptors()); // as another process maps it
  constexpr int rounds = 20'000;
  std::atomic<int> sent{0}, taken{0};
  std::thread ringer{[&] {
    for (int i = 1; i <= rounds; ++i) {
      while (taken.load() != i - 1) std::this_thread::yield();
      sent.store(i);
      other->ring();
    }
  }};
  int late = 0;
  for (int i = 1; i <= rounds; ++i) {
    while (sent.load() != i) {
      const auto seen = bell->arm();
      if (sent.load() == i) {
        bell->disarm();
        break;
      }
      const auto until = steady_clock::now() + std::chrono::seconds{60};
      bell->wait(seen, until);
      if (steady_clock::now() >= until) ++late;
    }
    taken.store(i);
  }
  ringer.join();
  CHECK(late == 0);
}

TEST_CASE("a bell that nobody rings lets its sleeper go at the time given") {
  doorbell bell;
  const auto until = steady_clock::now() + std::chrono::milliseconds{17};
  while (steady_clock::now() < until) bell.wait(bell.arm(), until);
  CHECK(steady_clock::now() >= until);
}

TEST_CASE("a descriptor that is no bell is refused") {
  const int plain = memfd_create("plain", MFD_CLOEXEC);
  REQUIRE(ftruncate(plain, 4096) == 0);
  CHECK_THROWS_AS(doorbell(std::array{plain, plain}), std::runtime_error);
  close(plain);
  const int short_one = memfd_create("short", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  REQUIRE(fcntl(short_one, F_ADD_SEALS, F_SEAL_SHRINK) == 0);
  CHECK_THROWS_AS(doorbell(std::array{short_one, short_one}), std::runtime_error);
  close(short_one);
  CHECK_THROWS_AS(doorbell(std::array{-1, -1}), std::exception);
}
