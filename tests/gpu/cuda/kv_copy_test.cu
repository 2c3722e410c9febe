// Rows of KV between caches, and their digest, against the host's.
#include "gpu/cuda/kv_copy.hpp"
#include "tests/gpu/cuda/kernel_device.hpp"
#include "tests/gpu/kernel_support.hpp"

using namespace lamella::gpu;
using cuda::test::check;
using cuda::test::device_array;
using cuda::test::device_there;
using lamella::gpu::test::randomness;
using gpu_machine = lamella::gpu::test::machine;

TEST_CASE("gather_kv and scatter_kv move the host's bytes and count them as it does") {
  if (!device_there()) return;
  constexpr uint32_t heads = 3, dim = 64, slots = 40, rows = 9;
  constexpr size_t head_bytes = dim * 2, row_words = size_t{2} * heads * dim * 2 / 4;
  randomness random{cuda::test::fresh_seed("kv_copy")};
  gpu_machine host{1};
  std::vector<uint32_t> cache(slots * row_words);
  for (auto& x : cache) x = static_cast<uint32_t>(random.engine()());
  const std::vector<slot_run> runs{{30, 4}, {2, 4}, {39, 1}};
  for (const auto& [first, count] : {std::pair{0u, 3u}, {1u, 2u}, {2u, 1u}}) {
    CAPTURE(first);
    const kv_layer layer{reinterpret_cast<std::byte*>(cache.data()), half_type::f16, heads, dim};
    std::vector<uint32_t> packed(size_t{rows} * count * dim);
    uint64_t digest = 0;
    reference_operators().gather_kv(
        {layer, first, count, runs, reinterpret_cast<std::byte*>(packed.data()), 17, &digest},
        host.context());
    device_array<uint32_t> from{cache}, to{cache.size()}, between{packed.size()};
    device_array<slot_run> places{runs};
    device_array<uint64_t> sums{rows};
    cuda::kv_copy x;
    x.cache = reinterpret_cast<std::byte*>(from.get());
    x.row_bytes = layer.row_bytes();
    x.k_offset = first * head_bytes;
    x.v_offset = (heads + first) * head_bytes;
    x.half_words = static_cast<uint32_t>(count * head_bytes / 4);
    x.runs = places.get();
    x.run_count = static_cast<uint32_t>(runs.size());
    x.rows = rows;
    x.packed = reinterpret_cast<std::byte*>(between.get());
    x.first_word = 17;
    x.digests = sums.get();
    const auto sum = [&] {
      uint64_t total = 0;
      for (const auto part : sums.values()) total += part;
      return total;
    };
    check(cuda::launch_gather_kv(x, nullptr));
    CHECK(between.values() == packed);
    CHECK(sum() == digest);
    x.cache = reinterpret_cast<std::byte*>(to.get());
    check(cuda::launch_scatter_kv(x, nullptr));
    CHECK(sum() == digest);
    const auto there = to.values();
    size_t wrong = 0;
    for (const auto& run : runs)
      for (uint32_t i = 0; i < run.length; ++i)
        for (const auto offset : {x.k_offset, x.v_offset}) {
          const auto at = (run.first + i) * row_words + offset / 4;
          wrong += std::equal(there.begin() + static_cast<ptrdiff_t>(at),
                              there.begin() + static_cast<ptrdiff_t>(at + x.half_words),
                              cache.begin() + static_cast<ptrdiff_t>(at))
                       ? 0
                       : 1;
        }
    CHECK(wrong == 0);
  }
}
