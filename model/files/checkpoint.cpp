#include "model/files/checkpoint.hpp"

#include "base/printable.hpp"

#include <algorithm>
#include <array>
#include <fstream>

namespace lamella::model {

namespace {

template <class T> std::string outside(T value, T low, T high) {
  return "is " + std::to_string(value) + ", must be " + std::to_string(low) + " to "
         + std::to_string(high);
}

} // namespace

uint32_t checkpoint::u32(std::string_view key, uint32_t low, uint32_t high,
                         std::optional<uint32_t> fallback) const {
  const auto value = find_u64(key);
  if (!value && fallback) return *fallback;
  if (!value) throw error_at_key(key, "is missing");
  if (*value < low || *value > high) throw error_at_key(key, outside<uint64_t>(*value, low, high));
  return static_cast<uint32_t>(*value);
}

float checkpoint::f32(std::string_view key, float low, float high,
                      std::optional<float> fallback) const {
  const auto value = find_f64(key);
  if (!value && fallback) return *fallback;
  if (!value) throw error_at_key(key, "is missing");
  if (!(*value >= double{low} && *value <= double{high}))
    throw error_at_key(key, outside<double>(*value, low, high));
  return static_cast<float>(*value);
}

std::string checkpoint::text(std::string_view key, std::optional<std::string> fallback) const {
  auto value = find_text(key);
  if (!value && fallback) return *fallback;
  if (!value) throw error_at_key(key, "is missing");
  return *std::move(value);
}

const tensor_view& checkpoint::tensor(std::string_view name, uint64_t rows, uint64_t inner) const {
  const tensor_view* found = find(name);
  if (!found) throw error_at_tensor(name, "is missing");
  if (found->rows != rows || found->inner != inner)
    throw error_at_tensor(name, "has " + std::to_string(found->rows) + " rows of "
                                    + std::to_string(found->inner) + ", must have "
                                    + std::to_string(rows) + " of " + std::to_string(inner));
  return *found;
}

void checkpoint::refuse_others(std::span<const std::string_view> expected) const {
  for (const tensor_view& each : tensors())
    if (!std::binary_search(expected.begin(), expected.end(), std::string_view(each.name)))
      throw error_at_tensor(each.name, "is not part of architecture '" + architecture() + "'");
}

} // namespace lamella::model
