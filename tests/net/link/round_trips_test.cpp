// Round trips of links that stand: measured beside the frames, by both sides.
#include "net/link/round_trips.hpp"

#include "gpu/host/host_engine.hpp"
#include "tests/net/data_plane/test_plane.hpp"
#include "tests/net/link/link_traffic.hpp"
#include "tests/net/rdma/soft_adapter.hpp"

using namespace lamella;
using namespace lamella::tests;
using net::round_trips;

namespace {

std::shared_ptr<const round_trips> trips_of(test_plane& x) {
  x.log->wait_for(net::link_event::kind::up);
  return x.log->first(net::link_event::kind::up).trips;
}

uint64_t measured(const round_trips& x) { return x.at(round_trips::clock::now()).measured; }

} // namespace

TEST_CASE("the round trip of a link is the least of the last ten seconds") {
  round_trips x;
  const round_trips::clock::time_point begin{1h};
  CHECK(x.at(begin).least == 0ns);
  CHECK(x.at(begin).measured == 0);
  x.add(70us, begin);
  x.add(30us, begin + 1s);
  x.add(50us, begin + 2s);
  CHECK(x.at(begin + 2s).least == 30us);
  CHECK(x.at(begin + 2s).measured == 3);
  CHECK(x.at(begin + 11s).least == 30us);
  CHECK(x.at(begin + 12s).least == 50us);
  CHECK(x.at(begin + 13s).least == 0ns); // nothing has come back for long
  x.add(90us, begin + 20s);
  CHECK(x.at(begin + 20s).least == 90us);
  CHECK(x.at(begin + 20s).measured == 4);
  for (int i = 0; i < 1000; ++i) x.add(40us, begin + 20s);
  CHECK(x.at(begin + 20s).least == 40us);
  CHECK(x.at(begin + 20s).measured == 1004);
}

TEST_CASE(
    "links that stand are measured again and again, by both sides, and carry frames meanwhile") {
  for (const std::string transport : {"shm", "tcp", "verbs_staged"})
    for (const bool engines : {false, true}) {
      CAPTURE(transport);
      CAPTURE(engines);
      scratch_folder folder;
      gpu::host_engine engine{1, gpu::reference_operators()};
      const auto adapter = std::make_shared<soft_adapter>();
      const auto change = [&](net::data_plane_options& o) {
        o.measure_every = 1ms;
        o.adapter = adapter;
        if (engines) o.bell = engine.bell();
      };
      test_plane far{transport, folder, "far", change}, near{transport, folder, "near", change};
      const net::link_key key{1, 0, 0, 0};
      const net::link_terms terms{4, 4096, 0, {}};
      const auto b = far.plane->accept(key, terms, timeout);
      const auto a = near.plane->connect(far.plane->address(), key, terms, timeout);
      const auto ours = trips_of(near), theirs = trips_of(far);
      const auto first = std::min(measured(*ours), measured(*theirs));
      CHECK(first >= 1); // the handshake's
      uint64_t n = 0;
      CHECK(holds_soon([&] {
        REQUIRE(send(*a.to, n, 1000));
        REQUIRE(take(*b.from, n++, 1000));
        return measured(*ours) >= first + 20 && measured(*theirs) >= first + 20;
      }));
      for (const auto& x : {ours, theirs})
        CHECK(x->at(round_trips::clock::now()).least.count() > 0);
      CHECK(a.to->state() == gpu::channel_state::open);
    }
}
