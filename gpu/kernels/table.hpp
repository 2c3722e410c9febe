/// The table of a vectorised set. Included after `lanes`.
#pragma once

#include "gpu/kernels/attention.hpp"
#include "gpu/kernels/kv_copies.hpp"
#include "gpu/kernels/matmul.hpp"
#include "gpu/kernels/rows.hpp"
#include "gpu/kernels/sets.hpp"

namespace lamella::gpu {
namespace {

constexpr operators make_table(std::string_view name) {
  return {
      .name = name,
      .packed_bytes = panels_packed_bytes,
      .pack = panels_pack,
      .embed = panels_embed,
      .rms_norm = rms_norm,
      .matmul = matmul,
      .rope = rope,
      .silu_mul = silu_mul,
      .add = add,
      .add_bias = add_bias,
      .scale = scale,
      .gather_rows = gather_rows_of,
      .to_wire = to_wire,
      .from_wire = from_wire,
      .parity_to_wire = parity_to_wire,
      .sample = sample_rows,
      .attention_unsupported = attention_unsupported_of,
      .attention_state_floats = attention_state_floats_of,
      .attend_previous = attend_previous,
      .append_kv = append_kv,
      .attend_new = attend_new,
      .gather_kv = gather_kv,
      .scatter_kv = scatter_kv,
      .checksum_kv = checksum_kv_of,
  };
}

} // namespace
} // namespace lamella::gpu
