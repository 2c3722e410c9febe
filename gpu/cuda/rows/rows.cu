#include "gpu/cuda/numbers/device_math.cuh"
#include "gpu/cuda/rows/copies.cuh"
#include "gpu/cuda/rows/rows.hpp"
#include "gpu/cuda/stream/launch.cuh"
#include "gpu/kernels/scalar_math.hpp"

#include <algorithm>

namespace lamella::gpu::cuda {

namespace {

constexpr uint32_t threads = 256;
constexpr uint32_t sampled_before = ~uint32_t{0}; ///< take_sampled

bool by_fours(size_t width, std::initializer_list<const void*> pointers) {
  return width % 4 == 0 && std::all_of(pointers.begin(), pointers.end(), [](const void* p) {
           return reinterpret_cast<uintptr_t>(p) % 16 == 0;
         });
}

/// Blocks for `count` items, one thread each, with a loop in the kernel for the rest.
uint32_t blocks_for(size_t count) {
  return static_cast<uint32_t>(
      std::clamp<size_t>((count + threads - 1) / threads, 1, size_t{1} << 16));
}

__device__ size_t thread_index() { return size_t{blockIdx.x} * threads + threadIdx.x; }
__device__ size_t thread_count() { return size_t{gridDim.x} * threads; }

// What a kernel does with one element, done with one or four at a time.
__device__ float add_one(float a, float b) { return a + b; }
__device__ float4 add_one(float4 a, float4 b) {
  return {a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w};
}
__device__ float silu_one(float gate, float up) { return gate / (1 + exp_float(-gate)) * up; }
__device__ float4 silu_one(float4 g, float4 u) {
  return {silu_one(g.x, u.x), silu_one(g.y, u.y), silu_one(g.z, u.z), silu_one(g.w, u.w)};
}
__device__ float scale_one(float x, float factor, float weight) { return x * factor * weight; }
__device__ float4 scale_one(float4 x, float f, float4 w) {
  return {scale_one(x.x, f, w.x), scale_one(x.y, f, w.y), scale_one(x.z, f, w.z),
          scale_one(x.w, f, w.w)};
}
__device__ float times(float x, float factor) { return x * factor; }
__device__ float4 times(float4 x, float f) { return {x.x * f, x.y * f, x.z * f, x.w * f}; }
__device__ float square_onto(float x, float sum) { return fmaf(x, x, sum); }
__device__ float square_onto(float4 x, float sum) {
  return fmaf(x.w, x.w, fmaf(x.z, x.z, fmaf(x.y, x.y, fmaf(x.x, x.x, sum))));
}

template <class V> __global__ void narrow_kernel(const V* x, size_t count, dense_copy copy) {
  begin_kernel();
  for (size_t i = thread_index(); i < count; i += thread_count()) copy_one(copy, i, x[i]);
}

template <class T> __global__ void embed_kernel(embed_rows args) {
  begin_kernel();
  const uint32_t m = blockIdx.x, k = args.table.inputs;
  uint32_t token = args.tokens[m];
  if (token == sampled_before) token = args.last_sampled[args.seats[m]];
  float* out = args.out + size_t{m} * k;
  const bool known = token < args.table.outputs;
  const T* row = static_cast<const T*>(args.table.data) + (known ? size_t{token} * k : 0);
  for (uint32_t i = threadIdx.x; i < k; i += threads)
    out[i] = known ? widen(row[i]) : __int_as_float(0x7fc00000);
}

/// The sum over a block of `size` threads, always in the same tree. Every thread gets it.
template <uint32_t size> __device__ float block_sum(float mine) {
  __shared__ float warps[size / 32];
#pragma unroll
  for (int step = 16; step > 0; step /= 2) mine += __shfl_xor_sync(~0u, mine, step);
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = mine;
  __syncthreads();
  float sum = 0;
#pragma unroll
  for (float warp : warps) sum += warp;
  return sum;
}

/// What a norm reads: x, or x + more, which it then leaves in `sum`.
template <class V> struct norm_source {
  const V *x, *more;
  V* sum;

  __device__ V first_reading(size_t i) const {
    if (more == nullptr) return x[i];
    return sum[i] = add_one(x[i], more[i]);
  }
  __device__ V second_reading(size_t i) const { return more == nullptr ? x[i] : sum[i]; }
};

/// One block of `size` threads per row. The first values of a thread stay in registers.
template <uint32_t size, class V>
__global__ void __launch_bounds__(size)
    rms_norm_kernel(norm_source<V> from, const V* weight, float epsilon, uint32_t width,
                    uint32_t count, V* out, dense_copy copy) {
  begin_kernel();
  constexpr uint32_t kept_max = 4;
  const size_t first = size_t{blockIdx.x} * count;
  V kept[kept_max];
  float mine = 0;
#pragma unroll
  for (uint32_t k = 0; k < kept_max; ++k) {
    const uint32_t i = threadIdx.x + k * size;
    if (i >= count) continue;
    kept[k] = from.first_reading(first + i);
    mine = square_onto(kept[k], mine);
  }
  for (uint32_t i = threadIdx.x + kept_max * size; i < count; i += size)
    mine = square_onto(from.first_reading(first + i), mine);
  const float mean = block_sum<size>(mine) / static_cast<float>(width);
  const float factor = 1.0f / sqrtf(mean + epsilon);
  const auto finish = [&](uint32_t i, V x) {
    const V value = scale_one(x, factor, weight[i]);
    if (out != nullptr) out[first + i] = value;
    copy_one(copy, first + i, value);
  };
#pragma unroll
  for (uint32_t k = 0; k < kept_max; ++k) {
    const uint32_t i = threadIdx.x + k * size;
    if (i < count) finish(i, kept[k]);
  }
  for (uint32_t i = threadIdx.x + kept_max * size; i < count; i += size)
    finish(i, from.second_reading(first + i));
}

/// V counts: width and strides are in elements of V.
template <class V>
__global__ void silu_mul_kernel(const V* gate, const V* up, uint32_t rows, uint32_t width,
                                uint32_t in_stride, V* out, dense_copy copy) {
  begin_kernel();
  for (size_t i = thread_index(); i < size_t{rows} * width; i += thread_count()) {
    const size_t in = i / width * in_stride + i % width;
    const V value = silu_one(gate[in], up[in]);
    if (out != nullptr) out[i] = value;
    copy_one(copy, i, value);
  }
}

template <class V> __global__ void add_kernel(const V* a, const V* b, size_t count, V* out) {
  begin_kernel();
  for (size_t i = thread_index(); i < count; i += thread_count()) out[i] = add_one(a[i], b[i]);
}

/// V counts: width is in elements of V.
template <class V>
__global__ void add_bias_kernel(const V* x, const V* bias, uint32_t width, size_t count, V* out) {
  begin_kernel();
  for (size_t i = thread_index(); i < count; i += thread_count())
    out[i] = add_one(x[i], bias[i % width]);
}

template <class V> __global__ void scale_kernel(const V* x, float factor, size_t count, V* out) {
  begin_kernel();
  for (size_t i = thread_index(); i < count; i += thread_count()) out[i] = times(x[i], factor);
}

template <class V>
__global__ void gather_kernel(const V* x, const uint32_t* row_index, uint32_t rows, uint32_t width,
                              V* out) {
  begin_kernel();
  for (size_t i = thread_index(); i < size_t{rows} * width; i += thread_count())
    out[i] = x[size_t{row_index[i / width]} * width + i % width];
}

/// A row's sum and bytes follow from its width alone: other pointers are refused, not served
/// otherwise.
cudaError_t launch_norm(const rms_norm_args& a, const float* x, const float* more, float* sum,
                        dense_copy copy, cudaStream_t stream) {
  if (a.rows == 0) return cudaSuccess;
  const bool fours = a.width % 4 == 0;
  if (fours && !by_fours(a.width, {x, more, sum, a.weight, a.out, copy.out}))
    return cudaErrorMisalignedAddress;
  if (!fours) {
    launch_kernel(rms_norm_kernel<256, float>, a.rows, 256, 0, stream,
                  norm_source<float>{x, more, sum}, a.weight, a.epsilon, a.width, a.width, a.out,
                  copy);
    return cudaGetLastError();
  }
  const norm_source<float4> from{reinterpret_cast<const float4*>(x),
                                 reinterpret_cast<const float4*>(more),
                                 reinterpret_cast<float4*>(sum)};
  const auto* weight = reinterpret_cast<const float4*>(a.weight);
  auto* out = reinterpret_cast<float4*>(a.out);
  if (a.width <= 512) // a head: one warp has it in registers
    launch_kernel(rms_norm_kernel<32, float4>, a.rows, 32, 0, stream, from, weight, a.epsilon,
                  a.width, a.width / 4, out, copy);
  else if (a.width > 2048)
    launch_kernel(rms_norm_kernel<1024, float4>, a.rows, 1024, 0, stream, from, weight, a.epsilon,
                  a.width, a.width / 4, out, copy);
  else
    launch_kernel(rms_norm_kernel<256, float4>, a.rows, 256, 0, stream, from, weight, a.epsilon,
                  a.width, a.width / 4, out, copy);
  return cudaGetLastError();
}

} // namespace

cudaError_t launch_narrow(const float* x, size_t count, dense_type type, void* out,
                          cudaStream_t stream) {
  if (count == 0) return cudaSuccess;
  dense_copy copy{out, type};
  if (by_fours(count, {x, out}))
    launch_kernel(narrow_kernel<float4>, blocks_for(count / 4), threads, 0, stream,
                  reinterpret_cast<const float4*>(x), count / 4, copy);
  else
    launch_kernel(narrow_kernel<float>, blocks_for(count), threads, 0, stream, x, count, copy);
  return cudaGetLastError();
}

cudaError_t launch_embed(const embed_rows& args, cudaStream_t stream) {
  if (args.rows == 0) return cudaSuccess;
  if (args.table.type == dense_type::f16)
    launch_kernel(embed_kernel<__half>, args.rows, threads, 0, stream, args);
  else
    launch_kernel(embed_kernel<__nv_bfloat16>, args.rows, threads, 0, stream, args);
  return cudaGetLastError();
}

cudaError_t launch_rms_norm(const rms_norm_args& a, dense_copy copy, cudaStream_t stream) {
  return launch_norm(a, a.x, nullptr, nullptr, copy, stream);
}

cudaError_t launch_add_rms_norm(const add_args& sum, const rms_norm_args& a, dense_copy copy,
                                cudaStream_t stream) {
  if (a.x != sum.out || a.out == sum.out || a.rows != sum.rows || a.width != sum.width)
    return cudaErrorInvalidValue;
  return launch_norm(a, sum.a, sum.b, sum.out, copy, stream);
}

cudaError_t launch_silu_mul(const silu_mul_rows& a, cudaStream_t stream) {
  const size_t count = size_t{a.rows} * a.width;
  if (count == 0) return cudaSuccess;
  if (a.in_stride % 4 == 0 && by_fours(a.width, {a.gate, a.up, a.out, a.copy.out}))
    launch_kernel(silu_mul_kernel<float4>, blocks_for(count / 4), threads, 0, stream,
                  reinterpret_cast<const float4*>(a.gate), reinterpret_cast<const float4*>(a.up),
                  a.rows, a.width / 4, a.in_stride / 4, reinterpret_cast<float4*>(a.out), a.copy);
  else
    launch_kernel(silu_mul_kernel<float>, blocks_for(count), threads, 0, stream, a.gate, a.up,
                  a.rows, a.width, a.in_stride, a.out, a.copy);
  return cudaGetLastError();
}

cudaError_t launch_add(const add_args& a, cudaStream_t stream) {
  const size_t count = size_t{a.rows} * a.width;
  if (count == 0) return cudaSuccess;
  if (by_fours(count, {a.a, a.b, a.out}))
    launch_kernel(add_kernel<float4>, blocks_for(count / 4), threads, 0, stream,
                  reinterpret_cast<const float4*>(a.a), reinterpret_cast<const float4*>(a.b),
                  count / 4, reinterpret_cast<float4*>(a.out));
  else
    launch_kernel(add_kernel<float>, blocks_for(count), threads, 0, stream, a.a, a.b, count, a.out);
  return cudaGetLastError();
}

cudaError_t launch_add_bias(const add_bias_args& a, cudaStream_t stream) {
  const size_t count = size_t{a.rows} * a.width;
  if (count == 0) return cudaSuccess;
  if (by_fours(a.width, {a.x, a.bias, a.out}))
    launch_kernel(add_bias_kernel<float4>, blocks_for(count / 4), threads, 0, stream,
                  reinterpret_cast<const float4*>(a.x), reinterpret_cast<const float4*>(a.bias),
                  a.width / 4, count / 4, reinterpret_cast<float4*>(a.out));
  else
    launch_kernel(add_bias_kernel<float>, blocks_for(count), threads, 0, stream, a.x, a.bias,
                  a.width, count, a.out);
  return cudaGetLastError();
}

cudaError_t launch_scale(const scale_args& a, cudaStream_t stream) {
  const size_t count = size_t{a.rows} * a.width;
  if (count == 0) return cudaSuccess;
  if (by_fours(count, {a.x, a.out}))
    launch_kernel(scale_kernel<float4>, blocks_for(count / 4), threads, 0, stream,
                  reinterpret_cast<const float4*>(a.x), a.factor, count / 4,
                  reinterpret_cast<float4*>(a.out));
  else
    launch_kernel(scale_kernel<float>, blocks_for(count), threads, 0, stream, a.x, a.factor, count,
                  a.out);
  return cudaGetLastError();
}

cudaError_t launch_gather(const gather_args& a, cudaStream_t stream) {
  const size_t count = size_t{a.rows} * a.width;
  if (count == 0) return cudaSuccess;
  if (by_fours(a.width, {a.x, a.out}))
    launch_kernel(gather_kernel<float4>, blocks_for(count / 4), threads, 0, stream,
                  reinterpret_cast<const float4*>(a.x), a.row_index, a.rows, a.width / 4,
                  reinterpret_cast<float4*>(a.out));
  else
    launch_kernel(gather_kernel<float>, blocks_for(count), threads, 0, stream, a.x, a.row_index,
                  a.rows, a.width, a.out);
  return cudaGetLastError();
}

} // namespace lamella::gpu::cuda
