// The in-process channel and how receivers read it. What is true here is true of every transport.
#include "gpu/host/host_engine.hpp"
#include "net/link/fabric.hpp"
#include "net/link/in_process_channel.hpp"
#include "net/link/pending_link.hpp"

#include <doctest/doctest.h>

#include <cstring>
#include <stdexcept>
#include <thread>

using namespace lamella;
using gpu::frame_kind, gpu::frame_tag;

namespace {

frame_tag tag(uint64_t iteration, uint32_t layer = 0, frame_kind kind = frame_kind::q,
              uint32_t attempt = 0, uint64_t epoch = 0) {
  return {epoch, iteration, attempt, layer, kind};
}

/// Sends `bytes` bytes of value `iteration`; false when there is no credit.
bool send(gpu::channel_sender& to, const frame_tag& t, size_t bytes = 7) {
  auto* p = to.reserve(bytes);
  if (p == nullptr) return false;
  std::memset(p, static_cast<int>(t.iteration & 0xff), bytes);
  to.commit(t);
  return true;
}

const gpu::frame* receive(gpu::channel_receiver& from, const frame_tag& t, size_t ahead = 0,
                          size_t bytes = 7) {
  return from.receive(t, bytes, ahead);
}

} // namespace

TEST_CASE("frames arrive in order, whole, and only once they are committed") {
  auto c = net::make_in_process_channel(4, 54);
  CHECK(c.from->peek(0) == nullptr);
  auto* p = c.to->reserve(17);
  CHECK(c.to->reserve(17) == p); // asking again gives the same place
  CHECK(reinterpret_cast<uintptr_t>(p) % 64 == 0);
  CHECK(c.from->peek(0) == nullptr);
  c.to->commit(tag(1));
  REQUIRE(c.from->peek(0) != nullptr);
  CHECK(c.from->peek(0)->payload.size() == 17);
  CHECK(c.from->peek(0)->payload.data() == p); // nothing is copied
  CHECK(c.from->peek(1) == nullptr);
  c.from->release();
  CHECK(c.from->peek(0) == nullptr);
}

TEST_CASE("the ring wraps for ever, with one to seventeen slots and frames of any size") {
  for (size_t slots : {1u, 2u, 7u, 17u}) {
    auto c = net::make_in_process_channel(slots, 54);
    uint64_t sent = 0, taken = 0;
    for (int round = 0; round < 100; ++round) {
      CAPTURE(round);
      while (send(*c.to, tag(sent), sent % 55)) ++sent;
      CHECK(sent - taken == slots); // full: exactly as many as there are slots
      for (size_t i = 0; i < slots; ++i) CHECK(c.from->peek(i)->tag == tag(taken + i));
      CHECK(c.from->peek(slots) == nullptr);
      const auto count = round % static_cast<int>(slots) + 1;
      for (int i = 0; i < count; ++i) {
        const auto* f = c.from->peek(0);
        CHECK(f->payload.size() == taken % 55);
        for (auto b : f->payload) CHECK(b == static_cast<std::byte>(taken & 0xff));
        c.from->release();
        ++taken;
      }
    }
  }
}

TEST_CASE("without credit nothing is sent, and one release gives one credit") {
  auto c = net::make_in_process_channel(2, 54);
  CHECK(send(*c.to, tag(1)));
  CHECK(send(*c.to, tag(2)));
  CHECK_FALSE(send(*c.to, tag(3)));
  CHECK(c.from->peek(0)->tag == tag(1)); // and nothing was overwritten
  CHECK(c.from->peek(1)->tag == tag(2));
  c.from->release();
  CHECK(send(*c.to, tag(3)));
  CHECK_FALSE(send(*c.to, tag(4)));
}

TEST_CASE("a frame larger than a slot is refused with both sizes") {
  auto c = net::make_in_process_channel(2, 54);
  CHECK(c.to->slot_bytes() == 64); // whole cache lines
  CHECK(c.to->reserve(64) != nullptr);
  CHECK_THROWS_WITH_AS(c.to->reserve(65), "frame of 65 bytes in slots of 64", std::length_error);
}

TEST_CASE("frames of aborted work are dropped until the expected one comes") {
  auto c = net::make_in_process_channel(8, 54);
  send(*c.to, tag(7, 0));
  send(*c.to, tag(7, 0, frame_kind::kv));
  send(*c.to, tag(7, 1));
  send(*c.to, tag(7, 0, frame_kind::q, 1)); // second attempt
  const auto* found = receive(*c.from, tag(7, 0, frame_kind::q, 1));
  REQUIRE(found != nullptr);
  CHECK(found->tag.attempt == 1);
  CHECK(receive(*c.from, tag(7, 0, frame_kind::q, 1)) == found); // reading does not take
  c.from->release();
  CHECK(c.from->peek(0) == nullptr);
}

TEST_CASE("frames of an older epoch are dropped, whatever their iteration") {
  auto c = net::make_in_process_channel(8, 54);
  send(*c.to, tag(5400, 29, frame_kind::kv, 7, 1));
  send(*c.to, tag(1, 0, frame_kind::q, 0, 2));
  CHECK(receive(*c.from, tag(1, 0, frame_kind::q, 0, 2)) != nullptr);
}

TEST_CASE("reliability A3: what a link drops is counted, by reason; what it takes is not") {
  auto c = net::make_in_process_channel(8, 54);
  const auto link =
      std::make_shared<net::pending_link>(net::link_key{}, 64, nullptr, [](gpu::channel_state) {});
  const auto end = link->ends();
  REQUIRE(link->bind({c.to, c.from}));
  const auto counts = [&](uint64_t epoch, uint64_t attempt, uint64_t duplicate) {
    return end.dropped->epoch == epoch && end.dropped->attempt == attempt
           && end.dropped->duplicate == duplicate;
  };
  send(*c.to, tag(7, 0, frame_kind::q, 0, 1)); // of the epoch before
  send(*c.to, tag(6, 0, frame_kind::q, 0, 2)); // of the iteration before
  send(*c.to, tag(7, 0, frame_kind::q, 0, 2)); // of an attempt that was given up
  send(*c.to, tag(7, 2, frame_kind::q, 1, 2)); // a layer that is there already
  send(*c.to, tag(7, 3, frame_kind::q, 1, 2));
  REQUIRE(receive(*end.from, tag(7, 3, frame_kind::q, 1, 2)) != nullptr);
  CHECK(counts(1, 2, 1));
  end.from->release();
  CHECK(counts(1, 2, 1));
}

TEST_CASE("a frame of newer work waits for the receiver to be told of it") {
  // The sender has been restarted, the receiver not yet: its work is about to be aborted.
  auto c = net::make_in_process_channel(8, 54);
  send(*c.to, tag(7, 0, frame_kind::q, 1));
  CHECK(receive(*c.from, tag(7, 3, frame_kind::q, 0)) == nullptr);
  CHECK(receive(*c.from, tag(7, 0, frame_kind::q, 1)) != nullptr);
}

TEST_CASE("a frame that is not as long as its work says is refused") {
  auto c = net::make_in_process_channel(8, 54);
  send(*c.to, tag(7), 17);
  CHECK_THROWS_WITH_AS(receive(*c.from, tag(7)), "frame of 17 bytes, expected 7",
                       std::runtime_error);
}

TEST_CASE("looking ahead drops nothing") {
  auto c = net::make_in_process_channel(8, 54);
  send(*c.to, tag(7));
  CHECK(receive(*c.from, tag(7, 0, frame_kind::kv), 1) == nullptr); // not there yet
  send(*c.to, tag(6, 0, frame_kind::kv));
  CHECK(receive(*c.from, tag(7, 0, frame_kind::kv), 1) == nullptr); // there, and wrong
  CHECK(c.from->peek(1) != nullptr);
  CHECK(receive(*c.from, tag(7)) != nullptr);
}

TEST_CASE("two threads see each other's frames whole") {
  constexpr uint64_t count = 20'000;
  auto c = net::make_in_process_channel(7, 54 * 8);
  std::thread sender{[&] {
    for (uint64_t n = 1; n <= count;) {
      auto* p = c.to->reserve(n % 54 * 8);
      if (p == nullptr) {
        std::this_thread::yield();
        continue;
      }
      for (uint64_t i = 0; i < n % 54; ++i) std::memcpy(p + 8 * i, &n, 8);
      c.to->commit(tag(n));
      ++n;
    }
  }};
  uint64_t wrong = 0;
  for (uint64_t n = 1; n <= count;) {
    const auto* f = receive(*c.from, tag(n), 0, n % 54 * 8);
    if (f == nullptr) {
      std::this_thread::yield();
      continue;
    }
    wrong += f->payload.size() == n % 54 * 8 ? 0 : 1;
    for (size_t at = 0; at < f->payload.size(); at += 8)
      wrong += std::memcmp(f->payload.data() + at, &n, 8) == 0 ? 0 : 1;
    c.from->release();
    ++n;
  }
  sender.join();
  CHECK(wrong == 0);
}

namespace {

/// Links between devices of one engine.
struct host_links {
  gpu::host_engine engine{1, gpu::reference_operators()};
  std::unique_ptr<gpu::device> device = engine.make_device("any");
  net::fabric links{[](uint32_t stream) { return size_t{64} << stream; },
                    [this](uint32_t) -> gpu::device& { return *device; },
                    [this](uint32_t) -> gpu::device& { return *device; }};
};

} // namespace

TEST_CASE_FIXTURE(host_links,
                  "a link has two directions, and both ends are made by whoever asks first") {
  const net::link_key key{1, 2, 0, 0};
  auto shard = links.shard_end(key);
  auto replica = links.replica_end(key);
  CHECK(replica.to->slot_bytes() == 256);
  send(*replica.to, tag(1));
  CHECK(shard.from->peek(0)->tag == tag(1));
  send(*shard.to, tag(2));
  CHECK(replica.from->peek(0)->tag == tag(2));
}

TEST_CASE_FIXTURE(host_links,
                  "links of other epochs, streams, replicas and shards are other links") {
  send(*links.replica_end({1, 2, 3, 4}).to, tag(1));
  for (const net::link_key& other : {net::link_key{2, 2, 3, 4}, net::link_key{1, 3, 3, 4},
                                     net::link_key{1, 2, 4, 4}, net::link_key{1, 2, 3, 5}})
    CHECK(links.shard_end(other).from->peek(0) == nullptr);
  CHECK(links.shard_end({1, 2, 3, 4}).from->peek(0) != nullptr);
}

TEST_CASE("a link that is bound keeps its ends, whoever else proves to be its peer") {
  const auto link = std::make_shared<net::pending_link>(net::link_key{1, 0, 0, 0}, 54, nullptr,
                                                        [](gpu::channel_state) {});
  const auto end = link->ends();
  auto first = net::make_in_process_channel(4, 54), back = net::make_in_process_channel(4, 54);
  auto second = net::make_in_process_channel(4, 54), other = net::make_in_process_channel(4, 54);
  REQUIRE(link->bind({first.to, back.from}));
  CHECK_FALSE(link->bind({second.to, other.from}));
  CHECK(second.from->state() == gpu::channel_state::stale);
  REQUIRE(send(*end.to, tag(1)));
  CHECK(receive(*first.from, tag(1)) != nullptr);
}
