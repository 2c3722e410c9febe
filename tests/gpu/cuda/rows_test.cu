// Row operators on the device against the reference kernels, and the same bytes for a row whoever
// else is in the call.
#include "gpu/cuda/rows/rows.hpp"
#include "tests/gpu/cuda/kernel_device.hpp"
#include "tests/gpu/kernels/kernel_support.hpp"

#include "gpu/kernels/half.hpp"

using namespace lamella::gpu;
using cuda::test::check;
using cuda::test::device_array;
using cuda::test::device_there;
using gpu_machine = lamella::gpu::test::machine;
using lamella::gpu::test::poisoned;
using lamella::gpu::test::randomness;
using lamella::gpu::test::relative_rms;

namespace {

/// How many of the 16-bit copies differ from the fp32 values rounded.
size_t wrong_copies(cuda::dense_type type, const std::vector<uint16_t>& copies,
                    const std::vector<float>& values) {
  size_t wrong = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    if (type == cuda::dense_type::f16) {
      wrong += copies[i] != to_half(values[i]);
    } else {
      auto bits = std::bit_cast<uint32_t>(values[i]);
      bits += 0x7fff + (bits >> 16 & 1);
      wrong += copies[i] != bits >> 16;
    }
  }
  return wrong;
}

constexpr uint32_t widths[]{1, 7, 54, 64, 128, 512, 576, 1536, 4096, 8192};
constexpr cuda::dense_type types[]{cuda::dense_type::f16, cuda::dense_type::bf16};

} // namespace

TEST_CASE("rms_norm equals the reference, and a row alone has the same bytes") {
  if (!device_there()) return;
  randomness random{cuda::test::fresh_seed("rms_norm")};
  gpu_machine host{1};
  for (auto width : widths)
    for (auto type : types) {
      CAPTURE(width);
      constexpr uint32_t rows = 9;
      const auto x = random.normals(size_t{rows} * width), weight = random.normals(width);
      auto expected = poisoned(x.size());
      reference_operators().rms_norm({x.data(), weight.data(), 1e-5f, rows, width, expected.data()},
                                     host.context());
      device_array<float> dx{x}, dw{weight}, out{x.size()};
      device_array<uint16_t> copy{x.size()};
      check(cuda::launch_rms_norm({dx.get(), dw.get(), 1e-5f, rows, width, out.get()},
                                  {copy.get(), type}, nullptr));
      const auto all = out.values();
      CHECK(relative_rms(all, expected) < 1e-6); // fp32 sums of up to 32 + 8 steps per thread
      CHECK(wrong_copies(type, copy.values(), all) == 0);
      // Alone, in place, only the copy: rows of a multiple of 4 stay aligned.
      for (uint32_t m : {0u, 4u, 8u}) {
        device_array<float> one{std::span{x}.subspan(size_t{m} * width, width)};
        check(
            cuda::launch_rms_norm({one.get(), dw.get(), 1e-5f, 1, width, one.get()}, {}, nullptr));
        const auto alone = one.values();
        CHECK(lamella::gpu::test::same_bytes(std::span{alone},
                                             std::span{all}.subspan(size_t{m} * width, width)));
      }
      const auto before = copy.values();
      copy.poison();
      check(cuda::launch_rms_norm({dx.get(), dw.get(), 1e-5f, rows, width, nullptr},
                                  {copy.get(), type}, nullptr));
      CHECK(copy.values() == before);
    }
}

TEST_CASE("a sum and its norm in one kernel have the bytes of two") {
  if (!device_there()) return;
  randomness random{cuda::test::fresh_seed("add_rms_norm")};
  for (auto width : {7u, 576u, 2048u, 4096u, 5120u, 20480u}) {
    CAPTURE(width);
    constexpr uint32_t rows = 3;
    const auto count = size_t{rows} * width;
    const auto a = random.normals(count), b = random.normals(count), weight = random.normals(width);
    device_array<float> da{a}, db{b}, dw{weight}, sum{count}, out{count};
    device_array<uint16_t> copy{count};
    constexpr auto type = cuda::dense_type::f16;
    check(cuda::launch_add({da.get(), db.get(), rows, width, sum.get()}, nullptr));
    check(cuda::launch_rms_norm({sum.get(), dw.get(), 1e-5f, rows, width, out.get()},
                                {copy.get(), type}, nullptr));
    const auto sums = sum.values(), norms = out.values();
    const auto copies = copy.values();
    out.poison();
    copy.poison();
    // The sum in place of what it adds to, as residuals are.
    check(cuda::launch_add_rms_norm({da.get(), db.get(), rows, width, da.get()},
                                    {da.get(), dw.get(), 1e-5f, rows, width, out.get()},
                                    {copy.get(), type}, nullptr));
    const auto placed = da.values(), joined = out.values();
    CHECK(lamella::gpu::test::same_bytes(std::span{placed}, std::span{sums}));
    CHECK(lamella::gpu::test::same_bytes(std::span{joined}, std::span{norms}));
    CHECK(copy.values() == copies);
  }
}

TEST_CASE("silu_mul, add, add_bias, scale and narrow equal the reference") {
  if (!device_there()) return;
  randomness random{cuda::test::fresh_seed("elements")};
  gpu_machine host{1};
  for (auto width : widths)
    for (auto type : types) {
      CAPTURE(width);
      constexpr uint32_t rows = 5;
      const auto stride = 2 * width; // gate and up of one row side by side
      auto fused = random.normals(size_t{rows} * stride);
      fused[0] = -100;
      fused[1 % width] = 100;
      std::vector<float> gate, up;
      for (uint32_t m = 0; m < rows; ++m)
        for (uint32_t j = 0; j < width; ++j) {
          gate.push_back(fused[size_t{m} * stride + j]);
          up.push_back(fused[size_t{m} * stride + width + j]);
        }
      auto expected = poisoned(gate.size());
      reference_operators().silu_mul({gate.data(), up.data(), rows, width, expected.data()},
                                     host.context());
      device_array<float> in{fused}, out{gate.size()};
      device_array<uint16_t> copy{gate.size()};
      cuda::silu_mul_rows args{in.get(),  in.get() + width,  rows, width, stride,
                               out.get(), {copy.get(), type}};
      check(cuda::launch_silu_mul(args, nullptr));
      const auto y = out.values();
      CHECK(relative_rms(y, expected) < 1e-6); // exp is exact to 4e-7
      CHECK(wrong_copies(type, copy.values(), y) == 0);
      args.out = nullptr;
      copy.poison();
      check(cuda::launch_silu_mul(args, nullptr));
      CHECK(wrong_copies(type, copy.values(), y) == 0);

      device_array<float> a{gate}, b{up};
      check(cuda::launch_add({a.get(), b.get(), rows, width, a.get()}, nullptr));
      const auto sums = a.values();
      size_t wrong = 0;
      for (size_t i = 0; i < sums.size(); ++i) wrong += sums[i] != gate[i] + up[i];
      CHECK(wrong == 0);
      device_array<float> c{gate}, bias{std::span{up}.first(width)};
      check(cuda::launch_add_bias({c.get(), bias.get(), rows, width, c.get()}, nullptr));
      const auto moved = c.values();
      wrong = 0;
      for (size_t i = 0; i < moved.size(); ++i) wrong += moved[i] != gate[i] + up[i % width];
      CHECK(wrong == 0);
      device_array<float> d{gate};
      check(cuda::launch_scale({d.get(), 0.7f, rows, width, d.get()}, nullptr));
      const auto scaled = d.values();
      wrong = 0;
      for (size_t i = 0; i < scaled.size(); ++i) wrong += scaled[i] != gate[i] * 0.7f;
      CHECK(wrong == 0);
      copy.poison();
      check(cuda::launch_narrow(b.get(), up.size(), type, copy.get(), nullptr));
      CHECK(wrong_copies(type, copy.values(), up) == 0);
    }
}

TEST_CASE("embedding takes ids, what seats sampled, and makes NaN of others") {
  if (!device_there()) return;
  randomness random{cuda::test::fresh_seed("embed")};
  constexpr uint32_t width = 72, vocabulary = 50, taken = ~uint32_t{0};
  for (auto type : types) {
    std::vector<uint16_t> table(size_t{vocabulary} * width);
    for (auto& h : table) h = to_half(random.normal());
    const std::vector<uint32_t> tokens{3, taken, 49, taken, 50, 0}, seats{9, 2, 9, 0, 9, 9},
        sampled{7, 1, 11};
    const std::vector<uint32_t> meant{3, 11, 49, 7, 50, 0};
    device_array<uint16_t> rows{table};
    device_array<uint32_t> ids{tokens}, who{seats}, last{sampled};
    device_array<float> out{meant.size() * width};
    check(cuda::launch_embed({{type, vocabulary, width, rows.get()},
                              ids.get(),
                              who.get(),
                              last.get(),
                              static_cast<uint32_t>(meant.size()),
                              out.get()},
                             nullptr));
    const auto y = out.values();
    for (size_t m = 0; m < meant.size(); ++m)
      for (uint32_t j = 0; j < width; ++j) {
        const auto actual = y[m * width + j];
        if (meant[m] >= vocabulary) {
          if (!std::isnan(actual)) FAIL("an unknown id gave numbers");
          continue;
        }
        const auto h = table[size_t{meant[m]} * width + j];
        const auto expected = type == cuda::dense_type::f16 ? from_half(h) : from_bf16(h);
        if (actual != expected) FAIL("row " << m << " element " << j);
      }
  }
}

TEST_CASE("gathering takes rows in the order asked for") {
  if (!device_there()) return;
  randomness random{cuda::test::fresh_seed("gather")};
  for (auto width : {3u, 576u}) {
    const auto x = random.normals(size_t{10} * width);
    const std::vector<uint32_t> index{9, 0, 4, 4};
    device_array<float> in{x}, out{index.size() * width};
    device_array<uint32_t> at{index};
    check(cuda::launch_gather({in.get(), at.get(), 4, width, out.get()}, nullptr));
    const auto y = out.values();
    for (size_t m = 0; m < index.size(); ++m)
      CHECK(lamella::gpu::test::same_bytes(std::span{y}.subspan(m * width, width),
                                           std::span{x}.subspan(size_t{index[m]} * width, width)));
  }
}

TEST_CASE("what a row operator cannot do is refused") {
  alignas(16) float x[8] = {};
  CHECK(cuda::launch_rms_norm({x + 1, x, 0, 1, 4, x}, {}, nullptr) == cudaErrorMisalignedAddress);
  // A norm of something else than the sum.
  CHECK(cuda::launch_add_rms_norm({x, x, 1, 4, x}, {x + 4, x, 0, 1, 4, x + 4}, {}, nullptr)
        == cudaErrorInvalidValue);
}
