#include "model/program/architectures.hpp"

#include <array>

namespace lamella::model {

namespace {
const auto& all() {
  static const std::array list{&llama_architecture(),   &qwen2_architecture(),
                               &qwen3_architecture(),   &smollm3_architecture(),
                               &granite_architecture(), &olmo2_architecture(),
                               &phi3_architecture()};
  return list;
}
} // namespace

const architecture* find_architecture(std::string_view name) {
  for (const auto* x : all())
    if (x->name == name) return x;
  return nullptr;
}

std::string architecture_names() {
  std::string names;
  for (const auto* x : all()) names += (names.empty() ? "" : ", ") + std::string{x->name};
  return names;
}

} // namespace lamella::model
