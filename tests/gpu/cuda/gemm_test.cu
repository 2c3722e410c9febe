// Products on the device: right against sums in double, and the same bytes for a row whoever else
// is in the call, whatever kernel was chosen.
#include "gpu/cuda/gemm/gemm.hpp"
#include "gpu/cuda/gemm/gemm_check.hpp"
#include "gpu/cuda/rows/rows.hpp"
#include "tests/gpu/cuda/kernel_device.hpp"

#include "gpu/kernels/half.hpp"

#include <cmath>

using namespace lamella::gpu;
using namespace lamella::gpu::cuda;
using cuda::test::check;
using cuda::test::device_array;

namespace {

float widened(dense_type type, uint16_t h) {
  return type == dense_type::f16 ? from_half(h) : from_bf16(h);
}

/// Weights, rows and outputs of one shape on the device.
struct problem {
  dense_type type;
  uint32_t outputs, inputs, rows;
  device_array<uint16_t> w, x;
  device_array<float> out;
  device_array<std::byte> scratch;

  problem(dense_type t, uint32_t n, uint32_t k, uint32_t m, uint64_t seed)
      : type{t}, outputs{n}, inputs{k}, rows{m}, w{size_t{n} * k}, x{size_t{m} * k},
        out{size_t{m} * n}, scratch{gemm::scratch_bytes(m, n, k)} {
    check(launch_fill_random(t, w.get(), w.size(), seed, nullptr));
    check(launch_fill_random(t, x.get(), x.size(), seed + 1, nullptr));
  }

  dense_matrix weight() { return {type, outputs, inputs, w.get()}; }

  /// `count` rows from `first`, alone; the bytes of the result.
  std::vector<float> run(gemm& matmuls, uint32_t first, uint32_t count) {
    out.poison();
    const gemm_part part{weight(), out.get(), outputs};
    check(matmuls.run(x.get() + size_t{first} * inputs, count, {&part, 1}, scratch.get(),
                      scratch.size(), nullptr));
    auto all = out.values();
    for (size_t i = size_t{count} * outputs; i < all.size(); ++i)
      if (!std::isnan(all[i])) FAIL("wrote rows that it was not asked for");
    all.resize(size_t{count} * outputs);
    return all;
  }
};

size_t different_bytes(std::span<const float> a, std::span<const float> b) {
  REQUIRE(a.size() == b.size());
  size_t count = 0;
  for (size_t i = 0; i < a.size(); ++i) count += std::memcmp(&a[i], &b[i], 4) != 0;
  return count;
}

/// 0 where the second is empty.
double relative_difference(std::span<const float> a, std::span<const float> b) {
  double error = 0, size = 1e-30;
  for (size_t i = 0; i < b.size(); ++i) {
    error += std::pow(a[i] - b[i], 2);
    size += std::pow(a[i], 2);
  }
  return std::sqrt(error / size);
}

void open(gemm& matmuls) {
  const auto wrong = matmuls.open();
  REQUIRE_MESSAGE(!wrong, wrong.value_or(""));
}

void tune(gemm& matmuls, problem& p) {
  const auto weight = p.weight();
  const auto wrong = matmuls.tune({&weight, 1}, nullptr);
  REQUIRE_MESSAGE(!wrong, wrong.value_or(""));
}

// Outputs and inputs on purpose awkward: not multiples of a tile, of a split; few outputs (split
// matmuls) and many.
constexpr std::pair<uint32_t, uint32_t> shapes[]{{576, 576}, {192, 1536},  {200, 4104}, {1536, 576},
                                                 {129, 72},  {4096, 1024}, {1024, 8192}};

void check_rows(gemm& matmuls, problem& p) {
  const auto most = p.rows;
  const auto whole = p.run(matmuls, 0, most);
  const std::span<const float> all{whole};
  for (uint32_t m : {1, 2, 3, 7, 8, 16, 17, 64, 65, 128, 200, 256, 512, 1024}) {
    if (m > most) continue;
    CAPTURE(m);
    const auto first = (most - m) / 3; // elsewhere in a tile than in the whole
    CHECK(different_bytes(p.run(matmuls, first, m),
                          all.subspan(size_t{first} * p.outputs, size_t{m} * p.outputs))
          == 0);
  }
}

} // namespace

TEST_CASE("a product is right within the rounding of fp32 sums") {
  if (!test::device_there()) return;
  const auto seed = test::fresh_seed("gemm");
  gemm matmuls;
  open(matmuls);
  for (auto type : {dense_type::f16, dense_type::bf16})
    for (auto [n, k] : shapes) {
      CAPTURE(n);
      CAPTURE(k);
      constexpr uint32_t rows = 37;
      problem p{type, n, k, rows, seed};
      const auto w = p.w.values(), x = p.x.values();
      for (bool tuned : {false, true}) {
        CAPTURE(tuned);
        if (tuned) tune(matmuls, p);
        const auto out = p.run(matmuls, 0, rows);
        double error = 0, size = 0;
        for (uint32_t m = 0; m < rows; ++m)
          for (uint32_t i = 0; i < n; ++i) {
            double sum = 0;
            for (uint32_t j = 0; j < k; ++j)
              sum +=
                  double{widened(type, x[size_t{m} * k + j])} * widened(type, w[size_t{i} * k + j]);
            error += std::pow(out[size_t{m} * n + i] - sum, 2);
            size += sum * sum;
          }
        // Products of 16-bit floats are exact in fp32. Tensor cores cut a sum to about 24 bits once
        // per 16 inputs, towards zero: at most 4104 / 8 / 16 * 2^-23 = 4e-6 of its size, and up to
        // 64 of them (8192 / 8 / 16). A wrong or missing element would show as 1e-3 and more.
        CHECK(std::sqrt(error / size) < 5e-5);
      }
    }
}

TEST_CASE("a row has the same bytes whoever else is in the call, tuned or not") {
  if (!test::device_there()) return;
  const auto seed = test::fresh_seed("row invariance");
  for (auto type : {dense_type::f16, dense_type::bf16})
    for (auto [n, k] : shapes) {
      CAPTURE(n);
      CAPTURE(k);
      gemm matmuls;
      open(matmuls);
      problem p{type, n, k, 1100, seed}; // more than one piece
      const auto before = p.run(matmuls, 0, p.rows);
      check_rows(matmuls, p);
      tune(matmuls, p);
      CHECK(different_bytes(before, p.run(matmuls, 0, p.rows)) == 0);
      check_rows(matmuls, p);
    }
}

TEST_CASE("a row has the same bytes with the library's own arithmetic") {
  if (!test::device_there()) return;
  const auto seed = test::fresh_seed("library arithmetic");
  gemm matmuls{arithmetic::library};
  open(matmuls);
  for (auto [n, k] : {std::pair{4096u, 1024u}, {1024u, 8192u}, {576u, 576u}}) {
    CAPTURE(n);
    CAPTURE(k);
    problem p{dense_type::f16, n, k, 1024, seed};
    tune(matmuls, p);
    check_rows(matmuls, p);
  }
}

TEST_CASE("own tiles compute the same bytes, on either kind of matrix instruction") {
  if (!test::device_there()) return;
  const auto seed = test::fresh_seed("tiles");
  gemm matmuls;
  open(matmuls);
  for (auto [n, k] : shapes)
    for (uint32_t m : {1u, 15u, 64u, 130u}) {
      CAPTURE(n);
      CAPTURE(k);
      CAPTURE(m);
      problem p{dense_type::f16, n, k, m, seed};
      std::vector<float> first, first_wide;
      device_array<uint32_t> tickets{split_tickets_most};
      check(cudaMemset(tickets.get(), 0, split_tickets_most * sizeof(uint32_t)));
      for (uint32_t variant = 0; variant < mma_variants(); ++variant) {
        CAPTURE(mma_variant_name(variant));
        p.out.poison();
        const product one{p.type, m, n, k, p.w.get(), p.x.get(), p.out.get(), n};
        const auto error = matmuls.run_one({.variant = variant}, one, splits_of(n, k),
                                           p.scratch.get(), p.scratch.size(), nullptr);
        const bool wide = variant >= mma_sync_variants();
        if (wide && error != cudaSuccess) { // not sm_90
          cudaGetLastError();
          continue;
        }
        check(error);
        const auto out = p.out.values();
        auto& expected = wide ? first_wide : first;
        if (expected.empty()) expected = out;
        CHECK(different_bytes(out, expected) == 0);
        for (int again = 0; again < 2; ++again) { // the tickets are as they were
          p.out.poison();
          check(matmuls.run_one({.variant = variant}, one, splits_of(n, k), p.scratch.get(),
                                p.scratch.size(), nullptr,
                                {tickets.get(), static_cast<uint32_t>(tickets.size())}));
          CHECK(different_bytes(p.out.values(), expected) == 0);
        }
      }
      // Both are within fp32 rounding of the true sums; see the first case.
      CHECK(relative_difference(first, first_wide) < 5e-5);
      if (!first_wide.empty() && m == 64)
        MESSAGE("wgmma and mma.sync differ in " << different_bytes(first, first_wide) << " of "
                                                << first.size() << " outputs");
    }
}

TEST_CASE("two products of one input, side by side in one buffer, replayed from a graph") {
  if (!test::device_there()) return;
  const auto seed = test::fresh_seed("parts");
  gemm matmuls;
  open(matmuls);
  constexpr uint32_t rows = 33, k = 512, n = 320, stride = 2 * n + 4;
  problem gate{dense_type::bf16, n, k, rows, seed}, up{dense_type::bf16, n, k, rows, seed + 7};
  tune(matmuls, gate);
  device_array<float> both{size_t{rows} * stride};
  const gemm_part parts[]{{gate.weight(), both.get(), stride},
                          {up.weight(), both.get() + n, stride}};
  cudaStream_t stream{};
  check(cudaStreamCreate(&stream));
  cudaGraph_t graph{};
  cudaGraphExec_t replay{};
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  check(matmuls.run(gate.x.get(), rows, parts, gate.scratch.get(), gate.scratch.size(), stream));
  check(cudaStreamEndCapture(stream, &graph));
  check(cudaGraphInstantiate(&replay, graph, 0));
  check(cudaGraphLaunch(replay, stream));
  check(cudaStreamSynchronize(stream));
  const auto out = both.values();
  const auto alone = gate.run(matmuls, 0, rows);
  size_t different = 0, written_between = 0;
  for (uint32_t m = 0; m < rows; ++m) {
    different += different_bytes(std::span{out}.subspan(size_t{m} * stride, n),
                                 std::span{alone}.subspan(size_t{m} * n, n));
    for (uint32_t i = 2 * n; i < stride; ++i) written_between += !std::isnan(out[m * stride + i]);
  }
  CHECK(different == 0);
  CHECK(written_between == 0);
  cudaGraphExecDestroy(replay);
  cudaGraphDestroy(graph);
  cudaStreamDestroy(stream);
}

TEST_CASE("what cannot be multiplied is refused") {
  const product odd{dense_type::f16, 1, 64, 12, nullptr, nullptr, nullptr, 64};
  CHECK(launch_mma(0, odd, 1, nullptr, {}, nullptr) == cudaErrorInvalidValue);
  for (uint32_t n : {1u, 64u, 192u, 576u, 1024u, 4096u, 57344u, 128256u})
    for (uint32_t k : {8u, 576u, 1536u, 4096u, 4104u, 28672u}) {
      const auto splits = splits_of(n, k);
      CHECK(splits >= 1);
      CHECK(splits <= 8);
      CHECK(uint64_t{inputs_per_split(k, splits)} * splits >= k);
    }
}
