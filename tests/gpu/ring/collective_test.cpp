// Sums over the ranks of a group: order, abort, deadline (L-M03).
#include "gpu/host/host_engine.hpp"
#include "gpu/ring/rank_group.hpp"
#include "tests/gpu/ring/sum_runs.hpp"
#include "tests/random.hpp"

#include <doctest/doctest.h>

#include <cstring>
#include <thread>

using namespace lamella;
using namespace lamella::test;
using gpu::work_status;

namespace {

constexpr uint32_t width = sum_work::width;

/// A group of host devices.
struct group {
  explicit group(uint32_t ranks) {
    for (uint32_t r = 0; r < ranks; ++r)
      devices.push_back(engine.make_device("rank " + std::to_string(r)));
    ends = gpu::make_rank_groups(devices, 1, 64 * width * sizeof(float));
    for (auto& d : devices) streams.push_back(d->make_stream("batch"));
  }

  std::future<work_status> start(uint32_t rank, std::shared_ptr<gpu::work> x,
                                 std::chrono::milliseconds timeout = std::chrono::minutes{1}) {
    return run_on(*streams[rank], std::move(x), timeout);
  }

  std::shared_ptr<sum_work> work(uint32_t rank, std::vector<std::vector<float>> parts,
                                 uint32_t attempt = 0) const {
    gpu::frame_tag tag;
    tag.epoch = 1;
    tag.attempt = attempt;
    return std::make_shared<sum_work>(ends[rank], std::move(parts), tag);
  }

  gpu::host_engine engine{1, gpu::reference_operators()};
  std::vector<std::shared_ptr<gpu::device>> devices;
  std::vector<std::shared_ptr<const gpu::rank_group>> ends;
  std::vector<std::unique_ptr<gpu::stream>> streams; // before the engines end
};

/// Parts of very different sizes: their sum depends on the order.
std::vector<float> random_part(uint32_t rows, uint64_t seed) {
  tests::splitmix random{seed};
  std::vector<float> x(rows * width);
  for (auto& v : x) v = random.normal() * static_cast<float>(1 << random.below(24));
  return x;
}

} // namespace

TEST_CASE("L-M03 all ranks get the same bytes: the parts added in ascending order") {
  for (uint32_t ranks : {2u, 3u, 5u}) {
    CAPTURE(ranks);
    group g{ranks};
    // More sums than a ring has slots, of any number of rows.
    std::vector<std::vector<std::vector<float>>> of_rank(ranks);
    std::vector<std::vector<float>> expected;
    for (uint32_t rows : {1u, 7u, 64u, 0u, 2u, 33u, 1u, 17u}) {
      std::vector<std::vector<float>> parts;
      for (uint32_t r = 0; r < ranks; ++r) {
        parts.push_back(random_part(rows, 100 * rows + r));
        of_rank[r].push_back(parts.back());
      }
      expected.push_back(in_order(parts));
    }
    std::vector<std::shared_ptr<sum_work>> works;
    std::vector<std::future<work_status>> outcomes;
    for (uint32_t r = ranks; r-- > 0;) {
      works.push_back(g.work(r, of_rank[r]));
      outcomes.push_back(g.start(r, works.back()));
    }
    for (auto& x : outcomes) REQUIRE(x.get() == work_status::done);
    for (const auto& x : works) CHECK(x->sums() == expected);
    for (const auto& end : g.ends)
      CHECK(end->sums->bytes_sent() == (ranks - 1) * (1 + 7 + 64 + 2 + 33 + 1 + 17) * width * 4);
  }
}

TEST_CASE("L-M03 a row's sum is the same among any others") {
  group g{3};
  std::vector<std::vector<float>> whole;
  for (uint32_t r = 0; r < 3; ++r) whole.push_back(random_part(9, r));
  const auto expected = in_order(whole);
  for (uint32_t rows : {1u, 2u, 9u}) {
    std::vector<std::shared_ptr<sum_work>> works;
    std::vector<std::future<work_status>> outcomes;
    for (uint32_t r = 0; r < 3; ++r) {
      std::vector<float> last(whole[r].end() - rows * width, whole[r].end());
      works.push_back(g.work(r, {last}, rows));
      outcomes.push_back(g.start(r, works.back()));
    }
    for (auto& x : outcomes) REQUIRE(x.get() == work_status::done);
    CHECK(std::memcmp(works[0]->sums()[0].data(), expected.data() + expected.size() - rows * width,
                      rows * width * 4)
          == 0);
  }
}

TEST_CASE(
    "a rank that waits for others ends at its deadline, when aborted or when the group ends") {
  group g{2};
  const auto late = g.work(0, {random_part(3, 1)});
  CHECK(g.start(0, late, std::chrono::milliseconds{20}).get() == work_status::deadline);
  auto waits = g.start(0, g.work(0, {random_part(3, 1)}, 1));
  g.streams[0]->abort();
  CHECK(waits.get() == work_status::aborted);
  const auto looked = g.engine.steps();
  waits = g.start(0, g.work(0, {random_part(3, 1)}, 2));
  // It looks twice before it sleeps, and nothing but the end can wake it.
  while (g.engine.steps() < looked + 2) std::this_thread::yield();
  g.ends[1]->sums->end(gpu::channel_state::closed);
  CHECK(waits.get() == work_status::cut);
  CHECK(g.start(1, g.work(1, {random_part(3, 1)}, 2)).get() == work_status::cut);
}

TEST_CASE("parts of an aborted attempt do not get into the next one") {
  group g{2};
  auto waits = g.start(0, g.work(0, {random_part(5, 1), random_part(5, 2)}));
  g.streams[0]->abort();
  CHECK(waits.get() == work_status::aborted);
  const auto a = random_part(4, 3), b = random_part(4, 4);
  const auto first = g.work(0, {a}, 1), second = g.work(1, {b}, 1);
  auto one = g.start(0, first), other = g.start(1, second);
  CHECK(one.get() == work_status::done);
  CHECK(other.get() == work_status::done);
  CHECK(first->sums()[0] == in_order({a, b}));
  CHECK(second->sums()[0] == in_order({a, b}));
}
