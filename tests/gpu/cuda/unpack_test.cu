// Dense weights equal what the reference reads from the same blocks, rounded to 16 bits.
#include "gpu/cuda/gemm/unpack.hpp"
#include "tests/gpu/cuda/kernel_device.hpp"
#include "tests/gpu/kernels/kernel_support.hpp"

#include "gpu/kernels/half.hpp"

using namespace lamella;
using namespace lamella::gpu;
using cuda::test::device_array;

namespace {

std::vector<float> as_floats(cuda::dense_type type, const std::vector<uint16_t>& halves) {
  std::vector<float> result;
  for (auto h : halves)
    result.push_back(type == cuda::dense_type::f16 ? from_half(h) : from_bf16(h));
  return result;
}

/// All rows of a matrix as the reference kernels read them.
std::vector<float> reference_rows(const gpu::test::weights& w) {
  gpu::test::machine host{1};
  std::vector<uint32_t> rows(w.outputs);
  for (uint32_t n = 0; n < w.outputs; ++n) rows[n] = n;
  std::vector<float> result(size_t{w.outputs} * w.inputs);
  reference_operators().embed(
      {{w.type, w.outputs, w.inputs, w.file.data()}, rows, {}, nullptr, result.data()},
      host.context());
  return result;
}

} // namespace

TEST_CASE("weights unpack to what the reference reads, rounded to 16 bits") {
  if (!cuda::test::device_there()) return;
  gpu::test::randomness random{cuda::test::fresh_seed("unpack")};
  for (const auto& known : model::tensor_types)
    for (auto [outputs, blocks_of_32] : {std::pair{1u, 1u}, {7u, 3u}, {129u, 17u}}) {
      const auto type = known.type;
      const auto inputs =
          known.block_elements == 256 ? (blocks_of_32 + 7) / 8 * 256 : blocks_of_32 * 32;
      CAPTURE(model::to_string(type));
      CAPTURE(outputs);
      gpu::test::weights w{type, outputs, inputs, random};
      device_array<std::byte> blocks{w.file};
      device_array<uint16_t> dense{size_t{outputs} * inputs};
      cuda::test::check(
          cuda::launch_unpack(type, blocks.get(), outputs, inputs, dense.get(), nullptr));
      auto expected = reference_rows(w);
      const auto kind = cuda::dense_type_of(type);
      if (kind == cuda::dense_type::f16)
        for (auto& x : expected) x = from_half(to_half(x)); // within range, so not saturated
      const auto actual = as_floats(kind, dense.values());
      size_t different = 0;
      for (size_t i = 0; i < actual.size(); ++i) different += actual[i] != expected[i];
      CHECK(different == 0); // the same fp32 operations, one rounding: no tolerance
    }
}

TEST_CASE("values beyond 16 bits saturate and broken ones stay broken") {
  if (!cuda::test::device_there()) return;
  constexpr auto infinity = std::numeric_limits<float>::infinity();
  const std::vector<float> x{1e6f,
                             -1e6f,
                             65504,
                             65519,
                             65520,
                             infinity,
                             -infinity,
                             NAN,
                             0x1p-24f,
                             0x1p-26f,
                             -0.0f,
                             1.0f + 0x1p-11f,
                             1.0f + 0x1.8p-10f,
                             0,
                             1,
                             2,
                             3,
                             4,
                             5,
                             6,
                             7,
                             8,
                             9,
                             10,
                             11,
                             12,
                             13,
                             14,
                             15,
                             16,
                             17,
                             18};
  device_array<float> blocks{x};
  device_array<uint16_t> dense{x.size()};
  cuda::test::check(
      cuda::launch_unpack(model::tensor_type::f32, blocks.get(), 1, 32, dense.get(), nullptr));
  const auto y = as_floats(cuda::dense_type::f16, dense.values());
  CHECK(y[0] == 65504);
  CHECK(y[1] == -65504);
  CHECK(y[2] == 65504);
  CHECK(y[3] == 65504);
  CHECK(y[4] == 65504);
  CHECK(y[5] == infinity);
  CHECK(y[6] == -infinity);
  CHECK(std::isnan(y[7]));
  CHECK(y[8] == 0x1p-24f);
  CHECK(y[9] == 0);
  CHECK(std::signbit(y[10]));
  CHECK(y[11] == 1);              // a tie goes to even
  CHECK(y[12] == 1.0f + 0x1p-9f); // and so does this one, upwards
}

TEST_CASE("blocks that do not fill a row are refused") {
  CHECK(cuda::launch_unpack(model::tensor_type::q4_1, nullptr, 1, 33, nullptr, nullptr)
        == cudaErrorInvalidValue);
  CHECK(cuda::launch_unpack(model::tensor_type::q4_k, nullptr, 1, 128, nullptr, nullptr)
        == cudaErrorInvalidValue);
}
