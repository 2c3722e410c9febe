// Memory of CUDA devices and words that streams raise in it, over a runtime made of threads.
#include "gpu/cuda/driver/peers.hpp"
#include "gpu/cuda/driver/queue.hpp"
#include "tests/gpu/fake_cuda/fake_cuda.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <new>

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

TEST_CASE("memory that is still on its way back is waited for where there is no other") {
  cuda::wait_until_given_back();
  fake::reset();
  const auto before = fake::allocations();
  auto old = cuda::device_memory(64);
  old.reset();
  fake::refuse_memory(1);
  const auto next = cuda::device_memory(64);
  CHECK(next != nullptr);
  CHECK(fake::allocations() == before + 1); // the old is gone
  fake::refuse_memory(2);
  CHECK_THROWS_AS(cuda::device_memory(64), std::bad_alloc);
}

TEST_CASE("memory goes back to the device it is of") {
  cuda::wait_until_given_back(); // what tests before this one have given up
  fake::reset();
  const auto before = fake::allocations();
  {
    cuda::check(cudaSetDevice(3), "device");
    cuda::queue q{3};
    const auto of_pool = cuda::pool_memory(64, q.handle()), plain = cuda::device_memory(64);
    cuda::check(cudaSetDevice(0), "device");
  }
  cuda::wait_until_given_back();
  CHECK(fake::allocations() == before);
  CHECK(fake::given_back_elsewhere() == 0);
}
