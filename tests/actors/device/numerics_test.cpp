#include "actors/machine/devices.hpp"
#include "actors/machine/sizing.hpp"
#include "gpu/cuda/attention/attention_plan.hpp"

#include <doctest/doctest.h>

namespace lamella::actors {

TEST_CASE("numerics name the class of devices and the pieces of sums; those of hosts stay") {
  config::settings options;
  const gpu::device_numerics host{"avx512", "chunk=256"};
  CHECK(numerics_of(options, host, host) == "avx512 wire=f16 kv=f16 chunk=256");
  const auto h100 = gpu::cuda::numerics_of(90), a100 = gpu::cuda::numerics_of(80);
  CHECK(numerics_of(options, h100, h100)
        == "cuda-sm90 wire=f16 kv=f16 unit=512 tile=32 fixed=own splits=96");
  CHECK(numerics_of(options, h100, h100) != numerics_of(options, a100, a100));
  auto ranks = options; // sums are cut elsewhere
  ranks.pools.model.tensor_parallel = 2;
  CHECK(numerics_of(ranks, host, host) == "avx512 wire=f16 kv=f16 chunk=256 ranks=2");
  CHECK(numerics_of(options, h100, host)
        == "cuda-sm90+avx512 wire=f16 kv=f16 unit=512 tile=32 fixed=own splits=96 chunk=256");
  options.kv.dtype = config::number_type::q8;
  CHECK(numerics_of(options, host, host) == "avx512 wire=f16 kv=q8 chunk=256");
}

TEST_CASE("the type of the KV cache says how many slots its bytes hold") {
  using config::number_type;
  model::model_spec spec;
  spec.layers = 2, spec.heads = 8, spec.kv_heads = 4, spec.head_dim = 128;
  config::settings options;
  options.kv.bytes = 1 << 20;
  for (auto [type, bytes] : {std::pair{number_type::f32, 8192u},
                             {number_type::f16, 4096u},
                             {number_type::bf16, 4096u},
                             {number_type::q8, 2304u},
                             {number_type::q4, 1280u}}) {
    options.kv.dtype = type;
    options.pools.attention.members = 1;
    CHECK(token_bytes(options, spec)
          == bytes); // 2 layers of 4 heads of K and V of 144 bytes in q8, 80 in q4
    CHECK(layout_of(options, spec, 0).largest() == (1 << 20) / bytes);
    options.pools.attention.members = 4;
    CHECK(slot_bytes(options, spec) == bytes / 4);
  }
}

} // namespace lamella::actors
