// Denormal numbers count alike in every thread that computes, whatever mode the thread had that
// started it.
#include "base/float_mode.hpp"
#include "base/library_file.hpp"
#include "tests/gpu/kernels/kernel_support.hpp"

#include <thread>

using namespace lamella;
using namespace lamella::gpu;
using namespace lamella::gpu::test;

#if defined(__x86_64__)

namespace {

/// This thread flushes denormal results to zero and takes denormal operands for it, as libraries
/// that are built with -ffast-math have it.
class flushing {
public:
  flushing() : before_{_mm_getcsr()} { _mm_setcsr(before_ | 0x8040); }
  ~flushing() { _mm_setcsr(before_); }

private:
  uint32_t before_;
};

/// Computed at run time.
float product(float a, float b) {
  volatile float x = a, y = b;
  return x * y;
}

constexpr uint32_t rows = 64, vocabulary = 40;
constexpr float denormal = 0x1p-140f;

/// Greedy draws, whose winner is ahead of the others by a denormal bias or penalty alone.
std::vector<sampled_token> draw(const operators& ops, unsigned threads) {
  const std::vector<float> logits(rows * vocabulary, 0.0f);
  std::vector<sample_record> records;
  std::vector<logit_edit> edits;
  for (uint32_t row = 0; row < rows; ++row) {
    const auto winner = row % (vocabulary - 1) + 1; // on a tie it is token 0
    records.push_back({row, 0, 0, 0, 0, 0, 1, 0, 0, 2 * row, 2});
    edits.push_back({winner, 1, 2 * denormal});
    edits.push_back({0, 1, denormal});
  }
  machine on{threads};
  std::vector<sampled_token> out(rows);
  ops.sample({logits.data(), rows, vocabulary, records, edits, {}, {}, nullptr, out}, on.context());
  return out;
}

} // namespace

TEST_CASE("plain floats keep denormals, and leave the thread as it was") {
  const flushing mode;
  CHECK(product(0x1p-100f, 0x1p-40f) == 0);
  {
    const plain_floats guard;
    CHECK(product(0x1p-100f, 0x1p-40f) != 0);
    float inherited = 0;
    std::thread{[&] { inherited = product(0x1p-100f, 0x1p-40f); }}.join();
    CHECK(inherited != 0);
  }
  CHECK(product(0x1p-100f, 0x1p-40f) == 0);
}

TEST_CASE("biases and penalties that are denormal decide alike in any batch, thread and mode") {
  for (const auto* ops : sets(true))
    for (unsigned threads : {1u, 3u}) {
      CAPTURE(ops->name);
      CAPTURE(threads);
      const flushing mode;
      const auto drawn = draw(*ops, threads);
      for (uint32_t row = 0; row < rows; ++row)
        CHECK(drawn[row].token == row % (vocabulary - 1) + 1);
    }
}

TEST_CASE("a library built with -ffast-math does not change how its loader computes") {
  const plain_floats guard;
  void* loaded = open_library(LAMELLA_FAST_MATH_LIBRARY);
  REQUIRE(loaded != nullptr);
  CHECK(product(0x1p-100f, 0x1p-40f) != 0);
  // It would have.
  dlclose(loaded);
  loaded = dlopen(LAMELLA_FAST_MATH_LIBRARY, RTLD_NOW | RTLD_LOCAL);
  REQUIRE(loaded != nullptr);
  CHECK(product(0x1p-100f, 0x1p-40f) == 0);
  dlclose(loaded);
}

#endif
