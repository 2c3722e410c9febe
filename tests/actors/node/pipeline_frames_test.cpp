#include "actors/device/shard_pull.hpp"
#include "actors/machine/sizing.hpp"
#include "actors/node/pipeline.hpp"

#include <doctest/doctest.h>

namespace lamella::actors::test {

namespace {

config::settings cells(uint32_t first, uint32_t second) {
  config::settings x;
  x.kv.dtype = config::number_type::f32;
  for (const auto& [name, members] : {std::pair{"far", first}, std::pair{"near", second}}) {
    auto& cell = x.pools.attention.cells[name];
    cell.members = members;
    cell.parity = true;
  }
  return x;
}

} // namespace

TEST_CASE(
    "L-M26 frames between members hold the pieces of every cell, however many share the heads") {
  model::model_spec spec;
  spec.layers = 2;
  spec.heads = spec.kv_heads = 3;
  for (const uint32_t dim : {8, 16, 64, 128, 192, 1024}) {
    CAPTURE(dim);
    spec.head_dim = dim;
    for (const auto& [first, second] : {std::pair{1u, 3u}, {3u, 1u}, {3u, 3u}, {0u, 1u}}) {
      const auto options = cells(first, second);
      const auto frame = member_frame_bytes(options, spec);
      const auto row = token_bytes(options, spec) / spec.layers;
      for (const auto members : {first, second})
        if (members > 0) CHECK(frame >= pull_frame_bytes(row / members));
    }
  }
}

} // namespace lamella::actors::test
