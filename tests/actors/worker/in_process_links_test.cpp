// Links between seats of one process.
#include "actors/worker/in_process_links.hpp"
#include "gpu/host/host_engine.hpp"
#include "gpu/kernels/sets.hpp"

#include <doctest/doctest.h>

namespace lamella::actors::test {

namespace {

constexpr uint16_t model = 1, attention = 2;

struct seats_here {
  gpu::host_engine engine{1, gpu::reference_operators()};
  std::shared_ptr<in_process_links> links = std::make_shared<in_process_links>();
  link_port port = links->port();

  seats_here() {
    links->sits(model, engine.make_device("model"));
    links->sits(attention, engine.make_device("attention"));
  }

  net::link_end open(link_side side, uint64_t epoch) {
    link_order order;
    order.side = side;
    order.key = {epoch, 3, 0, 0};
    order.peer = port.address;
    order.frame_bytes = 256;
    const bool attends = side == link_side::shard;
    order.self.seat = attends ? attention : model;
    order.other = gpu::ring_identity{attends ? model : attention, 1};
    return port.open(order);
  }
};

void send(gpu::channel_sender& to, uint64_t iteration) {
  REQUIRE(to.reserve(256) != nullptr);
  gpu::frame_tag tag;
  tag.iteration = iteration;
  to.commit(tag);
}

} // namespace

TEST_CASE_FIXTURE(seats_here, "two seats of one process meet, whoever asks first") {
  for (const bool shard_first : {true, false}) {
    const uint64_t epoch = shard_first ? 1 : 2;
    auto first = open(shard_first ? link_side::shard : link_side::replica, epoch);
    auto second = open(shard_first ? link_side::replica : link_side::shard, epoch);
    send(*first.to, 7);
    CHECK(second.from->peek(0)->tag.iteration == 7);
    send(*second.to, 8);
    CHECK(first.from->peek(0)->tag.iteration == 8);
  }
}

TEST_CASE_FIXTURE(seats_here,
                  "A3 the end of an epoch ends its links on both sides, and no others") {
  const auto replica = open(link_side::replica, 1), shard = open(link_side::shard, 1);
  const auto next = open(link_side::replica, 2);
  port.close(1);
  for (const auto* end : {&replica, &shard}) {
    CHECK(end->to->state() == gpu::channel_state::revoked);
    CHECK(end->from->state() == gpu::channel_state::revoked);
  }
  CHECK(next.to->state() == gpu::channel_state::open);
  // Who is late meets nobody of an epoch that is over.
  CHECK_THROWS_AS(open(link_side::shard, 1), gpu::channel_ended);
}

TEST_CASE_FIXTURE(seats_here,
                  "A10 the end of epochs that never served leaves the one that serves") {
  const auto serving = open(link_side::replica, 1), shard = open(link_side::shard, 1);
  for (uint64_t epoch = 2; epoch < 70; ++epoch) {
    open(link_side::replica, epoch);
    port.close(epoch);
  }
  CHECK(serving.to->state() == gpu::channel_state::open);
  CHECK(shard.from->state() == gpu::channel_state::open);
  // A second end is asked for when it is needed first.
  CHECK_NOTHROW(open(link_side::shard, 1));
}

TEST_CASE_FIXTURE(seats_here, "a seat that is not of this process has no link") {
  link_order order;
  order.self.seat = model;
  order.other = gpu::ring_identity{9, 1};
  CHECK_THROWS(port.open(order));
}

} // namespace lamella::actors::test
