#include "gpu/cuda/rows/wire.hpp"

#include "gpu/cuda/numbers/device_math.cuh"
#include "gpu/cuda/numbers/q8.cuh"
#include "gpu/cuda/rows/copies.cuh"
#include "gpu/cuda/stream/kernel_tail.cuh"
#include "gpu/cuda/stream/launch.cuh"
#include "gpu/kernels/scalar_math.hpp"

#include <algorithm>

namespace lamella::gpu::cuda {

namespace {

constexpr uint32_t threads = 128;
constexpr uint32_t blocks_y_max = 65535;

/// One block per row.
__global__ void angles_kernel(angle_rows args) {
  begin_kernel();
  const uint32_t m = blockIdx.x;
  const double position = args.positions[m];
  for (uint32_t i = threadIdx.x; i < args.pairs; i += threads) {
    double s, c;
    sin_cos_double(position * args.frequencies[i], &s, &c);
    args.out[size_t{m} * args.pairs + i] = {static_cast<float>(c * args.magnitude),
                                            static_cast<float>(s * args.magnitude)};
  }
}

/// Rotates `heads` heads of row m, from x to out, and tells each element and where it went.
template <class Then>
__device__ void rotate(const rotation& turn, uint32_t m, const float* x, float* out, uint32_t heads,
                       Then then) {
  const bool halves = turn.pairing == rope_pairing::halves;
  const float2* angles = turn.angles + size_t{m} * turn.pairs;
  for (uint32_t at = threadIdx.x; at < heads * turn.pairs; at += threads) {
    const uint32_t head = at / turn.pairs * turn.dim, i = at % turn.pairs;
    const uint32_t first = head + (halves ? i : 2 * i);
    const uint32_t second = head + (halves ? i + turn.pairs : 2 * i + 1);
    const float a = x[first], b = x[second], cosine = angles[i].x, sine = angles[i].y;
    const float low = a * cosine - b * sine, high = b * cosine + a * sine;
    out[first] = low;
    out[second] = high;
    then(first, low);
    then(second, high);
  }
  const uint32_t rest = turn.dim - 2 * turn.pairs;
  if (rest == 0) return;
  for (uint32_t at = threadIdx.x; at < heads * rest; at += threads) {
    const uint32_t i = at / rest * turn.dim + 2 * turn.pairs + at % rest;
    const float same = x[i];
    out[i] = same;
    then(i, same);
  }
}

constexpr uint32_t heads_per_block = 4;

/// One block per row and some heads.
__global__ void rope_kernel(rope_rows args) {
  begin_kernel();
  const uint32_t m = blockIdx.x, first = blockIdx.y * heads_per_block;
  const size_t at = size_t{m} * args.stride + first * args.turn.dim;
  rotate(args.turn, m, args.x + at, args.out + at, min(heads_per_block, args.heads - first),
         [](uint32_t, float) {});
}

template <class T> __device__ T to_element(float x);
template <> __device__ float to_element(float x) { return x; }
template <> __device__ __half to_element(float x) { return __float2half_rn(x); }
template <> __device__ __nv_bfloat16 to_element(float x) { return __float2bfloat16_rn(x); }
__device__ float from_element(float x) { return x; }
__device__ float from_element(__half x) { return __half2float(x); }
__device__ float from_element(__nv_bfloat16 x) { return __bfloat162float(x); }

/// One block per row of a head, all parts of a frame side by side.
template <class T> __global__ void to_wire_kernel(wire_rows args) {
  begin_kernel();
  const uint32_t m = blockIdx.x;
  uint32_t h = blockIdx.y, part = 0;
  while (h >= args.parts[part].head_count) h -= args.parts[part++].head_count;
  const auto& p = args.parts[part];
  const size_t at = size_t{args.row_index[m]} * p.stride + size_t{p.first_head + h} * p.width;
  T* wire = static_cast<T*>(p.bytes) + (size_t{h} * args.rows + m) * p.width;
  if (p.turn.angles != nullptr)
    rotate(p.turn, m, p.x + at, p.rotated + at, p.width / p.turn.dim,
           [=](uint32_t j, float value) { wire[j] = to_element<T>(value); });
  else
    for (uint32_t j = threadIdx.x; j < p.width; j += threads) wire[j] = to_element<T>(p.x[at + j]);
  end_with(args.tail);
}

template <class T> __global__ void from_wire_kernel(unwire_rows args) {
  begin_kernel();
  const uint32_t m = blockIdx.x;
  for (uint32_t h = blockIdx.y; h < args.head_count; h += gridDim.y) {
    const size_t at =
        size_t{args.row_index[m]} * args.stride + size_t{args.first_head + h} * args.width;
    const T* wire = static_cast<const T*>(args.bytes) + (size_t{h} * args.rows + m) * args.width;
    for (uint32_t j = threadIdx.x; j < args.width; j += threads) {
      const float value = from_element(wire[j]);
      args.x[at + j] = value;
      copy_one(args.copy, at + j, value);
    }
  }
  end_with(args.tail);
}

__device__ uint16_t bits_of(__half x) { return __half_as_ushort(x); }
__device__ uint16_t bits_of(__nv_bfloat16 x) { return __bfloat16_as_ushort(x); }
__device__ uint32_t bits_of(float x) { return __float_as_uint(x); }

/// A block per row of a head. W: on the wire, C: in the caches.
template <class W, class C> __global__ void parity_kernel(parity_rows args) {
  begin_kernel();
  using bits = decltype(bits_of(C{}));
  const uint32_t m = blockIdx.x;
  for (uint32_t h = blockIdx.y; h < args.head_count; h += gridDim.y) {
    const float* x = args.x + size_t{args.row_index[m]} * args.stride + size_t{h} * args.dim;
    auto* out = static_cast<bits*>(args.bytes) + (size_t{h} * args.rows + m) * args.dim;
    for (uint32_t j = threadIdx.x; j < args.dim; j += threads) {
      bits sum = 0;
      for (uint32_t s = 0; s < args.shards; ++s)
        sum ^= bits_of(to_element<C>(
            from_element(to_element<W>(x[size_t{s} * args.head_count * args.dim + j]))));
      out[j] = sum;
    }
  }
}

/// The same of caches of q8: one warp per row of a head, which measures each shard's before it
/// rounds it. A lane goes back to its own bytes alone.
template <class W> __global__ void parity_q8_kernel(parity_rows args) {
  begin_kernel();
  const uint32_t m = blockIdx.x, lane = threadIdx.x;
  const auto scale_at = static_cast<uint32_t>(q8_scale_at(args.dim));
  for (uint32_t h = blockIdx.y; h < args.head_count; h += gridDim.y) {
    const float* x = args.x + size_t{args.row_index[m]} * args.stride + size_t{h} * args.dim;
    auto* out = static_cast<uint8_t*>(args.bytes)
                + (size_t{h} * args.rows + m) * (scale_at + sizeof(float));
    uint32_t scales = 0;
    for (uint32_t s = 0; s < args.shards; ++s, x += size_t{args.head_count} * args.dim) {
      uint32_t highest = 0;
      for (uint32_t j = lane; j < args.dim; j += 32)
        highest = max(highest, magnitude_bits(from_element(to_element<W>(x[j]))));
      const auto factors = q8_factors_of_warp(highest);
      scales ^= __float_as_uint(factors.scale);
      for (uint32_t j = lane; j < args.dim; j += 32) {
        const auto q = static_cast<uint8_t>(q8_of(from_element(to_element<W>(x[j])), factors));
        out[j] = s == 0 ? q : out[j] ^ q;
      }
    }
    for (uint32_t j = args.dim + lane; j < scale_at; j += 32) out[j] = 0;
    if (lane == 0) *reinterpret_cast<uint32_t*>(out + scale_at) = scales;
  }
}

/// Calls `f` with a number of a type that is not q8.
template <class F> void with_number(half_type type, F f) {
  if (type == half_type::f16)
    f(__half{});
  else if (type == half_type::bf16)
    f(__nv_bfloat16{});
  else
    f(float{});
}

bool can_turn(const rotation& turn) { return turn.dim > 0 && 2 * turn.pairs <= turn.dim; }

} // namespace

cudaError_t launch_angles(const angle_rows& args, cudaStream_t stream) {
  if (args.rows == 0 || args.pairs == 0) return cudaSuccess;
  launch_kernel(angles_kernel, args.rows, threads, 0, stream, args);
  return cudaGetLastError();
}

cudaError_t launch_rope(const rope_rows& args, cudaStream_t stream) {
  if (!can_turn(args.turn)) return cudaErrorInvalidValue;
  if (args.rows == 0 || args.heads == 0) return cudaSuccess;
  const dim3 grid(args.rows, (args.heads + heads_per_block - 1) / heads_per_block);
  launch_kernel(rope_kernel, grid, threads, 0, stream, args);
  return cudaGetLastError();
}

cudaError_t launch_to_wire(const wire_rows& args, cudaStream_t stream) {
  if (args.count > wire_rows::parts_max) return cudaErrorInvalidValue;
  uint32_t heads = 0;
  for (uint32_t i = 0; i < args.count; ++i) {
    const auto& p = args.parts[i];
    if (p.turn.angles != nullptr && (!can_turn(p.turn) || p.width % p.turn.dim != 0))
      return cudaErrorInvalidValue;
    heads += p.head_count;
  }
  if (heads > blocks_y_max) return cudaErrorInvalidConfiguration;
  if (heads == 0 || args.rows == 0) return args.tail.posts() ? cudaErrorInvalidValue : cudaSuccess;
  const dim3 grid(args.rows, heads);
  with_number(args.wire, [&](auto x) {
    launch_kernel(to_wire_kernel<decltype(x)>, grid, threads, 0, stream, args);
  });
  return cudaGetLastError();
}

cudaError_t launch_parity_to_wire(const parity_rows& args, cudaStream_t stream) {
  if (args.rows == 0 || args.head_count == 0 || args.dim == 0) return cudaSuccess;
  const dim3 grid(args.rows, std::min(args.head_count, blocks_y_max));
  with_number(args.wire, [&](auto wire) {
    using W = decltype(wire);
    if (args.cache == half_type::q8) {
      launch_kernel(parity_q8_kernel<W>, grid, 32, 0, stream, args);
      return;
    }
    with_number(args.cache, [&](auto cache) {
      launch_kernel(parity_kernel<W, decltype(cache)>, grid, threads, 0, stream, args);
    });
  });
  return cudaGetLastError();
}

cudaError_t launch_from_wire(const unwire_rows& args, cudaStream_t stream) {
  if (args.head_count == 0 || args.rows == 0 || args.width == 0)
    return args.tail.posts() ? cudaErrorInvalidValue : cudaSuccess;
  const dim3 grid(args.rows, std::min(args.head_count, blocks_y_max));
  with_number(args.wire, [&](auto x) {
    launch_kernel(from_wire_kernel<decltype(x)>, grid, threads, 0, stream, args);
  });
  return cudaGetLastError();
}

} // namespace lamella::gpu::cuda
