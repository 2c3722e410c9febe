// `lamella bench gemm` on small matrices: every type gets its rows, and what cannot be is told.
#include "cli/bench/parts/bench_gemm.hpp"

#include <doctest/doctest.h>

#include <stdexcept>

using namespace lamella;
using namespace lamella::cli;
using model::tensor_type;

TEST_CASE("products of all types are measured, in the order of types and rows") {
  bench_gemm_options options;
  options.rows = {1, 3};
  options.outputs = 48;
  options.inputs = 512;
  options.repeats = 2;
  for (const char* set : {"reference", "portable", "auto"}) {
    std::string reason;
    const auto* ops = gpu::find_operators(set, &reason);
    REQUIRE(ops != nullptr);
    const auto rows = measure_gemm(options, *ops, 2);
    REQUIRE(rows.size() == 2 * model::tensor_types.size());
    for (size_t i = 0; i < rows.size(); ++i) {
      CHECK(rows[i].type == model::tensor_types[i / 2].type);
      CHECK(rows[i].rows == options.rows[i % 2]);
      CHECK(rows[i].bits_per_weight > 2.6);
      CHECK(rows[i].bits_per_weight < 33);
      CHECK(rows[i].median_gflops > 0);
      CHECK(rows[i].best_gflops >= rows[i].median_gflops);
    }
  }
}

TEST_CASE("weights that are no whole blocks are refused with the number that they need") {
  bench_gemm_options options;
  options.types = {tensor_type::q8_0, tensor_type::q4_k};
  options.outputs = 16;
  options.inputs = 288;
  CHECK_THROWS_WITH_AS(measure_gemm(options, gpu::reference_operators(), 1),
                       doctest::Contains("q4_k need inputs that are a multiple of 256"),
                       std::runtime_error);
}
