// Rows on their way to and from the wire, on the device against the reference kernels; what is
// joined in one launch has the bytes of several.
#include "gpu/cuda/rows/wire.hpp"
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
using lamella::gpu::test::same_bytes;

namespace {

/// The words of a channel in device memory, and a tail that posts to them.
struct posts {
  device_array<uint64_t> words{std::vector<uint64_t>(2, 0)}; ///< sent, released
  device_array<std::byte> slot{sizeof(frame_header)};
  device_array<uint32_t> state{std::vector<uint32_t>(2, 0)}; ///< arrived, failed
  device_array<std::byte> control{sizeof(cuda::channel_control)};
  cuda::kernel_tail tail{};

  posts() {
    for (size_t i = 0; i < sizeof tail.header; ++i)
      reinterpret_cast<std::byte*>(&tail.header)[i] = static_cast<std::byte>(i * 7 + 1);
    tail.slot = reinterpret_cast<frame_header*>(slot.get());
    tail.sent = words.get();
    tail.sent_value = 41;
    tail.released = words.get() + 1;
    tail.released_value = 17;
    tail.arrived = state.get();
    tail.port = {reinterpret_cast<cuda::channel_control*>(control.get()), state.get() + 1, 0};
  }
  /// Posted as asked for; ready for the next kernel.
  void check_done() {
    CHECK(words.values() == std::vector<uint64_t>{tail.sent_value, tail.released_value});
    const auto header = slot.values();
    CHECK(std::memcmp(header.data(), &tail.header, sizeof tail.header) == 0);
    CHECK(state.values()[0] == 0);
  }
};

} // namespace

TEST_CASE("rope equals the reference near and far, in place and not") {
  if (!device_there()) return;
  randomness random{cuda::test::fresh_seed("rope")};
  gpu_machine host{1};
  const std::vector<uint32_t> positions{0, 1, 17, 4095, 131071, 1000003};
  const auto rows = static_cast<uint32_t>(positions.size());
  for (auto pairing : {rope_pairing::halves, rope_pairing::interleaved})
    for (auto [dim, pairs] : {std::pair{64u, 32u}, {128u, 64u}, {128u, 16u}, {54u, 27u}}) {
      CAPTURE(dim);
      CAPTURE(pairs);
      constexpr uint32_t heads = 5;
      const uint32_t stride = heads * dim + 3;
      const float magnitude = pairs == 16 ? 1.25f : 1.0f; // of the part that rotates
      std::vector<double> frequencies(pairs);
      for (uint32_t i = 0; i < pairs; ++i) frequencies[i] = std::pow(500000.0, -double(i) / pairs);
      const auto x = random.normals(size_t{rows} * stride);
      auto expected = x;
      reference_operators().rope({expected.data(), expected.data(), rows, heads, dim, stride,
                                  pairing, positions, frequencies, magnitude},
                                 host.context());
      device_array<float> in{x}, out{x.size()};
      device_array<uint32_t> at{positions};
      device_array<double> turns{frequencies};
      device_array<float2> angles{size_t{rows} * pairs};
      check(cuda::launch_angles({at.get(), turns.get(), rows, pairs, angles.get(), magnitude},
                                nullptr));
      cuda::rope_rows args{in.get(), out.get(), rows,
                           heads,    stride,    {angles.get(), dim, pairs, pairing}};
      check(cuda::launch_rope(args, nullptr));
      const auto apart = out.values();
      args.out = in.get();
      check(cuda::launch_rope(args, nullptr));
      const auto placed = in.values();
      for (uint32_t m = 0; m < rows; ++m)
        for (uint32_t j = 0; j < stride; ++j) {
          const auto i = size_t{m} * stride + j;
          if (j >= heads * dim) {
            if (placed[i] != x[i] || !std::isnan(apart[i])) FAIL("touched what lies between rows");
            continue;
          }
          // Angles are exact to 1e-10; then two matmuls and a sum in fp32.
          if (std::fabs(placed[i] - expected[i]) > 2e-6f || placed[i] != apart[i])
            FAIL("row " << m << " element " << j << ": " << placed[i] << ", " << apart[i] << " not "
                        << expected[i]);
        }
    }
}

TEST_CASE("rows go to the wire and back as the reference does it (L-M14)") {
  if (!device_there()) return;
  randomness random{cuda::test::fresh_seed("wire")};
  gpu_machine host{1};
  constexpr uint32_t rows = 7, heads = 6, width = 24, stride = heads * width + 8;
  const std::vector<uint32_t> index{5, 0, 3};
  const auto count = static_cast<uint32_t>(index.size());
  for (auto wire : {half_type::f16, half_type::f32, half_type::bf16})
    for (auto [first, share] : {std::pair{0u, 6u}, {2u, 3u}, {5u, 1u}}) {
      auto x = random.normals(size_t{rows} * stride);
      x[5 * stride + first * width] = 1e6f; // beyond f16: infinity on the wire, as the reference
      const auto bytes = size_t{share} * count * width * bytes_of(wire);
      std::vector<std::byte> expected(bytes);
      reference_operators().to_wire(
          {x.data(), stride, index, first, share, width, wire, expected.data()}, host.context());
      device_array<float> in{x}, back{x.size()};
      device_array<uint32_t> at{index};
      device_array<std::byte> out{bytes};
      check(cuda::launch_to_wire(
          {{{in.get(), stride, first, share, width, out.get()}}, 1, at.get(), count, wire},
          nullptr));
      CHECK(out.values() == expected);
      auto restored = poisoned(x.size());
      reference_operators().from_wire(
          {expected.data(), index, first, share, width, wire, restored.data(), stride},
          host.context());
      device_array<uint16_t> copy{x.size()};
      posts channel;
      channel.tail.sent = nullptr;
      channel.tail.sent_value = 0;
      check(cuda::launch_from_wire({out.get(),
                                    back.get(),
                                    stride,
                                    first,
                                    share,
                                    width,
                                    at.get(),
                                    count,
                                    wire,
                                    {copy.get(), cuda::dense_type::f16},
                                    channel.tail},
                                   nullptr));
      const auto y = back.values();
      const auto rounded = copy.values();
      size_t wrong = 0;
      for (size_t i = 0; i < y.size(); ++i)
        wrong += std::isnan(restored[i])
                     ? !std::isnan(y[i]) || rounded[i] != 0xffff
                     : y[i] != restored[i]
                           || rounded[i] != to_half(std::clamp(y[i], -65504.0f, 65504.0f));
      // Infinity stays infinity in both.
      CHECK(wrong == (wire == half_type::f16 && y[5 * stride + first * width] > 65504.0f ? 1 : 0));
      CHECK(channel.words.values() == std::vector<uint64_t>{0, 17});
    }
}

TEST_CASE("L-M26 parity on the wire is the reference's, whatever the shards store") {
  if (!device_there()) return;
  randomness random{cuda::test::fresh_seed("parity")};
  gpu_machine host{1};
  using enum half_type;
  constexpr uint32_t rows = 7, shards = 3, heads = 2, dim = 40;
  constexpr uint32_t stride = shards * heads * dim + 8;
  const std::vector<uint32_t> index{5, 0, 3};
  const auto count = static_cast<uint32_t>(index.size());
  const auto x = random.normals(size_t{rows} * stride);
  const std::pair<half_type, half_type> types[] = {{f16, f16}, {f32, f32}, {bf16, bf16},
                                                   {f32, f16}, {f16, f32}, {f16, q8},
                                                   {f32, q8},  {bf16, q8}};
  for (const auto& [wire, cache] : types) {
    std::vector<std::byte> expected(heads * count * head_bytes_of(cache, dim));
    reference_operators().parity_to_wire(
        {x.data(), stride, index, shards, heads, dim, wire, cache, expected.data()},
        host.context());
    device_array<float> in{x};
    device_array<uint32_t> at{index};
    device_array<std::byte> out{expected.size()};
    check(cuda::launch_parity_to_wire(
        {in.get(), stride, shards, heads, dim, out.get(), at.get(), count, wire, cache}, nullptr));
    CHECK(out.values() == expected);
  }
}

TEST_CASE("a frame in one launch has the bytes of several, and is posted when it is whole") {
  if (!device_there()) return;
  randomness random{cuda::test::fresh_seed("frame")};
  constexpr uint32_t rows = 5, kv_heads = 3, dim = 64, pairs = 32;
  for (auto pairing : {rope_pairing::halves, rope_pairing::interleaved})
    for (uint32_t group : {1u, 4u}) {
      const uint32_t stride = kv_heads * group * dim, kv_stride = kv_heads * dim;
      const std::vector<uint32_t> positions{3, 0, 4095, 77, 131000}, all{0, 1, 2, 3, 4};
      std::vector<double> frequencies(pairs);
      for (uint32_t i = 0; i < pairs; ++i) frequencies[i] = std::pow(500000.0, -double(i) / pairs);
      const auto x = random.normals(size_t{rows} * stride);
      const auto v = random.normals(size_t{rows} * kv_stride);
      device_array<float> in{x}, apart{x}, values{v};
      device_array<uint32_t> at{positions}, index{all};
      device_array<double> turns{frequencies};
      device_array<float2> angles{size_t{rows} * pairs};
      device_array<uint16_t> first{x.size()}, second{v.size()}, one{x.size()}, two{v.size()};
      check(cuda::launch_angles({at.get(), turns.get(), rows, pairs, angles.get()}, nullptr));
      const cuda::rotation turn{angles.get(), dim, pairs, pairing};
      check(cuda::launch_rope({apart.get(), apart.get(), rows, kv_heads * group, stride, turn},
                              nullptr));
      check(cuda::launch_to_wire({{{apart.get(), stride, 0, kv_heads, group * dim, first.get()}},
                                  1,
                                  index.get(),
                                  rows,
                                  half_type::f16},
                                 nullptr));
      check(cuda::launch_to_wire({{{values.get(), kv_stride, 0, kv_heads, dim, second.get()}},
                                  1,
                                  index.get(),
                                  rows,
                                  half_type::f16},
                                 nullptr));
      posts channel;
      cuda::wire_rows frame{
          {{in.get(), stride, 0, kv_heads, group * dim, one.get(), turn, in.get()},
           {values.get(), kv_stride, 0, kv_heads, dim, two.get()}},
          2,
          index.get(),
          rows,
          half_type::f16,
          channel.tail};
      check(cuda::launch_to_wire(frame, nullptr));
      CHECK(one.values() == first.values());
      CHECK(two.values() == second.values());
      const auto rotated = in.values(), expected = apart.values();
      CHECK(same_bytes(std::span{rotated}, std::span{expected}));
      channel.check_done();
      // Again: the counter of blocks is back where it was. After a failed wait nothing is posted.
      frame.parts[0].turn = {};
      channel.tail.sent_value = frame.tail.sent_value = 42;
      check(cuda::launch_to_wire(frame, nullptr));
      channel.check_done();
      check(cudaMemset(channel.state.get() + 1, 1, sizeof(uint32_t)));
      frame.tail.sent_value = 43;
      check(cuda::launch_to_wire(frame, nullptr));
      channel.check_done();
    }
}

TEST_CASE("what the wire's operators cannot do is refused") {
  cuda::rope_rows wide{};
  wide.rows = wide.heads = 1;
  wide.turn = {nullptr, 64, 33, rope_pairing::halves};
  CHECK(cuda::launch_rope(wide, nullptr) == cudaErrorInvalidValue);
  cuda::wire_rows many{};
  many.count = cuda::wire_rows::parts_max + 1;
  CHECK(cuda::launch_to_wire(many, nullptr) == cudaErrorInvalidValue);
  cuda::unwire_rows nothing{};
  uint64_t word = 0;
  nothing.tail.released = &word;
  CHECK(cuda::launch_from_wire(nothing, nullptr) == cudaErrorInvalidValue); // nobody would post
}
