// Checksums of what slots hold, against the host's.
#include "gpu/cuda/rows/kv_checksum.hpp"
#include "tests/gpu/cuda/kernel_device.hpp"
#include "tests/gpu/kernels/kernel_support.hpp"

using namespace lamella::gpu;
using cuda::test::check;
using cuda::test::device_array;
using cuda::test::device_there;
using lamella::gpu::test::randomness;
using gpu_machine = lamella::gpu::test::machine;

TEST_CASE("A6 checksum_kv gives the host's checksums, layer after layer") {
  if (!device_there()) return;
  constexpr uint32_t slots = 70, layers = 3;
  randomness random{cuda::test::fresh_seed("kv_checksum")};
  gpu_machine host{1};
  // Rows of any number of words: whole rounds of a warp's lanes, and not.
  for (const auto& [type, heads, dim] : {std::tuple{half_type::f16, 1u, 64u},
                                         {half_type::q8, 1u, 64u},
                                         {half_type::q8, 3u, 128u},
                                         {half_type::f16, 5u, 7u},
                                         {half_type::f32, 1u, 1u}}) {
    CAPTURE(dim);
    kv_layer layer{nullptr, type, heads, dim};
    const auto row_words = layer.row_bytes() / 4;
    std::vector<uint32_t> chosen{69, 0, 5, 5, 17, 33, 1};
    for (uint32_t i = 0; i < 54; ++i) chosen.push_back(i);
    std::vector<uint32_t> wanted(chosen.size());
    device_array<uint32_t> places{chosen};
    device_array<uint32_t> sums{wanted};
    for (uint32_t l = 0; l < layers; ++l) {
      std::vector<uint32_t> cache(slots * row_words);
      for (auto& x : cache) x = static_cast<uint32_t>(random.engine()());
      if (l == 1) cache.assign(cache.size(), 0);
      layer.rows = reinterpret_cast<std::byte*>(cache.data());
      reference_operators().checksum_kv({layer, chosen, wanted}, host.context());
      device_array<uint32_t> rows{cache};
      check(cuda::launch_checksum_kv({reinterpret_cast<const std::byte*>(rows.get()),
                                      layer.row_bytes(), places.get(),
                                      static_cast<uint32_t>(chosen.size()), sums.get()},
                                     nullptr));
      CHECK(sums.values() == wanted);
      CHECK(rows.values() == cache);
    }
  }
  CHECK(cuda::launch_checksum_kv({nullptr, 6, nullptr, 1, nullptr}, nullptr)
        == cudaErrorInvalidValue);
}
