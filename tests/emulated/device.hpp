/// A CUDA device of one thread: runs a kernel's own source, compiled as C++, so that its indexing,
/// its copies in flight and its barriers are checked where there is no GPU.
///
/// Every thread of a block is a fiber; blocks run one after the other. Operations of a warp wait
/// until all 32 lanes are there, and follow the fragment layouts of the PTX manual. Shared memory
/// starts as NaN; where cp.async will write it is NaN until the thread has waited for the copy, so
/// a tile used too early, or asked for while it is still read, shows in the result. Sums of an mma
/// are rounded otherwise than on a device: bytes agree between kernels here, not with a device's.
#pragma once

#include "gpu/cuda/attention/attention.hpp"
#include "gpu/cuda/stream/launch_count.hpp"
#include "tests/gpu/fake_cuda/fake_cuda.hpp"

#include <boost/context/fiber.hpp>
#include <cuda_fp16.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <utility>
#include <vector>

#define LAMELLA_EMULATED_DEVICE
#undef __shared__
#define __shared__ static // blocks run one after the other
#undef __launch_bounds__
#define __launch_bounds__(...)
#undef __grid_constant__
#define __grid_constant__

using std::max;
using std::min;

struct emulated_index {
  unsigned x = 0, y = 0, z = 0;
};
inline emulated_index threadIdx, blockIdx, blockDim, gridDim;

namespace emulated {

constexpr unsigned lanes = 32;

struct copy {
  uint32_t to;
  const void* from; ///< null: zeros
};

struct barrier {
  unsigned arrived = 0;
  uint64_t rounds = 0;
};

/// A thread of the block. Its stack is used again by the blocks that follow.
struct fiber {
  static constexpr size_t stack_bytes = 64 << 10;
  std::unique_ptr<std::byte[]> stack{new std::byte[stack_bytes]}; // not written before use
  boost::context::fiber there;                                    ///< where it goes on
  boost::context::fiber scheduler;                                ///< while it runs
  std::vector<std::vector<copy>> groups;                          ///< the last is not committed yet
  const barrier* waits = nullptr; ///< until more rounds than `round` of it are over
  uint64_t round = 0;
  bool done = false;

  bool ready() const { return waits == nullptr || waits->rounds != round; }
  void wait_for(const barrier& at) {
    waits = &at;
    round = at.rounds;
    scheduler = std::move(scheduler).resume();
    waits = nullptr;
  }
};

/// For Boost.Context: the stack of a fiber, which keeps it.
struct kept_stack {
  fiber& of;
  boost::context::stack_context allocate() const {
    boost::context::stack_context x;
    x.size = fiber::stack_bytes;
    x.sp = of.stack.get() + fiber::stack_bytes;
    return x;
  }
  void deallocate(boost::context::stack_context&) const {}
};

/// What a warp's lanes tell each other in one operation.
struct warp {
  barrier all;
  uint64_t words[lanes][6];
};

/// The block that runs.
struct block {
  std::vector<std::unique_ptr<fiber>> threads; ///< the first `count` run
  unsigned count = 0;
  std::vector<warp> warps;
  barrier all;
  std::vector<std::byte> shared;
  std::function<void()> kernel;
  uint64_t events = 0; ///< barriers passed and threads ended
};
inline block current;

inline fiber& self() { return *current.threads[threadIdx.x]; }
inline unsigned lane() { return threadIdx.x % lanes; }
inline warp& own_warp() { return current.warps[threadIdx.x / lanes]; }

inline void wait(barrier& at, unsigned threads) {
  if (++at.arrived < threads) return self().wait_for(at);
  at.arrived = 0;
  ++at.rounds;
  ++current.events;
}
inline void wait_warp() { wait(own_warp().all, lanes); }

inline std::byte* shared_at(uint32_t address, uint32_t bytes) {
  if (address + bytes > current.shared.size()) throw std::out_of_range{"shared memory"};
  return current.shared.data() + address;
}

/// Thread `x` at the kernel's begin.
inline boost::context::fiber begin(fiber& x) {
  return {std::allocator_arg, kept_stack{x}, [&x](boost::context::fiber&& scheduler) {
            x.scheduler = std::move(scheduler);
            current.kernel();
            x.done = true;
            ++current.events;
            return std::move(x.scheduler);
          }};
}

/// Runs one block. Throws std::logic_error if its threads wait for each other forever, and what a
/// thread throws ends the program: kernels do not throw.
inline void run_block(unsigned threads, size_t shared, std::function<void()> kernel) {
  current.count = threads;
  current.warps.assign(threads / lanes, {});
  current.all = {};
  current.shared.assign(shared, std::byte{0xff});
  current.kernel = std::move(kernel);
  while (current.threads.size() < threads) current.threads.push_back(std::make_unique<fiber>());
  for (unsigned i = 0; i < threads; ++i) {
    auto& x = *current.threads[i];
    x.groups.assign(1, {});
    x.waits = nullptr;
    x.done = false;
    x.there = begin(x);
  }
  for (bool running = true; running;) {
    running = false;
    const auto before = current.events;
    for (unsigned i = 0; i < threads; ++i) {
      auto& x = *current.threads[i];
      if (x.done) continue;
      running = true;
      if (!x.ready()) continue;
      threadIdx.x = i;
      x.there = std::move(x.there).resume();
    }
    if (running && current.events == before) {
      // Kept as they are: to unwind them would throw across stacks that sanitizers do not know.
      static auto& stuck = *new std::vector<std::vector<std::unique_ptr<fiber>>>;
      stuck.push_back(std::exchange(current.threads, {}));
      throw std::logic_error{"threads of a block wait for each other forever"};
    }
  }
}

/// A whole grid, one block after the other: at once, or in the order of a stream (fake_cuda.hpp).
/// One grid runs at a time.
inline void run_grid(dim3 grid, unsigned threads, size_t shared, cudaStream_t stream,
                     std::function<void()> kernel) {
  const auto run = [=] {
    static std::mutex one_device;
    std::lock_guard lock{one_device};
    blockDim.x = threads;
    gridDim = {grid.x, grid.y, grid.z};
    for (blockIdx.z = 0; blockIdx.z < grid.z; ++blockIdx.z)
      for (blockIdx.y = 0; blockIdx.y < grid.y; ++blockIdx.y)
        for (blockIdx.x = 0; blockIdx.x < grid.x; ++blockIdx.x) run_block(threads, shared, kernel);
    blockIdx = {};
  };
  if (stream == nullptr)
    run();
  else
    lamella::test::fake_cuda::put(stream, run);
}

} // namespace emulated
