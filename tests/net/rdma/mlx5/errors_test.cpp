// What a wrong work request, key, doorbell or peer does: an error with the syndrome that the
// hardware gives, memory untouched, the queue stopped, the poster told.
#include "tests/net/rdma/mlx5/support.hpp"

#include <doctest/doctest.h>

using namespace lamella::net::mlx5;

namespace {

post_status send(test_end& end, uint64_t seqno, uint64_t to = 1 << 15, uint32_t bytes = 64) {
  auto stores = patient();
  return post_message(end.queue, 0, to, bytes, seqno, doorbell::store, stores);
}

/// Puts one work request into the ring and rings, past all checks of the poster.
void post_raw(test_end& end, const wqe_block& block) {
  auto stores = patient();
  put(end.queue, block, stores);
  stores.store_record(end.queue.record, record_value(end.queue.produced));
  stores.store_doorbell(next_register(end.queue), doorbell_value(block.s[0]));
}

void check_error(test_pair& p, uint8_t syndrome) {
  p.drain();
  const auto report = p.hca.report(p.a->place);
  INFO(report.why);
  CHECK(report.error);
  CHECK(report.first_syndrome == syndrome);
  CHECK(p.a->completed_op() == completion_error);
  CHECK(p.a->syndrome() == syndrome);
  CHECK(p.b->seqno == 0);
  CHECK_FALSE(p.hca.report(p.b->place).error); // the other queue goes on
}

} // namespace

TEST_CASE("mlx5: a revoked key stops the queue, touches nothing, and the poster is told") {
  test_pair p{{}, 8};
  std::memset(p.a->bytes(), 7, 64);
  p.hca.revoke(p.b->arena_key);
  REQUIRE(send(*p.a, 1) == post_status::ok);
  p.drain();
  const auto report = p.hca.report(p.a->place);
  CHECK(report.first_syndrome == syndrome_remote_access);
  CHECK(report.flushed == 1); // the seqno behind it
  CHECK(p.a->syndrome() == syndrome_flushed);
  CHECK(p.b->bytes()[1 << 15] == 0);
  CHECK(p.b->seqno == 0);
  auto status = post_status::ok;
  for (int i = 0; i < 8 && status == post_status::ok; ++i) status = send(*p.a, 2);
  CHECK(status == post_status::queue_error);
}

TEST_CASE("mlx5: a peer without the right, or outside its region, is refused") {
  test_pair p;
  auto& q = p.a->queue;
  uint32_t number = q.number;
  const region good = q.remote, local = q.local;
  wqe_block block{};
  uint8_t syndrome = syndrome_remote_access;
  SUBCASE("beyond the end") {
    block = write_payload(0, number, {good.address + p.b->size() - 32, good.key_be}, local, 64, 0);
  }
  SUBCASE("before the start") {
    block = write_payload(0, number, {good.address - 8, good.key_be}, local, 64, 0);
  }
  SUBCASE("an address that wraps") {
    block = write_payload(0, number, {~uint64_t{15}, good.key_be}, local, 64, 0);
  }
  SUBCASE("a region registered for reading by its owner alone") {
    block = write_payload(0, number, {test_end::address(p.b->staged.data()), be32(p.b->staged_key)},
                          local, 8, 0);
  }
  SUBCASE("an atomic on a word that is not aligned") {
    block = fetch_add(0, number, {good.address + 4, good.key_be}, 1, local, 0);
  }
  SUBCASE("an atomic where writing alone is allowed") {
    static uint64_t word = 0;
    const auto key = p.hca.register_memory(&word, sizeof word, remote_rights::write);
    block = fetch_add(0, number, {test_end::address(&word), be32(key)}, 1, local, 0);
  }
  SUBCASE("local memory that is not registered") {
    syndrome = syndrome_local_protection;
    block = write_payload(0, number, good, {local.address, be32(0x77)}, 64, 0);
  }
  SUBCASE("a length of 0") {
    syndrome = syndrome_length;
    block = write_payload(0, number, good, local, 0, 0);
  }
  SUBCASE("inline data longer than its work request") {
    syndrome = syndrome_length;
    block = write_seqno(0, number, good, 1, 0);
    block.s[2].w[0] = be32(13 | inline_bit);
  }
  post_raw(*p.a, block);
  check_error(p, syndrome);
}

TEST_CASE("mlx5: a work request that is not what its place and doorbell say is refused") {
  test_pair p;
  auto& q = p.a->queue;
  auto block = write_payload(0, q.number, q.remote, q.local, 64, 0);
  uint8_t syndrome = syndrome_operation;
  SUBCASE("another index") { block = write_payload(1, q.number, q.remote, q.local, 64, 0); }
  SUBCASE("no segments") { block.s[0].w[1] = be32(q.number << 8); }
  SUBCASE("longer than what was posted") { block.s[0].w[1] = be32(q.number << 8 | 5); }
  SUBCASE("an operation that does not exist") { block.s[0].w[0] = be32(0x7f); }
  SUBCASE("an operation modifier") { block.s[0].w[0] = be32(1u << 24 | op_rdma_write); }
  SUBCASE("a send, for which the peer has no receive") {
    syndrome = syndrome_receiver_not_ready;
    block.s[0].w[0] = be32(op_send);
  }
  SUBCASE("another queue in the work request") {
    auto stores = patient();
    put(q, write_payload(0, 0x99, q.remote, q.local, 64, 0), stores);
    stores.store_record(q.record, record_value(q.produced));
    stores.store_doorbell(next_register(q), plain_doorbell(0, q.number));
    check_error(p, syndrome_operation);
    return;
  }
  SUBCASE("another queue in the doorbell") { block.s[0].w[1] = be32(0x99u << 8 | 3); }
  post_raw(*p.a, block);
  check_error(p, syndrome);
}

TEST_CASE("mlx5: bugs of a poster are caught: no record, a record that jumps") {
  test_pair p;
  auto& q = p.a->queue;
  auto stores = patient();
  const auto block = write_payload(0, q.number, q.remote, q.local, 64, 0);
  SUBCASE("doorbell without a record") {
    put(q, block, stores);
    stores.store_doorbell(next_register(q), doorbell_value(block.s[0]));
  }
  SUBCASE("record further than the ring is long") {
    put(q, block, stores);
    stores.store_record(q.record, record_value(q.mask + 2));
    stores.store_doorbell(next_register(q), doorbell_value(block.s[0]));
  }
  check_error(p, syndrome_operation);
}

TEST_CASE("mlx5: a connection that breaks ends with its syndrome, and the rest is flushed") {
  test_pair p{{.fail_after = 10, .fail_syndrome = syndrome_retry_exceeded}, 64};
  for (uint64_t i = 1; i <= 20; ++i) {
    REQUIRE(send(*p.a, i) == post_status::ok);
    p.drain();
  }
  const auto report = p.hca.report(p.a->place);
  CHECK(report.first_syndrome == syndrome_retry_exceeded);
  CHECK(report.executed == 10);
  CHECK(report.flushed == 29);
  CHECK(p.b->seqno == 5);
}

TEST_CASE("mlx5: a full ring ends in the deadline or the abort word") {
  test_pair p{{}, 8};
  auto& q = p.a->queue;
  host_stores past{host_stores::clock::now()};
  for (uint64_t i = 1; i <= 4; ++i)
    REQUIRE(post_message(q, 0, 0, 64, i, doorbell::store, past) == post_status::ok);
  CHECK(post_message(q, 0, 0, 64, 5, doorbell::store, past) == post_status::timeout);
  std::atomic<uint32_t> abort{1};
  host_stores told{host_stores::clock::time_point::max(), &abort};
  CHECK(post_message(q, 0, 0, 64, 5, doorbell::store, told) == post_status::aborted);
  CHECK(q.produced == 8);
  p.drain();
  auto stores = patient();
  CHECK(post_message(q, 0, 0, 64, 5, doorbell::store, stores) == post_status::ok);
}

TEST_CASE("mlx5: a message outside the arenas, or longer than a ring, is refused by the poster") {
  test_pair p;
  const auto size = static_cast<uint32_t>(p.a->size());
  CHECK(send(*p.a, 1, 0, size) == post_status::ok);
  CHECK(send(*p.a, 1, 8, size) == post_status::no_room);
  CHECK(send(*p.a, 1, ~uint64_t{0}, 8) == post_status::no_room);
  CHECK(send(*p.a, 1, 0, 0) == post_status::no_room);
  CHECK(send(*p.a, 1, 0, inline_bit) == post_status::no_room);
  auto stores = patient();
  CHECK(reserve(p.a->queue, 33, stores) == post_status::no_room);
  const region staged{test_end::address(p.a->staged.data()), be32(p.a->staged_key)};
  CHECK(post_pushed(p.a->queue, 0, 0, 12, staged, stores) == post_status::no_room);
  CHECK(post_pushed(p.a->queue, 0, 0, size, staged, stores) == post_status::no_room);
  CHECK(p.a->queue.produced == 2); // of the one that was right
}

TEST_CASE("mlx5: an atomic raises the peer's word and fetches what it was") {
  test_pair p;
  auto& q = p.a->queue;
  const region old{test_end::address(&p.a->old_value), be32(p.a->words_key)};
  for (uint64_t i = 0; i < 100; ++i) {
    post_raw(*p.a, fetch_add(q.produced, q.number, q.seqno, 5, old, flag_completion));
    p.drain();
    REQUIRE(p.a->old_value == 5 * i);
    note_completion(q, *q.completion);
    REQUIRE(q.completed == i + 1);
  }
  CHECK(p.b->seqno == 500);
}
