/// Borders and places within one row of logits, found by one block without sorting.
///
/// Two questions are all that a sampler asks. *Border*: elements have keys that order as their
/// logits and a measure (a count, or a weight); what is the largest key such that the elements from
/// it upwards measure at least `need`? Three passes, each a histogram of 11 bits of the key within
/// the bin found before. *Place*: at which id does the running measure, in order of id, first
/// exceed a target? One pass that sums segments of 512 ids, then one look into a segment. Measures
/// are integers, so sums have no order and the same bits come out however the threads run.
#pragma once

#include "gpu/cuda/numbers/device_math.cuh"

#include <cstdint>

namespace lamella::gpu::cuda {

constexpr uint32_t sample_threads = 1024;
constexpr uint32_t warps = sample_threads / 32;
constexpr uint32_t listed_max = 2048;
constexpr uint32_t bins = 2048;
constexpr uint32_t segment = 512; ///< ids per sum: one warp, 16 per lane

struct search_memory {
  uint64_t sums[2][warps];
  union {
    struct {
      uint32_t low[bins], high[bins];
    } histogram;
    uint64_t segments[bins / 4]; ///< of 2^18 ids
  };
  uint64_t listed[listed_max]; ///< bits of the logit above, id below
  uint32_t listed_count;
  uint32_t found_bin;
  uint64_t found_above, found_inside;
};

struct sum_of {
  __device__ uint64_t operator()(uint64_t a, uint64_t b) const { return a + b; }
};
struct max_of {
  __device__ uint64_t operator()(uint64_t a, uint64_t b) const { return a > b ? a : b; }
};

/// What a block of threads knows of one row.
struct row_view {
  const float* x;
  uint32_t vocabulary;
  search_memory* memory;
  uint32_t turn = 0;   ///< which half of memory->sums comes next
  bool listed = false; ///< only the listed elements count
};

template <class F> __device__ inline uint64_t combine_over_warp(uint64_t value, F f) {
#pragma unroll
  for (int step = 16; step > 0; step /= 2) value = f(value, __shfl_xor_sync(~0u, value, step));
  return value;
}

/// Combines values over the block; all threads get the result.
template <class F>
__device__ inline uint64_t combine_over_block(row_view& row, uint64_t value, F f) {
  auto* sums = row.memory->sums[row.turn];
  // A thread can only be one combination ahead of another, so two halves are enough.
  row.turn ^= 1;
  value = combine_over_warp(value, f);
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = value;
  __syncthreads();
  return combine_over_warp(sums[threadIdx.x % 32], f);
}

/// Sum of the values of all threads before this one; `total` gets that of all.
__device__ inline uint64_t sum_before(row_view& row, uint64_t value, uint64_t& total) {
  auto* sums = row.memory->sums[row.turn];
  row.turn ^= 1;
  const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  auto scan = [&](uint64_t running) {
#pragma unroll
    for (uint32_t step = 1; step < 32; step *= 2) {
      const uint64_t other = __shfl_up_sync(~0u, running, step);
      if (lane >= step) running += other;
    }
    return running;
  };
  const uint64_t running = scan(value);
  if (lane == 31) sums[warp] = running;
  __syncthreads();
  const uint64_t ends = scan(sums[lane]);
  total = __shfl_sync(~0u, ends, 31);
  const uint64_t before = __shfl_sync(~0u, ends, warp == 0 ? 0 : warp - 1);
  return running - value + (warp == 0 ? 0 : before);
}

/// A number that orders as the logits do; both zeros are one, NaN is below all.
__device__ inline uint32_t ordered(float x) {
  if (x != x) return 0;
  const uint32_t bits = __float_as_uint(x == 0 ? 0.0f : x);
  return bits >> 31 != 0 ? ~bits : bits | 0x80000000u;
}
__device__ inline float from_ordered(uint32_t key) {
  return __uint_as_float(key >> 31 != 0 ? key & 0x7fffffffu : ~key);
}

/// f(logit, id) for each element of segment `s` that is this lane's: sixteen loads before the first
/// use, 16 bytes each where rows are aligned.
template <class F>
__device__ inline void for_each_in_segment(const row_view& row, uint32_t s, F f) {
  const uint32_t lane = threadIdx.x % 32, first = s * segment;
  const bool fours = row.vocabulary % 4 == 0 && reinterpret_cast<uintptr_t>(row.x) % 16 == 0;
  if (fours && first + segment <= row.vocabulary) {
    float4 v[4];
    const auto* x = reinterpret_cast<const float4*>(row.x + first) + lane;
#pragma unroll
    for (int i = 0; i < 4; ++i) v[i] = x[i * 32];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const uint32_t id = first + (i * 32 + lane) * 4;
      f(v[i].x, id);
      f(v[i].y, id + 1);
      f(v[i].z, id + 2);
      f(v[i].w, id + 3);
    }
  } else {
    for (uint32_t i = first + lane; i < min(first + segment, row.vocabulary); i += 32)
      f(row.x[i], i);
  }
}

__device__ inline uint32_t segments_of(const row_view& row) {
  return (row.vocabulary + segment - 1) / segment;
}

/// f(logit, id) for each element of the row, or for the listed ones.
template <class F> __device__ inline void for_each_element(const row_view& row, F f) {
  if (row.listed) {
    for (uint32_t i = threadIdx.x; i < row.memory->listed_count; i += sample_threads) {
      const uint64_t e = row.memory->listed[i];
      f(__uint_as_float(static_cast<uint32_t>(e >> 32)), static_cast<uint32_t>(e));
    }
  } else {
    for (uint32_t s = threadIdx.x / 32; s < segments_of(row); s += warps)
      for_each_in_segment(row, s, f);
  }
}

/// Lists the elements for which keep(logit, id), if there are at most listed_max.
template <class F> __device__ inline void list_elements(row_view& row, F keep) {
  if (row.listed) return;
  __syncthreads(); // nobody reads an earlier list any more
  if (threadIdx.x == 0) row.memory->listed_count = 0;
  __syncthreads();
  for_each_element(row, [&](float x, uint32_t id) {
    if (!keep(x, id)) return;
    const uint32_t at = atomicAdd(&row.memory->listed_count, 1u);
    if (at < listed_max) row.memory->listed[at] = uint64_t{__float_as_uint(x)} << 32 | id;
  });
  __syncthreads();
  row.listed = row.memory->listed_count <= listed_max;
}

struct border {
  uint32_t key;    ///< the largest from which upwards the measure is at least `need`
  uint64_t above;  ///< measure strictly above it
  uint64_t inside; ///< measure at it
  uint64_t total;  ///< of all
  bool found;      ///< false: all together measure less
};

/// `need_of(total)` says what the elements from the border upwards must measure, at least 1.
template <class Measure, class Need>
__device__ inline border find_border(row_view& row, Measure measure, Need need_of) {
  auto& memory = *row.memory;
  auto& histogram = memory.histogram;
  border result{0, 0, 0, 0, false};
  uint64_t need = 0;
  // 11, 11 and 10 bits of the key from the highest down; `key` has those found so far.
  for (int shift : {21, 10, 0}) {
    const uint32_t width = shift == 0 ? 1024 : bins;
    const int known = shift == 21 ? 32 : shift == 10 ? 21 : 10; ///< bits below the known ones
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < bins; i += sample_threads)
      histogram.low[i] = histogram.high[i] = 0;
    __syncthreads();
    for_each_element(row, [&](float x, uint32_t id) {
      const uint32_t k = ordered(x);
      if (known < 32 && (k ^ result.key) >> known != 0) return;
      const uint64_t m = measure(x, id);
      if (m == 0) return;
      const uint32_t bin = k >> shift & (width - 1);
      const auto low = static_cast<uint32_t>(m);
      // 64-bit sums by two 32-bit ones: whoever sees the low one wrap carries.
      const uint32_t before = atomicAdd(&histogram.low[bin], low);
      const uint32_t high = static_cast<uint32_t>(m >> 32) + (before + low < before ? 1 : 0);
      if (high != 0) atomicAdd(&histogram.high[bin], high);
    });
    __syncthreads();
    // Two bins per thread, the highest first.
    uint64_t mine[2], total;
#pragma unroll
    for (uint32_t i = 0; i < 2; ++i) {
      const uint32_t bin = bins - 1 - (threadIdx.x * 2 + i);
      mine[i] = uint64_t{histogram.high[bin]} << 32 | histogram.low[bin];
    }
    uint64_t above = sum_before(row, mine[0] + mine[1], total) + result.above;
    if (shift == 21) {
      result.total = total;
      need = need_of(total);
      if (total < need || total == 0) return result;
    }
#pragma unroll
    for (uint32_t i = 0; i < 2; ++i) {
      if (above < need && above + mine[i] >= need) {
        memory.found_bin = bins - 1 - (threadIdx.x * 2 + i);
        memory.found_above = above;
        memory.found_inside = mine[i];
      }
      above += mine[i];
    }
    __syncthreads();
    result.key |= memory.found_bin << shift;
    result.above = memory.found_above;
    result.inside = memory.found_inside;
  }
  result.found = true;
  return result;
}

struct place {
  uint32_t id;     ///< the lowest at which the running measure exceeds the target
  uint64_t total;  ///< of all
  uint64_t target; ///< what target_of said
  bool found;      ///< false: the total does not exceed it
};

/// `target_of(total)` says which point of the running measure, in order of id, is meant. `also` is
/// called for every element of the one full pass.
template <class Measure, class Target, class Also>
__device__ inline place find_place(row_view& row, Measure measure, Target target_of, Also also) {
  auto& memory = *row.memory;
  __syncthreads();
  if (threadIdx.x < bins / 4) memory.segments[threadIdx.x] = 0;
  __syncthreads();
  if (row.listed) {
    for_each_element(row, [&](float x, uint32_t id) {
      also(x, id);
      const uint64_t m = measure(x, id);
      if (m != 0)
        atomicAdd(reinterpret_cast<unsigned long long*>(&memory.segments[id / segment]), m);
    });
  } else {
    for (uint32_t s = threadIdx.x / 32; s < segments_of(row); s += warps) {
      uint64_t sum = 0;
      for_each_in_segment(row, s, [&](float x, uint32_t id) {
        also(x, id);
        sum += measure(x, id);
      });
      sum = combine_over_warp(sum, sum_of{});
      if (threadIdx.x % 32 == 0) memory.segments[s] = sum;
    }
  }
  __syncthreads();
  const uint64_t mine = threadIdx.x < bins / 4 ? memory.segments[threadIdx.x] : 0;
  place result{0, 0, 0, false};
  uint64_t before = sum_before(row, mine, result.total);
  result.target = target_of(result.total);
  if (result.target >= result.total) return result;
  if (before <= result.target && result.target < before + mine) {
    memory.found_bin = threadIdx.x;
    memory.found_above = before;
  }
  __syncthreads();
  // The first 512 threads have one id each. Only ids that measure something can be meant, so
  // looking at the row rather than at the list is the same.
  const uint32_t id = memory.found_bin * segment + threadIdx.x;
  const uint64_t start = memory.found_above;
  const bool has = threadIdx.x < segment && id < row.vocabulary;
  const uint64_t one = has ? measure(row.x[id], id) : 0;
  uint64_t all;
  before = sum_before(row, one, all) + start;
  if (one != 0 && before <= result.target && result.target < before + one) memory.found_bin = id;
  __syncthreads();
  result.id = memory.found_bin;
  result.found = true;
  return result;
}

} // namespace lamella::gpu::cuda
