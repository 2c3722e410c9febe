// WORKERs of one process on one data plane.
#include "actors/worker/in_process_links.hpp"
#include "actors/worker/shared_port.hpp"
#include "gpu/host/host_engine.hpp"
#include "gpu/kernels/sets.hpp"
#include "gpu/ring/channel.hpp"

#include <doctest/doctest.h>

namespace lamella::actors::test {

namespace {

constexpr uint16_t model = 1, first = 2, second = 3;

struct three_workers {
  gpu::host_engine engine{1, gpu::reference_operators()};
  std::shared_ptr<in_process_links> links = std::make_shared<in_process_links>();
  std::vector<uint64_t> closed; ///< epochs of the plane
  std::shared_ptr<shared_port> shared = std::make_shared<shared_port>(plane());
  std::map<uint16_t, link_port> ports;

  three_workers() {
    for (const auto seat : {model, first, second}) {
      links->sits(seat, engine.make_device("seat"));
      ports[seat] = shared->of_worker();
    }
  }

  link_port plane() {
    auto port = links->port();
    port.close = [this, inner = port.close](uint64_t epoch) {
      closed.push_back(epoch);
      inner(epoch);
    };
    return port;
  }

  net::link_end open(uint16_t seat, uint16_t shard, uint64_t epoch) {
    link_order order;
    const bool attends = seat != model;
    order.side = attends ? link_side::shard : link_side::replica;
    order.key = {epoch, 3, 0, shard};
    order.frame_bytes = 256;
    order.self.seat = seat;
    order.other = gpu::ring_identity{attends ? model : shard, 1};
    return ports[seat].open(order);
  }
};

bool carries(const net::link_end& from, const net::link_end& to) {
  try {
    if (from.to->reserve(256) == nullptr) return false;
    from.to->commit({});
    return to.from->peek(0) != nullptr;
  } catch (const gpu::channel_ended&) {
    return false;
  }
}

} // namespace

TEST_CASE_FIXTURE(three_workers,
                  "L-M03 a worker that ends its epoch leaves the links of others alone") {
  const auto to_first = open(model, first, 7), to_second = open(model, second, 7);
  const auto at_first = open(first, first, 7), at_second = open(second, second, 7);
  ports[second].close(7);
  CHECK_FALSE(carries(to_second, at_second));
  CHECK(carries(to_first, at_first));
  CHECK(carries(at_first, to_first));
  CHECK(closed.empty());
  // It has left; who sits there next has a port of its own.
  CHECK_THROWS_AS(open(second, second, 7), gpu::channel_ended);
  ports[second] = shared->of_worker();
  CHECK_NOTHROW(open(second, second, 8));
  ports[model].close(7);
  CHECK_FALSE(carries(at_first, to_first));
  CHECK(closed.empty());
  ports[first].close(7);
  CHECK(closed == std::vector<uint64_t>{7}); // the last one
  ports[first].close(9);                     // nobody has links there
  CHECK(closed == std::vector<uint64_t>{7, 9});
}

TEST_CASE_FIXTURE(three_workers,
                  "L-M03 a worker that ends without closing its epochs ends its links") {
  const auto to_first = open(model, first, 7), at_first = open(first, first, 7);
  const auto to_second = open(model, second, 8), at_second = open(second, second, 8);
  ports.erase(first);
  CHECK_FALSE(carries(to_first, at_first));
  CHECK(carries(to_second, at_second));
  CHECK(closed.empty());
  ports.erase(model);
  CHECK_FALSE(carries(at_second, to_second));
  CHECK(closed == std::vector<uint64_t>{7});
}

} // namespace lamella::actors::test
