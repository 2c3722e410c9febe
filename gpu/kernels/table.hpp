/// The table of a vectorised set. Included after `lanes`.
#pragma once

#include "gpu/kernels/attention.hpp"
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
      .to_wire = to_wire,
      .from_wire = from_wire,
      .sample = sample_rows,
      .attend_previous = attend_previous,
      .append_kv = append_kv,
      .attend_new = attend_new,
  };
}

} // namespace
} // namespace lamella::gpu
