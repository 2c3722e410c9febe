// The ring itself: entries longer than a block, the end of the ring, completions, the proxy.
#include "tests/net/rdma/mlx5/support.hpp"

#include "net/rdma/mlx5/doorbell_proxy.hpp"

#include <doctest/doctest.h>

#include <initializer_list>

using namespace lamella::net::mlx5;

namespace {

/// A write of `bytes` inline bytes, as segments that may fill several blocks.
std::vector<wqe_block> inline_write(const send_queue& q, uint32_t bytes, uint32_t flags) {
  const uint32_t segments = 2 + (4 + bytes + segment_bytes - 1) / segment_bytes;
  std::vector<wqe_block> blocks((segments + 3) / 4);
  std::vector<unsigned char> raw(blocks.size() * block_bytes);
  const auto control = control_segment(op_rdma_write, q.produced, q.number, segments, flags);
  const auto remote = address_segment(q.remote);
  const auto header = be32(bytes | inline_bit);
  std::memcpy(raw.data(), &control, sizeof control);
  std::memcpy(raw.data() + 16, &remote, sizeof remote);
  std::memcpy(raw.data() + 32, &header, sizeof header);
  for (uint32_t i = 0; i < bytes; ++i) raw[36 + i] = static_cast<unsigned char>(q.produced + i);
  std::memcpy(blocks.data(), raw.data(), raw.size());
  return blocks;
}

void ring(send_queue& q, uint64_t first) {
  auto stores = patient();
  stores.store_record(q.record, record_value(q.produced));
  stores.store_doorbell(next_register(q), plain_doorbell(first, q.number));
}

} // namespace

TEST_CASE("mlx5: an entry of several blocks is read whole, over the end of the ring too") {
  test_pair p{{}, 32, 4096};
  auto& q = p.a->queue;
  auto stores = patient();
  bool over_the_end = false;
  for (int round = 0; round < 400; ++round) {
    const auto bytes = static_cast<uint32_t>(round * 37 % 950 + 1);
    const auto first = q.produced;
    for (const auto& block : inline_write(q, bytes, flag_completion)) put(q, block, stores);
    over_the_end |= (first & q.mask) > ((q.produced - 1) & q.mask);
    ring(q, first);
    p.drain();
    for (uint32_t i = 0; i < bytes; ++i)
      REQUIRE(p.b->bytes()[i] == static_cast<unsigned char>(first + i));
    CHECK(completion_index_of(*q.completion) == static_cast<uint16_t>(first));
  }
  CHECK(over_the_end);
  CHECK_FALSE(p.hca.report(p.a->place).error);
}

TEST_CASE("mlx5: completions are asked for twice per ring and no more") {
  for (const uint32_t blocks : {2u, 8u, 32u, 256u}) {
    CAPTURE(blocks);
    test_pair p{{}, blocks, 4096};
    auto stores = patient();
    auto& q = p.a->queue;
    uint64_t asked = 0, last = 0;
    for (uint64_t i = 1; i <= 1000; ++i) {
      REQUIRE(post_message(q, 0, 0, 8, i, doorbell::store, stores) == post_status::ok);
      if (q.signalled != last) {
        CHECK(q.signalled == q.produced);
        CHECK(q.produced - last <= std::max(2u, blocks / 2));
        last = q.signalled;
        ++asked;
      }
      p.drain();
    }
    CHECK(asked == 2000 / std::max(2u, blocks / 2));
  }
}

TEST_CASE("mlx5: a stale or repeated completion never moves the ring backwards or too far") {
  send_queue q{};
  q.mask = 31;
  q.produced = 0x1fff0;
  q.completed = 0x1ffe8;
  const auto word = [](uint16_t index) { return be32(uint32_t{index} << 16); };
  note_completion(q, word(0xffe7)); // the one before: said already
  CHECK(q.completed == 0x1ffe8);
  note_completion(q, word(0xffeb));
  CHECK(q.completed == 0x1ffec);
  note_completion(q, word(0xffeb));
  CHECK(q.completed == 0x1ffec);
  note_completion(q, word(0xfff5)); // never posted
  CHECK(q.completed == 0x1ffec);
  q.produced = 0x20004;
  note_completion(q, word(0x0003)); // behind the wrap of the 16 bits
  CHECK(q.completed == 0x20004);
}

TEST_CASE("mlx5: the proxy rings once for all that was published, and only then") {
  test_pair p;
  doorbell_proxy proxy;
  auto& q = p.a->queue;
  proxy.attach(q);
  CHECK_FALSE(proxy.pass());
  auto stores = patient();
  uint64_t sent = 0;
  for (int round = 0; round < 200; ++round) {
    for (int i = 0; i < round % 5; ++i)
      REQUIRE(post_message(q, 0, 0, 64, ++sent, doorbell::proxy, stores) == post_status::ok);
    p.drain();
    const auto before = p.hca.report(p.a->place);
    CHECK(proxy.pass() == (round % 5 > 0));
    CHECK_FALSE(proxy.pass());
    p.drain();
    const auto after = p.hca.report(p.a->place);
    CHECK(after.doorbells == before.doorbells + (round % 5 > 0));
    CHECK(p.b->seqno == sent);
    CHECK_FALSE(after.error);
  }
  CHECK(q.produced == 2 * sent);
}
