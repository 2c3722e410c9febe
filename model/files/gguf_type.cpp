#include "model/files/gguf_type.hpp"

#include <array>

namespace lamella::model {

std::string_view to_string(gguf_type type) {
  constexpr std::array<std::string_view, 13> names{
      "u8", "i8", "u16", "i16", "u32", "i32", "f32", "bool", "text", "array", "u64", "i64", "f64"};
  return names[static_cast<size_t>(type)];
}

} // namespace lamella::model
