// Memory of CUDA devices and words that streams raise in it, over a runtime made of threads.
#include "gpu/cuda/driver/peers.hpp"
#include "gpu/cuda/driver/queue.hpp"
#include "tests/gpu/fake_cuda/fake_cuda.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <new>
#include <thread>

using namespace lamella;
using namespace lamella::gpu;
namespace fake = lamella::test::fake_cuda;

TEST_CASE("a word that moved is news once, and rings who sleeps on it") {
  fake::reset();
  cuda::queue q{0};
  uint64_t word = 0;
  struct counting final : listener {
    void ring() override { ++rung; }
    int rung = 0;
  };
  auto sleeper = std::make_shared<counting>();
  q.watch({&word, nullptr, sleeper});
  CHECK_FALSE(q.tell_sleepers());
  std::atomic_ref{word}.store(7);
  CHECK(q.tell_sleepers());
  CHECK_FALSE(q.tell_sleepers());
  CHECK(sleeper->rung == 1);
}

TEST_CASE("rings between devices lie with the receiver where both reach it, else with the host") {
  fake::reset();
  const auto near = cuda::peer_ring_memory(1, 2, 4096);
  CHECK(fake::device_of(near.get()) == 2);
  CHECK(fake::reach_is_open(1, 2));
  CHECK(fake::reach_is_open(2, 1));
  CHECK(std::all_of(near.get(), near.get() + 4096, [](std::byte x) { return x == std::byte{0}; }));
  CHECK_FALSE(cuda::join_peers(2, 1)); // open already
  CHECK_FALSE(cuda::join_peers(3, 3));
  CHECK(fake::device_of(cuda::peer_ring_memory(3, 3, 64).get()) == 3);
  fake::put_out_of_reach(5, 4); // one way is enough
  CHECK(fake::device_of(cuda::peer_ring_memory(4, 5, 64).get()) == -1);
  const auto why = cuda::join_peers(4, 5);
  REQUIRE(why);
  CHECK(*why == "cuda:5 cannot reach memory of cuda:4");
}

TEST_CASE("a device without room is no lost device") {
  fake::reset();
  fake::refuse_memory(1);
  CHECK_THROWS_AS(cuda::device_memory(64), std::bad_alloc);
  CHECK(cuda::device_memory(64) != nullptr);
}

TEST_CASE("memory is taken and given back while a kernel waits") {
  fake::reset();
  auto pinned = cuda::pinned_memory(1000);
  cuda::queue q{0};
  std::atomic<bool> go{false}, gone{false};
  fake::put(q.handle(), [&] {
    while (!go) std::this_thread::yield();
    gone = true;
  });
  auto memory = cuda::device_memory(64), more = cuda::device_memory(64, q.handle());
  memory.reset();
  more.reset();
  pinned.reset();
  pinned = cuda::pinned_memory(600);
  CHECK(fake::calls_that_waited() == 0);
  CHECK_FALSE(gone);
  go = true;
  while (!gone) std::this_thread::yield();
}

TEST_CASE("pinned memory is used again for up to its size, and at least half of it") {
  fake::reset();
  auto a = cuda::pinned_memory(77'000);
  auto* const first = a.get();
  const auto pinned = fake::pinned();
  a.reset();
  a = cuda::pinned_memory(77'001);      // longer
  auto b = cuda::pinned_memory(38'000); // shorter than half
  CHECK(fake::pinned() == pinned + 2);
  const auto c = cuda::pinned_memory(38'500);
  CHECK(c.get() == first);
  CHECK(fake::pinned() == pinned + 2);
}

TEST_CASE("memory goes back to the device it is of") {
  fake::reset();
  const auto before = fake::allocations();
  {
    cuda::check(cudaSetDevice(3), "device");
    cuda::queue q{3};
    const auto of_stream = cuda::device_memory(64, q.handle()), of_any = cuda::device_memory(64),
               lasting = cuda::lasting_memory(64);
    cuda::check(cudaSetDevice(0), "device");
  }
  CHECK(fake::allocations() == before);
  CHECK(fake::given_back_elsewhere() == 0);
}
