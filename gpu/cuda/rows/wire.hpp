/// Rows on their way to and from the wire, on a CUDA device: rotation, rounding, layout, and the
/// posts of their frames. As in rows.hpp: device memory, no allocation, no waiting, all
/// memory-bound.
#pragma once

#include "gpu/cuda/rows/rows.hpp"
#include "gpu/cuda/stream/kernel_tail.hpp"

namespace lamella::gpu::cuda {

/// What rows are turned by: out[m][i] = cosine and sine of position m times frequency i, times the
/// magnitude. Of one iteration: all heads and layers share it.
struct angle_rows {
  const uint32_t* positions; ///< [M]
  const double* frequencies; ///< [pairs], radians per position
  uint32_t rows, pairs;
  float2* out; ///< [M, pairs]
  float magnitude = 1;
};
cudaError_t launch_angles(const angle_rows& args, cudaStream_t stream);

/// How a head is rotated.
struct rotation {
  const float2* angles = nullptr; ///< [M, pairs]; null: not at all
  uint32_t dim = 0, pairs = 0;    ///< 2 * pairs <= D
  rope_pairing pairing = rope_pairing::halves;
};

/// `rope_args` with device memory; `out` may be x. Elements that are not rotated are copied.
struct rope_rows {
  const float* x; ///< [M, heads, D], row stride `stride`
  float* out;     ///< the same layout and stride
  uint32_t rows, heads, stride;
  rotation turn;
};
cudaError_t launch_rope(const rope_rows& args, cudaStream_t stream);

/// One tensor of a frame, as in to_wire_args. With a rotation, rows are rotated first, all heads of
/// all rows in order, and `rotated` gets the fp32 result.
struct wire_part {
  const float* x; ///< [.., stride]
  uint32_t stride, first_head, head_count, width;
  void* bytes; ///< [head_count, M, width] of the wire
  rotation turn{};
  float* rotated = nullptr; ///< like x, may be x
};

/// Some tensors of the same rows, in one launch.
struct wire_rows {
  static constexpr uint32_t parts_max = 3;
  wire_part parts[parts_max];
  uint32_t count = 0;        ///< of parts
  const uint32_t* row_index; ///< [M], rows of x; with a rotation those in order
  uint32_t rows;
  half_type wire;
  kernel_tail tail{};
};
cudaError_t launch_to_wire(const wire_rows& args, cudaStream_t stream);

/// `parity_to_wire_args` with device memory. Not run on a device yet.
struct parity_rows {
  const float* x; ///< [.., stride]
  uint32_t stride, shards, head_count, dim;
  void* bytes;               ///< [head_count, M, head_bytes_of(cache, D)]
  const uint32_t* row_index; ///< [M]
  uint32_t rows;
  half_type wire, cache;
};
cudaError_t launch_parity_to_wire(const parity_rows& args, cudaStream_t stream);

/// from_wire_args, with a copy for the next product in the same places as the fp32 rows.
struct unwire_rows {
  const void* bytes; ///< [head_count, M, width] of the wire
  float* x;          ///< [.., stride]
  uint32_t stride, first_head, head_count, width;
  const uint32_t* row_index; ///< [M]
  uint32_t rows;
  half_type wire;
  dense_copy copy{};
  kernel_tail tail{};
};
cudaError_t launch_from_wire(const unwire_rows& args, cudaStream_t stream);

} // namespace lamella::gpu::cuda
