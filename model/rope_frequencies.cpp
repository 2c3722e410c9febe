#include "model/rope_frequencies.hpp"

#include "model/checkpoint.hpp"

#include <cmath>
#include <cstring>

namespace lamella::model {

namespace {

/// LLaMA-3's long-context scaling comes as one divisor per rotated pair.
void apply_frequency_factors(const checkpoint& file, std::vector<double>& frequencies) {
  if (file.find("rope_freqs.weight") == nullptr) return;
  const auto& factors = file.tensor("rope_freqs.weight", 1, frequencies.size());
  for (size_t i = 0; i < frequencies.size(); ++i) {
    float factor = 0;
    if (factors.type != tensor_type::f32)
      throw file_error{file.path(), {}, factors.name, "must be f32"};
    std::memcpy(&factor, factors.data.data() + i * sizeof factor, sizeof factor);
    if (!(factor >= 1e-3f && factor <= 1e6f))
      throw file_error{file.path(), {}, factors.name, "factor out of range 0.001..1000000"};
    frequencies[i] /= factor;
  }
}

} // namespace

std::vector<double> read_rope_frequencies(const checkpoint& file, uint32_t head_dim) {
  const auto rotated = file.u32("rope.dimension_count", 2, head_dim, head_dim);
  if (rotated % 2 != 0)
    throw file_error{file.path(),
                     {},
                     "rope.dimension_count",
                     std::to_string(rotated) + " is odd; pairs of elements are rotated"};
  const double base = file.f32("rope.freq_base", 1.f, 1e12f, 10000.f);
  std::vector<double> frequencies(rotated / 2);
  for (size_t i = 0; i < frequencies.size(); ++i)
    frequencies[i] = std::pow(base, -2.0 * static_cast<double>(i) / rotated);
  const auto scaling = file.text("rope.scaling.type", "none");
  if (scaling == "linear") {
    const double factor = file.f32("rope.scaling.factor", 1e-3f, 1e6f);
    for (auto& f : frequencies) f /= factor;
  } else if (scaling != "none" && scaling != "llama3") {
    throw file_error{file.path(),
                     {},
                     "rope.scaling.type",
                     "'" + scaling + "' is not supported; known are none, linear, llama3"};
  }
  apply_frequency_factors(file, frequencies);
  return frequencies;
}

} // namespace lamella::model
