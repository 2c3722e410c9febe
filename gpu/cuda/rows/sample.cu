#include "gpu/cuda/rows/sample.hpp"
#include "gpu/cuda/rows/sample_search.cuh"
#include "gpu/cuda/stream/launch.cuh"
#include "gpu/kernels/philox.hpp"
#include "gpu/kernels/scalar_math.hpp"

namespace lamella::gpu::cuda {

namespace {

/// Tokens more than this below the best one (after temperature) weigh nothing in units of 2^-44.
constexpr float weightless = 31;
constexpr int weight_bits = 44;

/// A weight in [0, 1] in units of 2^-44, rounded down; 2^18 of them fit into 64 bits.
__device__ uint64_t units(float weight) {
  const uint32_t bits = __float_as_uint(weight);
  const int exponent = static_cast<int>(bits >> 23) - 127;
  const uint64_t mantissa = (bits & 0x7fffffu) | 0x800000u;
  const int shift = weight_bits - 23 + exponent;
  if (shift >= 0) return mantissa << shift;
  return shift > -24 ? mantissa >> -shift : 0;
}

/// Highest logit and lowest id that has it.
struct best_token {
  float logit;
  uint32_t id;
  bool finite; ///< the whole row is
};

__device__ best_token find_best(row_view& row) {
  uint64_t best = 0;
  bool bad = false;
  for_each_element(row, [&](float x, uint32_t id) {
    bad = bad || !(fabsf(x) <= 3.402823466e+38f);
    if (x == x) best = max_of{}(best, uint64_t{ordered(x)} << 32 | ~id);
  });
  best = combine_over_block(row, best, max_of{});
  const bool any_bad = __syncthreads_or(bad) != 0;
  const uint32_t id = ~static_cast<uint32_t>(best);
  return {id < row.vocabulary ? row.x[id] : -INFINITY, id, !any_bad};
}

/// Copies what the record's mask allows of the row, and applies its edits in their order: each
/// token's by one thread.
__device__ void edit_row(row_view& row, const sample_record& how, const sample_rows& args,
                         float* room) {
  const bool all = how.mask == no_mask;
  const uint32_t* mask = all ? nullptr : args.masks + size_t{how.mask} * mask_words(row.vocabulary);
  for_each_element(row, [&](float x, uint32_t id) {
    room[id] = all || (mask[id / 32] >> id % 32 & 1) != 0 ? x : -INFINITY;
  });
  __syncthreads();
  for (uint32_t i = 0; i < how.edit_count; ++i) {
    const logit_edit edit = args.edits[how.first_edit + i];
    if (edit.token % sample_threads != threadIdx.x || edit.token >= row.vocabulary) continue;
    const float l = room[edit.token];
    room[edit.token] = (l > 0 ? l / edit.scale : l * edit.scale) + edit.add;
  }
  __syncthreads();
  row.x = room;
}

/// The tokens that may be drawn, and how much they weigh.
struct choice {
  float highest, scale;
  uint32_t key = 0, id = ~0u;                ///< kept: above `key`, or at it with an id up to `id`
  float least = 0;                           ///< weight; less is not kept
  uint32_t bucket_from = 0, bucket_to = ~0u; ///< of weights kept

  __device__ float weight(float x) const {
    const float score = __fmul_rn(x - highest, scale);
    return score >= -weightless ? exp_float(score) : 0.0f; // NaN too: forbidden at scale 0
  }
  /// Classes of weights as the CPU's truncation has them: exponent and three bits.
  __device__ static uint32_t bucket(float weight) { return __float_as_uint(weight) >> 20; }
  __device__ bool keeps(float x, uint32_t i) const {
    const uint32_t k = ordered(x);
    return k > key || (k == key && i <= id);
  }
  __device__ uint64_t operator()(float x, uint32_t i) const {
    if (!keeps(x, i)) return 0;
    const float w = weight(x);
    return w >= least && bucket(w) >= bucket_from && bucket(w) < bucket_to ? units(w) : 0;
  }
};

struct nothing_more {
  __device__ void operator()(float, uint32_t) const {}
};

/// The id of the `index`-th token, from 0 and the lowest id, of those that measure something at
/// `key`.
template <class Measure>
__device__ uint32_t id_among_ties(row_view& row, uint32_t key, uint64_t index, Measure measure) {
  auto tie = [&](float x, uint32_t id) {
    return uint64_t{ordered(x) == key && measure(x, id) != 0};
  };
  return find_place(
             row, tie, [=](uint64_t) { return index; }, nothing_more{})
      .id;
}

/// How many of the tokens at a border are needed, each measuring `one`.
__device__ uint64_t needed(const border& at, uint64_t need, uint64_t one) {
  return (need - at.above + one - 1) / one;
}

/// Keeps only as many of the highest tokens as measure at least need_of(total). False: all together
/// measure less. `one(x)` is what a token of logit x measures.
template <class Measure, class Need, class One>
__device__ bool keep_highest(row_view& row, choice& kept, Measure measure, Need need_of, One one) {
  const border at = find_border(row, measure, need_of);
  if (!at.found) return false;
  const uint64_t each = one(from_ordered(at.key));
  const uint64_t enough = needed(at, need_of(at.total), each);
  // Tokens at the border measure the same; the first by id may be enough.
  const uint32_t id =
      enough * each < at.inside ? id_among_ties(row, at.key, enough - 1, measure) : ~0u;
  // An earlier limit at the same logit is the stricter one.
  kept.id = at.key == kept.key ? min(kept.id, id) : id;
  kept.key = at.key;
  return true;
}

/// A point of the running weight: `uniform` of the total.
__device__ uint64_t point_of(double uniform, uint64_t total) {
  return __umul64hi(static_cast<uint64_t>(uniform * 0x1p53) << 11, total);
}

/// The token, from the highest logit downwards and by id among equals, at which the running weight
/// exceeds point_of(total).
template <class Point>
__device__ uint32_t draw_downwards(row_view& row, const choice& kept, Point target_of) {
  auto need_of = [=](uint64_t total) { return target_of(total) + 1; };
  const border at = find_border(row, kept, need_of);
  const uint64_t one = units(kept.weight(from_ordered(at.key)));
  return id_among_ties(row, at.key, needed(at, need_of(at.total), one) - 1, kept);
}

__device__ uint32_t draw(row_view& row, const sample_record& how, float highest) {
  choice kept;
  kept.highest = highest;
  kept.scale = fminf(1.0f / how.temperature, 1e30f);
  const bool by_count = how.top_k != 0 && how.top_k < row.vocabulary, by_share = how.top_p < 1;
  bool bordered = false;
  if (by_count) {
    const uint64_t most = how.top_k;
    bordered = keep_highest(
        row, kept, [](float, uint32_t) { return uint64_t{1}; }, [=](uint64_t) { return most; },
        [](float) { return uint64_t{1}; });
    const choice now = kept;
    list_elements(row, [=](float x, uint32_t id) { return now(x, id) != 0; });
  }
  if (by_share) {
    const double share = fmax(0.0, static_cast<double>(how.top_p));
    const choice now = kept;
    bordered = keep_highest(
        row, kept, now,
        [=](uint64_t total) {
          const auto need = static_cast<uint64_t>(ceil(share * static_cast<double>(total)));
          return min(max(need, uint64_t{1}), total);
        },
        [=](float x) { return units(now.weight(x)); });
  }
  kept.least = fminf(how.min_p, 1.0f);
  const double uniform = philox_uniform(how.seed, how.choice, how.draw);
  auto target_of = [=](uint64_t total) { return point_of(uniform, total); };
  if (by_count && by_share) return draw_downwards(row, kept, target_of);
  if (!bordered) return find_place(row, kept, target_of, nothing_more{}).id;
  // One truncation: tokens of heavier classes than the border's by id, then those of its class from
  // the highest downwards.
  choice heavier = kept, rest = kept;
  rest.bucket_to = heavier.bucket_from = choice::bucket(kept.weight(from_ordered(kept.key))) + 1;
  uint64_t others = 0;
  const place at = find_place(
      row, heavier,
      [&](uint64_t total) {
        others = combine_over_block(row, others, sum_of{});
        return point_of(uniform, total + others);
      },
      [&](float x, uint32_t id) { others += rest(x, id); });
  if (at.found) return at.id;
  return draw_downwards(row, rest, [=](uint64_t) { return at.target - at.total; });
}

/// The `count` highest logits, by one search and then one by one.
__device__ uint32_t top_logprobs(row_view& row, uint32_t count, double normaliser,
                                 token_logprob* out) {
  count = min(min(count, top_logprobs_max), row.vocabulary);
  if (count == 0) return 0;
  const uint64_t most = count;
  const border at = find_border(
      row, [](float, uint32_t) { return uint64_t{1}; }, [=](uint64_t) { return most; });
  list_elements(row, [=](float x, uint32_t) { return ordered(x) >= at.key; });
  uint64_t below = ~uint64_t{0};
  for (uint32_t i = 0; i < count; ++i) {
    uint64_t best = 0;
    for_each_element(row, [&](float x, uint32_t id) {
      const uint64_t e = uint64_t{ordered(x)} << 32 | ~id;
      if (e < below) best = max_of{}(best, e);
    });
    below = combine_over_block(row, best, max_of{});
    const uint32_t id = ~static_cast<uint32_t>(below);
    if (threadIdx.x == 0) out[i] = {id, static_cast<float>(row.x[id] - normaliser)};
  }
  return count;
}

/// 1 + the number of tokens with a higher logit.
__device__ uint32_t rank_of(row_view& row, uint32_t token) {
  const float own = row.x[token];
  uint64_t above = 0;
  for_each_element(row, [&](float x, uint32_t) { above += x > own ? 1 : 0; });
  return static_cast<uint32_t>(combine_over_block(row, above, sum_of{})) + 1;
}

__global__ void __launch_bounds__(sample_threads) sample_kernel(sample_rows args) {
  begin_kernel();
  const sample_record how = args.records[blockIdx.x];
  if (how.row >= args.rows) return;
  row_view row{args.logits + size_t{how.row} * args.vocabulary, args.vocabulary,
               reinterpret_cast<search_memory*>(dynamic_shared())};
  const row_view raw = row;
  const best_token raw_best = find_best(row);
  best_token best = raw_best;
  bool finite = raw_best.finite;
  const bool given = how.given != no_token;
  if (finite && !given && (how.edit_count != 0 || how.mask != no_mask)) {
    edit_row(row, how, args, args.scratch + size_t{blockIdx.x} * args.vocabulary);
    best = find_best(row);
    finite = fabsf(best.logit) <= 3.402823466e+38f; // else all forbidden, or an edit overflowed
  }
  sampled_row& out = args.out[blockIdx.x];
  uint32_t token = 0, top_count = 0, rank = 0;
  float logprob = 0;
  if (finite) {
    if (given) {
      token = how.given;
      rank = rank_of(row, token);
    } else {
      token = how.temperature > 0 ? draw(row, how, best.logit) : best.id;
    }
    if (how.logprobs != 0) {
      const uint32_t turn = row.turn;
      row = raw;
      row.turn = turn;
      const float highest = raw_best.logit;
      uint64_t total = 0;
      for_each_element(row, [&](float x, uint32_t) {
        const float score = x - highest;
        total += score >= -weightless ? units(exp_float(score)) : uint64_t{0};
      });
      total = combine_over_block(row, total, sum_of{});
      const double normaliser = highest + log_double(static_cast<double>(total) * 0x1p-44);
      logprob = static_cast<float>(row.x[token] - normaliser);
      top_count = top_logprobs(row, how.logprobs - 1, normaliser, out.top);
    }
  }
  if (threadIdx.x != 0) return;
  out.token = token;
  out.logprob = logprob;
  out.finite = finite ? 1 : 0;
  out.top_count = top_count;
  out.rank = rank;
  if (args.seats != nullptr && !given) args.last_sampled[args.seats[blockIdx.x]] = token;
}

} // namespace

cudaError_t launch_sample(const sample_rows& args, cudaStream_t stream) {
  if (args.count == 0) return cudaSuccess;
  if (args.vocabulary == 0 || args.vocabulary > vocabulary_max) return cudaErrorInvalidValue;
  launch_kernel(sample_kernel, args.count, sample_threads, sizeof(search_memory), stream, args);
  return cudaGetLastError();
}

} // namespace lamella::gpu::cuda
