// Rows of KV between caches, and their digest, against the host's.
#include "gpu/cuda/rows/kv_copy.hpp"
#include "tests/gpu/cuda/kernel_device.hpp"
#include "tests/gpu/kernels/kernel_support.hpp"

using namespace lamella::gpu;
using cuda::test::check;
using cuda::test::device_array;
using cuda::test::device_there;
using lamella::gpu::test::randomness;
using gpu_machine = lamella::gpu::test::machine;

namespace {

std::vector<uint32_t> random_words(randomness& random, size_t count) {
  std::vector<uint32_t> words(count);
  for (auto& x : words) x = static_cast<uint32_t>(random.engine()());
  return words;
}

/// The digest of what was moved so far.
uint64_t sum_of(const device_array<uint64_t>& parts) {
  uint64_t total = 0;
  for (const auto part : parts.values()) total += part;
  return total;
}

/// No digest yet: everything else starts poisoned.
std::vector<uint64_t> nothing() { return std::vector<uint64_t>(cuda::digest_parts); }

} // namespace

TEST_CASE("gather_kv and scatter_kv move the host's bytes and count them as it does") {
  if (!device_there()) return;
  constexpr uint32_t heads = 3, dim = 64, slots = 40, rows = 9;
  constexpr size_t head_bytes = dim * 2, row_words = size_t{2} * heads * dim * 2 / 4;
  randomness random{cuda::test::fresh_seed("kv_copy")};
  gpu_machine host{1};
  auto cache = random_words(random, slots * row_words);
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
    device_array<uint64_t> gathered{nothing()}, scattered{nothing()};
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
    x.digests = gathered.get();
    check(cuda::launch_gather_kv(x, nullptr));
    CHECK(between.values() == packed);
    CHECK(sum_of(gathered) == digest);
    x.cache = reinterpret_cast<std::byte*>(to.get());
    x.digests = scattered.get();
    check(cuda::launch_scatter_kv(x, nullptr));
    CHECK(sum_of(scattered) == digest);
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

// What a spare makes of the rows of the others (reliability A6): the first ones replace what was
// there, the next ones are added. More rows than blocks, and pieces that share a digest.
TEST_CASE("L-M26 scatter_kv adds rows to a cache as the host does") {
  if (!device_there()) return;
  constexpr uint32_t slots = 300;
  randomness random{cuda::test::fresh_seed("kv_copy added")};
  gpu_machine host{1};
  const std::vector<slot_run> runs{{150, 101}, {0, 53}, {299, 1}};
  const uint32_t rows = 155;
  REQUIRE(rows > 2 * cuda::digest_parts);
  for (const auto& [type, heads, dim] : {std::tuple{half_type::f16, 1u, 64u},
                                         {half_type::q8, 3u, 64u},
                                         {half_type::bf16, 2u, 128u}}) {
    CAPTURE(static_cast<int>(type));
    kv_layer layer{nullptr, type, heads, dim};
    const auto row_words = layer.row_bytes() / 4;
    std::vector<uint32_t> wanted(slots * row_words, ~0u); // as the device's is poisoned
    layer.rows = reinterpret_cast<std::byte*>(wanted.data());
    device_array<uint32_t> cache{wanted.size()};
    device_array<slot_run> places{runs};
    device_array<uint64_t> sums{nothing()};
    uint64_t digest = 0, word = 0;
    for (const bool add : {false, true, true}) {
      auto packed = random_words(random, rows * row_words);
      auto* bytes = reinterpret_cast<std::byte*>(packed.data());
      reference_operators().scatter_kv({layer, 0, heads, runs, bytes, word, &digest, add},
                                       host.context());
      device_array<uint32_t> arrived{packed};
      cuda::kv_copy x;
      x.cache = reinterpret_cast<std::byte*>(cache.get());
      x.row_bytes = layer.row_bytes();
      x.v_offset = layer.row_bytes() / 2;
      x.half_words = static_cast<uint32_t>(row_words / 2);
      x.runs = places.get();
      x.run_count = static_cast<uint32_t>(runs.size());
      x.rows = rows;
      x.packed = reinterpret_cast<std::byte*>(arrived.get());
      x.first_word = word;
      x.digests = sums.get();
      x.add = add;
      check(cuda::launch_scatter_kv(x, nullptr));
      CHECK(cache.values() == wanted);
      CHECK(arrived.values() == packed);
      CHECK(sum_of(sums) == digest);
      word += packed.size();
    }
  }
}
