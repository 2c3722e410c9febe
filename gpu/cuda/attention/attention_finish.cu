// What surrounds the two attention kernels: the slot table, the new rows of the cache, and the end
// of every row.
#include "gpu/cuda/attention/attention_launch.cuh"
#include "gpu/cuda/attention/attention_q8.cuh"
#include "gpu/cuda/numbers/q8.cuh"
#include "gpu/cuda/stream/kernel_tail.cuh"

#include <cmath>

namespace lamella::gpu::cuda {

namespace {

constexpr uint32_t threads = 256;
constexpr uint32_t finish_threads = 64; ///< few, so that few long rows use many multiprocessors

/// One warp per run.
__global__ void __launch_bounds__(threads) expand_kernel(plan_view plan) {
  begin_kernel();
  const uint32_t warp = (blockIdx.x * threads + threadIdx.x) / 32, lane = threadIdx.x % 32;
  for (uint32_t i = warp; i < plan.header->runs; i += gridDim.x * threads / 32) {
    const auto run = plan.runs[i];
    for (uint32_t k = lane; k < run.length; k += 32) plan.slots[run.first + k] = run.slot + k;
  }
}

struct append_args {
  plan_view plan;
  std::byte* cache;
  const std::byte *k, *v;
  uint32_t heads, rows, head_bytes;
  const uint32_t* failed;
};

/// Whether the cache is left as it is.
__device__ __forceinline__ bool is_set(const uint32_t* failed) {
  return failed != nullptr && *failed != 0;
}

/// One thread per 16 bytes. What comes is of the cache's type: nothing is rounded.
__global__ void __launch_bounds__(threads) append_kernel(const __grid_constant__ append_args args) {
  begin_kernel();
  const uint32_t pieces = args.head_bytes / 16;
  const uint64_t per_side = uint64_t{args.heads} * args.rows * pieces;
  const uint64_t i = uint64_t{blockIdx.x} * threads + threadIdx.x;
  if (i >= 2 * per_side) return;
  const bool value = i >= per_side;
  const auto within = i - (value ? per_side : 0);
  const auto piece = static_cast<uint32_t>(within % pieces);
  const auto row = static_cast<uint32_t>(within / pieces % args.rows);
  const auto head = static_cast<uint32_t>(within / pieces / args.rows);
  if (is_set(args.failed)) return;
  const size_t slot = args.plan.slots[args.plan.rows[row].own];
  auto* to = args.cache + ((slot * 2 + value) * args.heads + head) * args.head_bytes;
  reinterpret_cast<uint4*>(to)[piece] =
      reinterpret_cast<const uint4*>(value ? args.v : args.k)[within];
}

struct finish_args {
  plan_view plan;
  const std::byte *q, *k, *v; ///< of the math's elements, as all below
  std::byte* out;
  record_view records;
  uint32_t heads, group, rows;
  float scale;
  std::byte* cache; ///< where K and V are appended; null: not here
  const uint32_t* failed;
  kernel_tail tail;
};

/// A lane's share of a vector of D elements: D / 32 neighbours.
template <class math, int D> struct share {
  using element = typename math::element;
  static constexpr int count = D / 32;
  float x[count];

  /// The share's bytes, moved at once.
  using word = std::conditional_t<count == 4, uint2, uint32_t>;

  __device__ void load(const element* from) {
    typename math::pair pairs[count / 2];
    const auto all = reinterpret_cast<const word*>(from)[threadIdx.x % 32];
    memcpy(static_cast<void*>(pairs), &all, sizeof all);
#pragma unroll
    for (int i = 0; i < count / 2; ++i) {
      const auto wide = math::widen(pairs[i]);
      x[2 * i] = wide.x, x[2 * i + 1] = wide.y;
    }
  }
  __device__ void load(const float* from) {
    if constexpr (count == 4) {
      const auto wide = reinterpret_cast<const float4*>(from)[threadIdx.x % 32];
      x[0] = wide.x, x[1] = wide.y, x[2] = wide.z, x[3] = wide.w;
    } else {
      const auto wide = reinterpret_cast<const float2*>(from)[threadIdx.x % 32];
      x[0] = wide.x, x[1] = wide.y;
    }
  }
  /// Copies a vector as it is.
  __device__ static void move(const element* from, element* to) {
    reinterpret_cast<word*>(to)[threadIdx.x % 32] =
        reinterpret_cast<const word*>(from)[threadIdx.x % 32];
  }
  /// Rounds; a negative zero becomes zero, so that hidden positions leave no trace of their signs.
  __device__ void store(element* to) const {
    typename math::pair pairs[count / 2];
#pragma unroll
    for (int i = 0; i < count / 2; ++i)
      pairs[i] = math::narrow(__fadd_rn(x[2 * i], 0.0f), __fadd_rn(x[2 * i + 1], 0.0f));
    word all;
    memcpy(&all, static_cast<const void*>(pairs), sizeof all);
    reinterpret_cast<word*>(to)[threadIdx.x % 32] = all;
  }
};

/// One warp per K, and per V, of a row and head, into a cache of q8.
template <class math, int D>
__global__ void __launch_bounds__(threads)
    append_q8_kernel(const __grid_constant__ append_args args) {
  begin_kernel();
  const uint64_t warp = (uint64_t{blockIdx.x} * threads + threadIdx.x) / 32;
  const uint64_t per_side = uint64_t{args.heads} * args.rows;
  if (warp >= 2 * per_side) return;
  const bool value = warp >= per_side;
  const auto within = warp - (value ? per_side : 0); // head * M + row
  if (is_set(args.failed)) return;
  share<math, D> x;
  x.load(reinterpret_cast<const typename math::element*>(value ? args.v : args.k) + within * D);
  const size_t slot = args.plan.slots[args.plan.rows[within % args.rows].own];
  const q8_share stored{x.x};
  stored.store(args.cache
               + ((slot * 2 + value) * args.heads + within / args.rows) * args.head_bytes);
}

/// What a query saw of its earlier positions: its records folded in ascending order. The factors of
/// 32 records are worked out side by side (a running maximum has no rounding), so that only the
/// sums go one by one; they are loaded some at a time.
template <class math, int D>
__device__ float2 fold_records(const finish_args& args, const attention_work_row& row,
                               uint32_t head, uint32_t g, share<math, D>& sum) {
  constexpr uint32_t at_once = 16;
  const uint32_t lane = threadIdx.x % 32;
  const auto& records = args.records;
  const auto first = records.index(row.record, head, g);
  const size_t step = size_t{args.heads} * args.group;
  float2 ends = records.ends[first];
  sum.load(records.sums + first * D);
  for (uint32_t begin = 1; begin < row.records; begin += 32) {
    const uint32_t count = min(row.records - begin, 32u);
    const float2 later =
        lane < count ? records.ends[first + (begin + lane) * step] : make_float2(-infinity(), 0);
    float highest = later.x;
#pragma unroll
    for (uint32_t apart = 1; apart < 32; apart *= 2) {
      const float lower = __shfl_up_sync(whole_warp, highest, apart);
      if (lane >= apart) highest = fmaxf(highest, lower);
    }
    highest = fmaxf(highest, ends.x);
    const float before = __shfl_up_sync(whole_warp, highest, 1);
    const fold mine{lane == 0 ? ends.x : before, later.x};
    for (uint32_t from = 0; from < count; from += at_once) {
      share<math, D> more[at_once];
#pragma unroll
      for (uint32_t i = 0; i < at_once; ++i)
        more[i].load(records.sums + (first + (begin + min(from + i, count - 1)) * step) * D);
#pragma unroll
      for (uint32_t i = 0; i < at_once; ++i) {
        const float keep = __shfl_sync(whole_warp, mine.keep, from + i);
        const float add = __shfl_sync(whole_warp, mine.add, from + i);
        const float weight = __shfl_sync(whole_warp, later.y, from + i);
        if (from + i >= count) continue;
#pragma unroll
        for (int k = 0; k < sum.count; ++k)
          sum.x[k] = fold::merged(sum.x[k], keep, more[i].x[k], add);
        ends.y = fold::merged(ends.y, keep, weight, add);
      }
    }
    ends.x = __shfl_sync(whole_warp, highest, 31);
  }
  return ends;
}

/// Folds the records of one row and query head, merges its own position (L-M15) and rounds.
template <class math, int D> __device__ void finish_query(const finish_args& args, uint64_t warp) {
  const auto g = static_cast<uint32_t>(warp % args.group);
  const auto at = warp / args.group; // head * M + row
  const auto row = static_cast<uint32_t>(at % args.rows);
  const auto head = static_cast<uint32_t>(at / args.rows);
  using element = typename math::element;
  using part = share<math, D>;
  const auto* k_new = reinterpret_cast<const element*>(args.k) + at * D;
  const auto* v_new = reinterpret_cast<const element*>(args.v) + at * D;
  part q, k, v, sum;
  q.load(reinterpret_cast<const element*>(args.q) + warp * D);
  k.load(k_new);
  v.load(v_new);
  const auto plan = args.plan.rows[row];
  constexpr size_t head_bytes = stored_layout<math, D>::row_bytes;
  const bool append = args.cache != nullptr && g == 0 && !is_set(args.failed);
  auto* k_to =
      append ? args.cache + (size_t{args.plan.slots[plan.own]} * 2 * args.heads + head) * head_bytes
             : nullptr;
  auto* v_to = append ? k_to + args.heads * head_bytes : nullptr;
  if constexpr (math::quantised) {
    const q8_share k_stored{k.x}, v_stored{v.x};
    k_stored.widen(k.x), v_stored.widen(v.x);
    if (append) k_stored.store(k_to), v_stored.store(v_to);
  } else if (append) {
    part::move(k_new, reinterpret_cast<element*>(k_to));
    part::move(v_new, reinterpret_cast<element*>(v_to));
  }
  const float2 ends = fold_records<math, D>(args, plan, head, g, sum);

  float score = 0;
#pragma unroll
  for (int i = 0; i < q.count; ++i) score = __fmaf_rn(q.x[i], k.x[i], score);
#pragma unroll
  for (int apart = 1; apart < 32; apart *= 2)
    score = __fadd_rn(score, __shfl_xor_sync(whole_warp, score, apart));
  const fold merge{ends.x, __fmul_rn(score, args.scale)};
  const float weight = merge(ends.y, 1.0f);
#pragma unroll
  for (int i = 0; i < q.count; ++i) sum.x[i] = __fdiv_rn(merge(sum.x[i], v.x[i]), weight);
  sum.store(reinterpret_cast<element*>(args.out) + warp * D);
}

/// One warp per row and query head.
template <class math, int D>
__global__ void __launch_bounds__(finish_threads)
    finish_kernel(const __grid_constant__ finish_args args) {
  begin_kernel();
  const uint64_t warp = (uint64_t{blockIdx.x} * finish_threads + threadIdx.x) / 32;
  if (warp < uint64_t{args.heads} * args.rows * args.group) finish_query<math, D>(args, warp);
  end_with(args.tail);
}

} // namespace

const char* attention_unsupported(uint32_t kv_heads, uint32_t dim, uint32_t group, half_type cache,
                                  half_type wire) {
  if (cache == half_type::f32 || cache == half_type::q4)
    return "CUDA attention needs a cache of f16, bf16 or q8";
  if (cache == half_type::q8 && wire != half_type::f16 && wire != half_type::bf16)
    return "CUDA attention over a cache of q8 needs a wire of f16 or bf16";
  if (cache != half_type::q8 && wire != cache)
    return "CUDA attention needs a wire of the type of its cache";
  if (dim != 64 && dim != 128) return "CUDA attention needs heads of 64 or 128 elements";
  if (group == 0 || group > 16) return "CUDA attention needs 1 to 16 query heads per kv head";
  if (kv_heads == 0 || kv_heads > 1024) return "CUDA attention needs 1 to 1024 kv heads";
  return nullptr;
}

size_t attention_record_bytes(const attention_capacity& capacity, uint32_t kv_heads, uint32_t group,
                              uint32_t dim) {
  return capacity.records() * kv_heads * group * (size_t{dim} + 2) * sizeof(float);
}

cudaError_t launch_expand_runs(const attention_capacity& capacity, std::byte* plan,
                               cudaStream_t stream) {
  if (capacity.runs == 0) return cudaSuccess;
  auto blocks = std::min<uint64_t>((uint64_t{capacity.runs} * 32 + threads - 1) / threads, 4096);
  return launch_blocks(expand_kernel, blocks, threads, 0, stream, plan_view{capacity, plan});
}

cudaError_t launch_append_kv(const attention_device_args& args, cudaStream_t stream) {
  if (args.capacity.rows == 0) return cudaSuccess;
  append_args device{plan_view{args.capacity, args.plan},
                     args.cache,
                     args.k_new,
                     args.v_new,
                     args.kv_heads,
                     args.capacity.rows,
                     static_cast<uint32_t>(head_bytes_of(args.type, args.dim)),
                     args.failed};
  const auto heads = uint64_t{2} * args.kv_heads * args.capacity.rows; // of K and of V
  if (args.type == half_type::q8 && args.wire != half_type::q8) {
    const auto blocks = (heads * 32 + threads - 1) / threads;
    return with_math(args.type, args.wire, [&](auto math) {
      if constexpr (decltype(math)::quantised) {
        constexpr auto of_64 = append_q8_kernel<decltype(math), 64>;
        constexpr auto of_128 = append_q8_kernel<decltype(math), 128>;
        return launch_blocks(args.dim == 64 ? of_64 : of_128, blocks, threads, 0, stream, device);
      } else {
        return cudaErrorInvalidValue;
      }
    });
  }
  const auto pieces = heads * (device.head_bytes / 16);
  return launch_blocks(append_kernel, (pieces + threads - 1) / threads, threads, 0, stream, device);
}

cudaError_t launch_attend_new(const attention_device_args& args, cudaStream_t stream) {
  return launch_attend_new(args, {}, stream);
}

cudaError_t launch_attend_new(const attention_device_args& args, const attention_end& end,
                              cudaStream_t stream) {
  if (end.append && args.capacity.blocks != 0) return cudaErrorInvalidValue;
  if (args.capacity.rows == 0) return end.tail.posts() ? cudaErrorInvalidValue : cudaSuccess;
  if (auto error = launch_attend_rows(args, stream); error != cudaSuccess) return error;
  finish_args device{plan_view{args.capacity, args.plan},
                     args.q,
                     args.k_new,
                     args.v_new,
                     args.out,
                     record_view{args},
                     args.kv_heads,
                     args.group,
                     args.capacity.rows,
                     args.scale * log2_e,
                     end.append ? args.cache : nullptr,
                     args.failed,
                     end.tail};
  const auto warps = uint64_t{args.kv_heads} * args.capacity.rows * args.group;
  const auto blocks = (warps * 32 + finish_threads - 1) / finish_threads;
  return with_math(args.type, args.wire, [&](auto math) {
    using numbers = decltype(math);
    if (args.dim == 64)
      return launch_blocks(finish_kernel<numbers, 64>, blocks, finish_threads, 0, stream, device);
    if (args.dim == 128)
      return launch_blocks(finish_kernel<numbers, 128>, blocks, finish_threads, 0, stream, device);
    return cudaErrorInvalidValue;
  });
}

} // namespace lamella::gpu::cuda
