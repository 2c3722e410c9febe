#include "gpu/kernels/lanes_portable.hpp"
#include "gpu/kernels/philox.hpp"
#include "gpu/kernels/scalar_math.hpp"
#include "gpu/kernels/sets.hpp"
#include "gpu/kernels/truncation.hpp"
#include "gpu/kernels/vector_math.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <limits>

namespace lamella::gpu {

namespace {

constexpr float minus_infinity = -std::numeric_limits<float>::infinity();

/// Tokens more than this below the best one (after temperature) are never drawn: together they
/// weigh less than 2^-40 of the best, whatever the vocabulary.
constexpr float weightless = -40;

/// Room of one thread.
struct workspace {
  float* edited;    ///< [vocabulary]
  float* weights;   ///< [vocabulary]
  uint32_t* tokens; ///< [vocabulary]
};

struct scan_result {
  float highest = minus_infinity;
  bool finite = true;
};

/// One pass in 16 independent lanes, which the compiler turns into vector maxima.
scan_result scan(const float* x, uint32_t n) {
  constexpr uint32_t lanes = 16;
  float best[lanes], bad[lanes];
  std::fill_n(best, lanes, minus_infinity);
  std::fill_n(bad, lanes, 0.0f);
  uint32_t i = 0;
  for (; i + lanes <= n; i += lanes)
    for (uint32_t j = 0; j < lanes; ++j) {
      float v = x[i + j];
      best[j] = v > best[j] ? v : best[j];
      bad[j] += v * 0.0f; // NaN for NaN and for both infinities
    }
  for (; i < n; ++i) {
    best[0] = x[i] > best[0] ? x[i] : best[0];
    bad[0] += x[i] * 0.0f;
  }
  scan_result result;
  for (uint32_t j = 0; j < lanes; ++j) {
    result.highest = best[j] > result.highest ? best[j] : result.highest;
    result.finite = result.finite && bad[j] == 0.0f;
  }
  return result;
}

uint32_t first_equal(const float* x, uint32_t n, float value) {
  return static_cast<uint32_t>(std::find(x, x + n, value) - x);
}

/// log(sum(exp(x))), given the highest x.
double log_sum_exp(const float* x, uint32_t n, double highest) {
  double sums[4] = {0, 0, 0, 0};
  uint32_t i = 0;
  for (; i + 4 <= n; i += 4)
    for (uint32_t j = 0; j < 4; ++j) sums[j] += exp_double(x[i + j] - highest);
  for (; i < n; ++i) sums[0] += exp_double(x[i] - highest);
  return highest + log_double((sums[0] + sums[1]) + (sums[2] + sums[3]));
}

/// The `count` highest logits of a row, highest first, by insertion: count is small.
void top_logprobs(const float* x, uint32_t n, uint32_t count, double normaliser,
                  std::vector<token_logprob>& out) {
  out.clear();
  count = std::min(count, n);
  if (count == 0) return;
  out.reserve(count + 1);
  for (uint32_t i = 0; i < n; ++i) {
    if (out.size() == count && x[i] <= out.back().logprob) continue;
    auto at = std::upper_bound(out.begin(), out.end(), x[i],
                               [](float v, const token_logprob& t) { return v > t.logprob; });
    out.insert(at, {i, x[i]});
    if (out.size() > count) out.pop_back();
  }
  for (auto& t : out) t.logprob = static_cast<float>(t.logprob - normaliser);
}

/// What may not be drawn has no weight.
void apply_mask(const uint32_t* mask, uint32_t n, float* x) {
  for (uint32_t w = 0; w < mask_words(n); ++w) {
    const auto end = std::min(32 * (w + 1), n);
    for (auto forbidden = ~mask[w]; forbidden != 0; forbidden &= forbidden - 1)
      if (const auto i = 32 * w + static_cast<uint32_t>(std::countr_zero(forbidden)); i < end)
        x[i] = minus_infinity;
  }
}

/// weights = e^((x - highest) * scale), exactly 1 for the highest and 0 below `weightless`.
void fill_weights(const float* x, uint32_t n, float highest, float scale, float* weights) {
  auto sixteen = [&](lanes::vec v) {
    auto score = lanes::mul(lanes::sub(v, lanes::set(highest)), lanes::set(scale));
    return lanes::zero_below(exp_lanes(score), score, weightless);
  };
  uint32_t i = 0;
  for (; i + 16 <= n; i += 16) lanes::store(weights + i, sixteen(lanes::load(x + i)));
  if (i < n) lanes::store_first(weights + i, sixteen(lanes::load_first(x + i, n - i)), n - i);
}

constexpr uint32_t block_tokens = 64;

/// Sum of up to 64 weights in eight lanes, always in the same order.
double block_sum(const float* weights, uint32_t count) {
  double lanes[8] = {};
  for (uint32_t i = 0; i + 8 <= count; i += 8)
    for (uint32_t j = 0; j < 8; ++j) lanes[j] += weights[i + j];
  for (uint32_t i = count / 8 * 8; i < count; ++i) lanes[0] += weights[i];
  return ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3]))
         + ((lanes[4] + lanes[5]) + (lanes[6] + lanes[7]));
}

/// Draws from a whole vocabulary by weight: first the block, then the token in it.
uint32_t draw_from_all(const float* weights, uint32_t n, double uniform) {
  double total = 0;
  for (uint32_t at = 0; at < n; at += block_tokens)
    total += block_sum(weights + at, std::min(block_tokens, n - at));
  double target = uniform * total;
  uint32_t last = 0;
  for (uint32_t at = 0; at < n; at += block_tokens) {
    auto count = std::min(block_tokens, n - at);
    auto sum = block_sum(weights + at, count);
    if (target >= sum) {
      target -= sum;
      if (sum > 0) last = at;
      continue;
    }
    last = at;
    for (uint32_t i = at; i < at + count; ++i) {
      target -= weights[i];
      if (target < 0) return i;
    }
    break; // the block's sum was rounded up: its last token is meant
  }
  auto end = std::min(last + block_tokens, n);
  while (end - 1 > last && weights[end - 1] == 0) --end;
  return end - 1;
}

/// Draws from some tokens, in their order.
uint32_t draw_from(const float* weights, const uint32_t* tokens, size_t count, double uniform) {
  double total = 0;
  for (size_t i = 0; i < count; ++i) total += weights[tokens[i]];
  double target = uniform * total;
  for (size_t i = 0; i + 1 < count; ++i) {
    target -= weights[tokens[i]];
    if (target < 0) return tokens[i];
  }
  return tokens[count - 1];
}

/// Truncates and draws; x are logits after edits.
uint32_t draw(const sample_record& how, const float* x, uint32_t n, float highest,
              const workspace& room) {
  float scale = std::min(1.0f / how.temperature, 1e30f);
  fill_weights(x, n, highest, scale, room.weights);
  auto uniform = philox_uniform(how.seed, how.choice, how.draw);
  // The best token's weight is exactly 1: what min_p leaves does not depend on what came before it.
  float least = std::min(how.min_p, 1.0f);
  bool by_count = how.top_k != 0 && how.top_k < n, by_share = how.top_p < 1;
  if (!by_count && !by_share) {
    if (least > 0)
      for (uint32_t i = 0; i < n; ++i)
        room.weights[i] = room.weights[i] < least ? 0.0f : room.weights[i];
    return draw_from_all(room.weights, n, uniform);
  }
  truncation choose{x, room.weights, n};
  size_t kept;
  if (by_count) {
    kept = choose.highest(how.top_k, room.tokens);
    if (by_share) {
      std::sort(room.tokens, room.tokens + kept,
                [&](uint32_t a, uint32_t b) { return choose.before(a, b); });
      double total = 0, share = 0;
      for (size_t i = 0; i < kept; ++i) total += room.weights[room.tokens[i]];
      size_t enough = 0;
      do share += room.weights[room.tokens[enough++]];
      while (enough < kept && share < how.top_p * total);
      kept = enough;
    }
  } else {
    kept = choose.heaviest(how.top_p, room.tokens);
  }
  auto* end = std::remove_if(room.tokens, room.tokens + kept,
                             [&](uint32_t token) { return room.weights[token] < least; });
  return draw_from(room.weights, room.tokens, static_cast<size_t>(end - room.tokens), uniform);
}

/// The logarithm of a token's probability, and those of the best.
void report(const sample_record& how, const float* row, uint32_t n, float highest,
            sampled_token& out) {
  if (how.logprobs == 0) return;
  const auto normaliser = log_sum_exp(row, n, highest);
  out.logprob = static_cast<float>(row[out.token] - normaliser);
  top_logprobs(row, n, how.logprobs - 1, normaliser, out.top);
}

void sample_row(const sample_args& args, const sample_record& how, const workspace& room,
                sampled_token& out) {
  const float* row = args.logits + size_t{how.row} * args.vocabulary;
  auto n = args.vocabulary;
  out.token = 0;
  out.logprob = 0;
  out.rank = 0;
  out.top.clear();
  auto raw = scan(row, n);
  out.finite = raw.finite && n != 0;
  if (!out.finite) return;
  if (how.given != no_token) {
    const auto above = std::count_if(row, row + n, [&](float x) { return x > row[how.given]; });
    out.token = how.given;
    out.rank = static_cast<uint32_t>(above) + 1;
    return report(how, row, n, raw.highest, out);
  }

  const float* x = row;
  float highest = raw.highest;
  if (how.edit_count != 0 || how.mask != no_mask) {
    std::copy_n(row, n, room.edited);
    if (how.mask != no_mask)
      apply_mask(args.masks.data() + size_t{how.mask} * mask_words(n), n, room.edited);
    for (const auto& edit : args.edits.subspan(how.first_edit, how.edit_count)) {
      auto& l = room.edited[edit.token];
      l = (l > 0 ? l / edit.scale : l * edit.scale) + edit.add;
    }
    x = room.edited;
    highest = scan(x, n).highest;
    if (!std::isfinite(highest)) { // every token forbidden, or an edit overflowed
      out.finite = false;
      return;
    }
  }

  if (!(how.temperature > 0)) {
    out.token = first_equal(x, n, highest);
  } else {
    out.token = draw(how, x, n, highest, room);
  }
  report(how, row, n, raw.highest, out);
}

} // namespace

void sample_rows(const sample_args& args, kernel_context context) {
  arena::scope scope{context.scratch};
  auto threads = std::min<size_t>(context.workers.size(), args.records.size());
  size_t n = args.vocabulary;
  auto* edited = context.scratch.allocate<float>(threads * n);
  auto* weights = context.scratch.allocate<float>(threads * n);
  auto* tokens = context.scratch.allocate<uint32_t>(threads * n);
  std::atomic<size_t> next{0};
  context.workers.for_each(threads, [&](size_t thread) {
    workspace room{edited + thread * n, weights + thread * n, tokens + thread * n};
    for (size_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < args.records.size();)
      sample_row(args, args.records[i], room, args.out[i]);
  });
  for (size_t i = 0; i < args.seats.size(); ++i)
    if (args.records[i].given == no_token) args.last_sampled[args.seats[i]] = args.out[i].token;
}

} // namespace lamella::gpu
