/// The types of values in GGUF headers.
#pragma once

#include <cstdint>
#include <string_view>

namespace lamella::model {

/// Types of values by their number in the file.
enum class gguf_type : uint32_t {
  u8,
  i8,
  u16,
  i16,
  u32,
  i32,
  f32,
  boolean,
  text,
  array,
  u64,
  i64,
  f64
};

std::string_view to_string(gguf_type type);

} // namespace lamella::model
