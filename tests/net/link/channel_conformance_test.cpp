// What every transport promises, once for all of them. Transports are made as the service makes
// them: by data planes that shake hands.
#include "tests/net/link/link_rig.hpp"

#if defined(LAMELLA_RDMA_TESTS)
#include "tests/rdma/verbs_tier.hpp"
#endif

using namespace lamella;
using namespace lamella::tests;
using gpu::channel_state;

#if defined(LAMELLA_RDMA_TESTS)
#define TIERS verbs_tier
#define TIERS_BETWEEN_PLANES verbs_tier
#else
#define TIERS                                                                                      \
  in_process_tier, shm_tier, tcp_tier, attended_tcp_tier, soft_verbs_tier, soft_mlx5_tier
#define TIERS_BETWEEN_PLANES shm_tier, tcp_tier, attended_tcp_tier, soft_verbs_tier, soft_mlx5_tier
#endif

TEST_CASE_TEMPLATE("frames arrive in order and whole, from 0 bytes to 4 MiB", tier, TIERS) {
  std::vector<size_t> sizes{0,    1,    7,    17,     54,      64,      65,
                            4095, 4096, 4097, 65'536, 262'144, 1 << 20, 4 << 20};
  std::erase_if(sizes, [](size_t bytes) { return bytes > tier::largest; });
  link_rig<tier> x{{4, tier::largest, 0, {}}};
  std::thread sender{[&] {
    for (uint64_t n = 0; n < sizes.size(); ++n) CHECK(send(*x.near.to, n, sizes[n]));
    for (uint64_t n = 0; n < sizes.size(); ++n) CHECK(take(*x.near.from, n, sizes[n]));
  }};
  for (uint64_t n = 0; n < sizes.size(); ++n) CHECK(take(*x.far.from, n, sizes[n]));
  for (uint64_t n = 0; n < sizes.size(); ++n) CHECK(send(*x.far.to, n, sizes[n]));
  sender.join();
}

TEST_CASE_TEMPLATE("seqno and ring wrap unnoticed, whatever the number of slots", tier, TIERS) {
  for (uint32_t slots : {1u, 2u, 7u, 17u}) {
    CAPTURE(slots);
    link_rig<tier> x{{slots, 1000, gpu::seqno_counter_mask - 17, {}}};
    uint64_t sent = 0, taken = 0;
    for (int round = 0; round < tier::rounds; ++round) {
      while (sent - taken < slots) {
        REQUIRE(send(*x.near.to, sent, sent % 1000));
        ++sent;
      }
      for (int i = 0; i < round % static_cast<int>(slots) + 1; ++i, ++taken)
        REQUIRE(take(*x.far.from, taken, taken % 1000));
    }
    CHECK(sent > 18);
  }
}

TEST_CASE_TEMPLATE("a sender has as much credit as there are slots, on the wire or not", tier,
                   TIERS) {
  link_rig<tier> x{{4, 64, 0, {}}};
  for (uint64_t n = 0; n < 4; ++n) REQUIRE(send(*x.near.to, n, 64));
  REQUIRE(holds_soon([&] { return x.far.from->peek(3) != nullptr; }));
  CHECK(x.near.to->reserve(64) == nullptr);
  CHECK(x.near.to->state() == channel_state::open);
  CHECK(x.far.from->peek(4) == nullptr);
  for (uint64_t n = 0; n < 4; ++n) CHECK(x.far.from->peek(n)->tag == tag_of(n));
  REQUIRE(take(*x.far.from, 0, 64));
  REQUIRE(take(*x.far.from, 1, 64));
  REQUIRE(send(*x.near.to, 4, 64));
  REQUIRE(send(*x.near.to, 5, 64));
  CHECK(x.near.to->reserve(64) == nullptr);
}

TEST_CASE_TEMPLATE("a frame larger than a slot is refused, met or not", tier, TIERS) {
  link_rig<tier> x{{4, 54, 0, {}}};
  CHECK(x.near.to->slot_bytes() == 64);
  CHECK_THROWS_AS(x.near.to->reserve(65), std::length_error);
  REQUIRE(send(*x.near.to, 1, 64));
  CHECK_THROWS_AS(x.near.to->reserve(65), std::length_error);
}

TEST_CASE_TEMPLATE("each side counts the payload it has sent, refused and waiting frames not", tier,
                   TIERS) {
  link_rig<tier> x{{2, 4096, 0, {}}};
  REQUIRE(x.near.sent != nullptr);
  CHECK(*x.near.sent == 0);
  REQUIRE(send(*x.near.to, 1, 4000));
  REQUIRE(send(*x.near.to, 2, 17));
  CHECK(*x.near.sent == 4017);
  CHECK(x.near.to->reserve(100) == nullptr);
  CHECK_THROWS_AS(x.near.to->reserve(4097), std::length_error);
  REQUIRE(take(*x.far.from, 1, 4000));
  REQUIRE(holds_soon([&] { return x.near.to->reserve(100) != nullptr; }));
  CHECK(*x.near.sent == 4017);
  CHECK(*x.far.sent == 0);
  REQUIRE(send(*x.far.to, 1, 64));
  CHECK(*x.far.sent == 64);
  x.near.to->end(channel_state::closed);
  CHECK(*x.near.sent == 4017);
}

TEST_CASE_TEMPLATE("both sides tell the round trip of their handshake", tier,
                   TIERS_BETWEEN_PLANES) {
  using kind = net::link_event::kind;
  const auto before = clock::now();
  link_rig<tier> x;
  x.mine.log->wait_for(kind::up);
  x.other->wait_for(kind::up, "");
  for (const auto round_trip : {x.mine.log->first(kind::up).round_trip, x.other->round_trip()}) {
    CHECK(round_trip.count() > 0);
    CHECK(round_trip < clock::now() - before);
  }
}

TEST_CASE_TEMPLATE("what was sent before the end can still be taken, then the end is told", tier,
                   TIERS) {
  link_rig<tier> x;
  REQUIRE(send(*x.near.to, 1, 4000));
  REQUIRE(send(*x.near.to, 2, 17));
  x.near.to->end(channel_state::closed);
  CHECK(take(*x.far.from, 1, 4000));
  CHECK(take(*x.far.from, 2, 17));
  CHECK(holds_soon([&] { return x.far.from->state() == channel_state::closed; }));
  CHECK(x.far.from->peek(0) == nullptr);
  CHECK_THROWS_AS(x.far.from->receive(tag_of(3), 17), gpu::channel_ended);
  CHECK(x.near.to->reserve(1) == nullptr);
  CHECK(holds_soon([&] { return x.far.to->state() != channel_state::open; }));
  CHECK_THROWS_AS(gpu::reserve(*x.far.to, 1), gpu::channel_ended);
}

TEST_CASE_TEMPLATE("a peer that goes ends the link, with frames under way or without", tier,
                   TIERS_BETWEEN_PLANES) {
  link_rig<tier> x;
  REQUIRE(send(*x.far.to, 1, 17));
  REQUIRE(take(*x.near.from, 1, 17));
  x.other->go();
  CHECK(holds_soon([&] { return x.near.from->state() == channel_state::closed; }));
  CHECK(x.near.to->reserve(1) == nullptr);
  x.mine.log->wait_for(net::link_event::kind::ended);
}

TEST_CASE_TEMPLATE("an epoch that ends revokes its links and those before, and no others", tier,
                   TIERS) {
  link_rig<tier> x;
  REQUIRE(send(*x.near.to, 1, 17));
  REQUIRE(holds_soon([&] { return x.far.from->peek(0) != nullptr; }));
  const auto old = x.near;
  const auto old_far = x.far;
  x.open({2, 0, 0, 0});
  REQUIRE(send(*x.near.to, 1, 17));
  x.mine.plane->end_epoch(1);
  CHECK(holds_soon([&] { return old.to->state() == channel_state::revoked; }));
  CHECK(old.from->state() == channel_state::revoked);
  CHECK(old.to->reserve(1) == nullptr);
  CHECK(holds_soon([&] { return old_far.from->state() != channel_state::open; }));
  CHECK(take(*x.far.from, 1, 17));
  CHECK_THROWS_AS(x.mine.plane->accept({1, 5, 0, 0}, x.terms, timeout), gpu::channel_ended);
  CHECK_THROWS_AS(x.mine.plane->connect(x.other->address(), {1, 5, 0, 0}, x.terms, timeout),
                  gpu::channel_ended);
}

TEST_CASE_TEMPLATE("a link of an epoch that is over on the other side is refused", tier,
                   TIERS_BETWEEN_PLANES) {
  link_rig<tier> x;
  x.other->end_epoch(5);
  auto late = x.mine.plane->connect(x.other->address(), {5, 0, 0, 0}, x.terms, timeout);
  CHECK(holds_soon([&] { return late.to->state() == channel_state::closed; }));
  x.mine.log->wait_for(net::link_event::kind::refused, "epoch 5, stream 0, replica 0, shard 0");
}

TEST_CASE_TEMPLATE("a link made again is another link: nothing of the old one comes", tier, TIERS) {
  link_rig<tier> x;
  for (int round = 0; round < 7; ++round) {
    CAPTURE(round);
    REQUIRE(send(*x.near.to, 1, 17));
    REQUIRE(send(*x.near.to, 2, 17));
    REQUIRE(take(*x.far.from, 1, 17));
    const auto old = x.near;
    if (round % 2 == 0) { // ended first, or replaced while it is up
      x.near.to->end(channel_state::aborted);
      REQUIRE(holds_soon([&] { return x.far.to->state() != channel_state::open; }));
    }
    x.open({1, 0, 0, 0});
    REQUIRE(send(*x.near.to, 3, 54));
    CHECK(take(*x.far.from, 3, 54));
    CHECK(holds_soon([&] { return old.to->state() != channel_state::open; }));
  }
}

TEST_CASE_TEMPLATE("many small messages, both ways at once", tier, TIERS) {
  link_rig<tier> x{{64, 256, 0, {}}};
  auto other = x.other->exchange(tier::messages);
  CHECK(exchange(x.near, tier::messages) == 0);
  CHECK(other.get() == 0);
}

namespace {

/// An engine at each end of a link: their streams sleep on the planes' bells.
template <class Tier> struct engines {
  gpu::host_engine engine{1, gpu::reference_operators()};
  std::unique_ptr<gpu::device> device = engine.make_device("near");
  std::unique_ptr<gpu::stream> here = device->make_stream("s");
  scratch_folder folder;
  std::unique_ptr<far_side> there = Tier::make_far(folder);
  test_plane plane{Tier::name, folder, "near", [&](auto& o) {
                     Tier::change(o);
                     o.bell = engine.bell();
                   }};
  net::link_terms terms{4, 64, 0, {}};
  net::link_end b = there->accept({1, 0, 0, 0}, terms);
  net::link_end a = plane.plane->connect(there->address(), {1, 0, 0, 0}, terms, timeout);
};

} // namespace

TEST_CASE_TEMPLATE("streams of two engines wait for each other, asleep or awake", tier,
                   TIERS_BETWEEN_PLANES) {
  engines<tier> x;
  auto first = launch(*x.here, std::make_shared<player>(x.a, tier::turns, true));
  auto second = x.there->play(tier::turns, false);
  CHECK(first.get() == gpu::work_status::done);
  CHECK(second.get() == gpu::work_status::done);
}

TEST_CASE_TEMPLATE("a stream that waits hears of the end at once, whoever ends the link", tier,
                   TIERS_BETWEEN_PLANES) {
  for (int who = 0; who < 3; ++who) {
    CAPTURE(who);
    engines<tier> x;
    auto asked = launch(*x.here, std::make_shared<player>(x.a, 1, true));
    auto answered = x.there->play(1, false);
    CHECK(asked.get() == gpu::work_status::done); // so that both are up
    CHECK(answered.get() == gpu::work_status::done);
    auto waiting = launch(*x.here, std::make_shared<player>(x.a, 1, false));
    if (who == 0) x.a.from->end(channel_state::aborted);
    if (who == 1) x.b.to->end(channel_state::aborted);
    if (who == 2) x.there->end_epoch(1);
    CHECK(waiting.get() == gpu::work_status::cut);
  }
}

TEST_CASE_TEMPLATE("a stream that waits for a silent peer ends at its deadline", tier,
                   TIERS_BETWEEN_PLANES) {
  engines<tier> x;
  auto waiting = launch(*x.here, std::make_shared<player>(x.a, 1, false), 54ms);
  CHECK(waiting.get() == gpu::work_status::deadline);
}
