/// Truncation of the tokens to sample from: the highest ones by count or by weight, without sorting
/// a vocabulary.
///
/// Weights fall into buckets by exponent and three bits of mantissa; one pass counts and sums each
/// bucket. The border lies in one of them, and only that one is sorted.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace lamella::gpu {

class truncation {
public:
  /// `logits` decide the order (higher first, lower id on ties); `weights`, in [0, 1], rise with
  /// them.
  truncation(const float* logits, const float* weights, uint32_t vocabulary)
      : logits_{logits}, weights_{weights}, vocabulary_{vocabulary} {}

  /// The `count` highest tokens of positive weight. Returns how many were written to `tokens`.
  size_t highest(size_t count, uint32_t* tokens) const {
    auto buckets = fill();
    size_t above = 0;
    auto border = bucket_count - 1;
    for (; border > 0 && above + buckets[border].tokens < count; --border)
      above += buckets[border].tokens;
    auto split = gather(border, tokens);
    return std::min(count, split.all);
  }

  /// The fewest highest tokens that weigh at least `share` of all together, and at least one.
  size_t heaviest(double share, uint32_t* tokens) const {
    auto buckets = fill();
    double total = 0, above = 0;
    for (const auto& b : buckets) total += b.weight;
    auto border = bucket_count - 1;
    for (; border > 0 && above + buckets[border].weight < share * total; --border)
      above += buckets[border].weight;
    auto split = gather(border, tokens);
    auto kept = split.above;
    do {
      if (kept == split.all) break;
      above += weights_[tokens[kept++]];
    } while (above < share * total);
    return kept;
  }

  bool before(uint32_t a, uint32_t b) const {
    return logits_[a] > logits_[b] || (logits_[a] == logits_[b] && a < b);
  }

private:
  struct bucket {
    double weight = 0;
    size_t tokens = 0;
  };
  static constexpr uint32_t shift = 20; ///< leaves 8 bits of exponent and 3 of mantissa
  static constexpr uint32_t bucket_count = (std::bit_cast<uint32_t>(1.0f) >> shift) + 1;

  static uint32_t bucket_of(float weight) { return std::bit_cast<uint32_t>(weight) >> shift; }

  std::array<bucket, bucket_count> fill() const {
    std::array<bucket, bucket_count> buckets;
    for (uint32_t i = 0; i < vocabulary_; ++i) {
      if (!(weights_[i] > 0)) continue;
      auto& b = buckets[bucket_of(weights_[i])];
      b.weight += weights_[i];
      ++b.tokens;
    }
    return buckets;
  }

  struct gathered {
    size_t above, all;
  };

  /// Tokens above the border bucket in order of id, then those of the border, highest first.
  gathered gather(uint32_t border, uint32_t* tokens) const {
    gathered result{0, 0};
    for (uint32_t i = 0; i < vocabulary_; ++i)
      if (weights_[i] > 0 && bucket_of(weights_[i]) > border) tokens[result.above++] = i;
    result.all = result.above;
    for (uint32_t i = 0; i < vocabulary_; ++i)
      if (weights_[i] > 0 && bucket_of(weights_[i]) == border) tokens[result.all++] = i;
    std::sort(tokens + result.above, tokens + result.all,
              [this](uint32_t a, uint32_t b) { return before(a, b); });
    return result;
  }

  const float* logits_;
  const float* weights_;
  uint32_t vocabulary_;
};

} // namespace lamella::gpu
