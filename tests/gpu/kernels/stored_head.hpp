/// What a cache holds of one head.
#pragma once

#include "tests/gpu/kernels/kernel_support.hpp"

#include <algorithm>
#include <vector>

namespace lamella::gpu::test {

/// One head as append_kv stores it in a cache of that type, from a wire of fp32; K and V alike.
inline std::vector<std::byte> stored_head(const operators& set, half_type type,
                                          const std::vector<float>& x) {
  const auto dim = static_cast<uint32_t>(x.size());
  kv_layer kv{nullptr, type, 1, dim};
  std::vector<std::byte> row(kv.row_bytes(), std::byte{0xff});
  kv.rows = row.data();
  machine one{1};
  const std::vector<attention_span> spans{{0, 1, 0, 0, 1}};
  const std::vector<slot_run> runs{{0, 1}};
  const auto* from = reinterpret_cast<const std::byte*>(x.data());
  set.append_kv({kv, 1, 1, 1, half_type::f32, nullptr, from, from, spans, runs, nullptr, nullptr},
                one.context());
  const auto v = row.begin() + static_cast<std::ptrdiff_t>(kv.head_bytes());
  CHECK(std::equal(row.begin(), v, v));
  row.resize(kv.head_bytes());
  return row;
}

} // namespace lamella::gpu::test
