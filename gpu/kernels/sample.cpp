#include "gpu/kernels/philox.hpp"
#include "gpu/kernels/scalar_math.hpp"
#include "gpu/kernels/sets.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>

namespace lamella::gpu {

namespace {

constexpr float minus_infinity = -std::numeric_limits<float>::infinity();

/// Tokens more than this below the best one (after temperature) are never drawn: together they
/// weigh less than 2^-40 of the best, whatever the vocabulary.
constexpr double weightless = -40;

struct candidate {
  double score; ///< (logit - highest) / temperature, <= 0
  uint32_t token;
};

/// The order of every choice: higher first, lower id on ties.
bool before(const candidate& a, const candidate& b) {
  return a.score > b.score || (a.score == b.score && a.token < b.token);
}

/// Room of one thread.
struct workspace {
  float* edited;         ///< [vocabulary]
  candidate* candidates; ///< [vocabulary]
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

/// Truncates the candidates and draws one of them.
uint32_t draw(const sample_record& how, candidate* first, candidate* last) {
  if (how.top_k != 0 && how.top_k < last - first) {
    std::nth_element(first, first + how.top_k, last, before);
    last = first + how.top_k;
    // Which order nth_element leaves is the library's affair; the draw needs one of its own.
    std::sort(first, last, [](const auto& a, const auto& b) { return a.token < b.token; });
  }
  for (auto* c = first; c != last; ++c) c->score = exp_double(c->score);
  double total = 0;
  for (auto* c = first; c != last; ++c) total += c->score;
  if (how.top_p < 1) {
    // Popping a heap sorts just as far as needed. The kept ones gather at the end, lowest first.
    auto after = [](const auto& a, const auto& b) { return before(b, a); };
    std::make_heap(first, last, after);
    auto* heap_end = last;
    double kept = 0;
    do {
      std::pop_heap(first, heap_end, after);
      kept += (--heap_end)->score;
    } while (heap_end != first && kept < how.top_p * total);
    first = heap_end;
    total = kept;
  }
  if (how.min_p > 0) {
    // The best token's weight is e^0 = 1 and it survived everything above.
    double least = how.min_p < 1 ? how.min_p : 1;
    last = std::remove_if(first, last, [&](const auto& c) { return c.score < least; });
    total = 0;
    for (auto* c = first; c != last; ++c) total += c->score;
  }
  double target = philox_uniform(how.seed, how.choice, how.draw) * total;
  for (auto* c = first; c != last - 1; ++c) {
    target -= c->score;
    if (target < 0) return c->token;
  }
  return (last - 1)->token;
}

void sample_row(const sample_args& args, const sample_record& how, const workspace& room,
                sampled_token& out) {
  const float* row = args.logits + size_t{how.row} * args.vocabulary;
  auto n = args.vocabulary;
  out.token = 0;
  out.logprob = 0;
  out.top.clear();
  auto raw = scan(row, n);
  out.finite = raw.finite && n != 0;
  if (!out.finite) return;

  const float* x = row;
  float highest = raw.highest;
  if (how.edit_count != 0) {
    std::copy_n(row, n, room.edited);
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
    double scale = 1.0 / how.temperature;
    auto* last = room.candidates;
    for (uint32_t i = 0; i < n; ++i) {
      double score = (static_cast<double>(x[i]) - highest) * scale;
      *last = {score, i};
      last += score > weightless; // false for -infinity and NaN too
    }
    out.token = draw(how, room.candidates, last);
  }
  if (how.logprobs != 0) {
    auto normaliser = log_sum_exp(row, n, raw.highest);
    out.logprob = static_cast<float>(row[out.token] - normaliser);
    top_logprobs(row, n, how.logprobs - 1, normaliser, out.top);
  }
}

} // namespace

void sample_rows(const sample_args& args, kernel_context context) {
  arena::scope scope{context.scratch};
  auto threads = std::min<size_t>(context.workers.size(), args.records.size());
  // One element of slack: a candidate is written before it is known to count.
  size_t n = size_t{args.vocabulary} + 1;
  auto* edited = context.scratch.allocate<float>(threads * n);
  auto* candidates = context.scratch.allocate<candidate>(threads * n);
  std::atomic<size_t> next{0};
  context.workers.for_each(threads, [&](size_t thread) {
    workspace room{edited + thread * n, candidates + thread * n};
    for (size_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < args.records.size();)
      sample_row(args, args.records[i], room, args.out[i]);
  });
}

} // namespace lamella::gpu
