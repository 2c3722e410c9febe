#include "model/program/rope_rotation.hpp"

#include "model/files/checkpoint.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>

namespace lamella::model {

namespace {

/// One divisor per rotated pair.
void divide_by(const checkpoint& file, const char* name, std::vector<double>& frequencies) {
  const auto& factors = file.tensor(name, 1, frequencies.size());
  if (factors.type != tensor_type::f32)
    throw file_error{file.path(), {}, factors.name, "must be f32"};
  for (size_t i = 0; i < frequencies.size(); ++i) {
    float factor = 0;
    std::memcpy(&factor, factors.data.data() + i * sizeof factor, sizeof factor);
    if (!(factor >= 1e-3f && factor <= 1e6f))
      throw file_error{file.path(), {}, factors.name, "factor out of range 0.001..1000000"};
    frequencies[i] /= factor;
  }
}

/// Longest context of the first training, before it was made longer.
uint32_t original_context(const checkpoint& file) {
  const auto trained = file.u32("context_length", 1, 1u << 27);
  return file.u32("rope.scaling.original_context_length", 1, 1u << 27, trained);
}

/// YaRN: pairs that turn often within the original context go on as they are, those that turn less
/// than once are slowed down by `factor`, and those between by something between. Attention is
/// sharpened by the logarithm of the factor.
void scale_by_yarn(const checkpoint& file, double base, rope_rotation& x) {
  const double factor = file.f32("rope.scaling.factor", 1.f, 1e6f);
  const double fast = file.f32("rope.scaling.yarn_beta_fast", 1e-3f, 1e6f, 32.f);
  const double slow = file.f32("rope.scaling.yarn_beta_slow", 1e-3f, 1e6f, 1.f);
  const double original = original_context(file);
  const auto pairs = static_cast<double>(x.frequencies.size());
  // The pair that turns so many times within the original context.
  const auto pair_of = [&](double turns) {
    return pairs * std::log(original / (turns * 2 * std::numbers::pi)) / std::log(base);
  };
  const double first = std::max(std::floor(pair_of(fast)), 0.0);
  const double last = std::min(std::ceil(pair_of(slow)), 2 * pairs - 1);
  for (size_t i = 0; i < x.frequencies.size(); ++i) {
    const double slowed =
        std::clamp((static_cast<double>(i) - first) / std::max(last - first, 1e-3), 0.0, 1.0);
    x.frequencies[i] *= slowed / factor + (1 - slowed);
  }
  x.magnitude *= static_cast<float>(1 + 0.1 * std::log(factor));
}

} // namespace

rope_rotation read_rope_rotation(const checkpoint& file, uint32_t head_dim,
                                 uint32_t context_tokens) {
  const auto rotated = file.u32("rope.dimension_count", 2, head_dim, head_dim);
  if (rotated % 2 != 0)
    throw file.error_at_key("rope.dimension_count",
                            std::to_string(rotated) + " is odd; pairs of elements are rotated");
  const double base = file.f32("rope.freq_base", 1.f, 1e12f, 10000.f);
  rope_rotation x;
  for (uint32_t i = 0; i < rotated / 2; ++i)
    x.frequencies.push_back(std::pow(base, -2.0 * i / rotated));
  x.magnitude = file.f32("rope.scaling.attn_factor", 1e-3f, 1e3f, 1.f);
  const auto scaling = file.text("rope.scaling.type", "none");
  if (scaling == "linear") {
    const double factor = file.f32("rope.scaling.factor", 1e-3f, 1e6f);
    for (auto& f : x.frequencies) f /= factor;
  } else if (scaling == "yarn") {
    if (base == 1)
      throw file.error_at_key("rope.freq_base", "is 1: no pair is slower than another");
    scale_by_yarn(file, base, x);
  } else if (scaling != "none" && scaling != "llama3" && scaling != "longrope") {
    throw file.error_at_key(
        "rope.scaling.type",
        "'" + scaling + "' is not supported; known are none, linear, yarn, llama3, longrope");
  }
  if (file.find("rope_freqs.weight") != nullptr)
    divide_by(file, "rope_freqs.weight", x.frequencies);
  // Files of this kind may leave the type out.
  if (scaling == "longrope" || file.find("rope_factors_long.weight") != nullptr)
    divide_by(file,
              context_tokens > original_context(file) ? "rope_factors_long.weight"
                                                      : "rope_factors_short.weight",
              x.frequencies);
  return x;
}

} // namespace lamella::model
