/// Bounds on what a GGUF file may claim.
#pragma once

#include <cstdint>

namespace lamella::model {

/// Bounds on what a file may claim. A file that claims more is refused with file_error.
namespace gguf_limit {
inline constexpr uint64_t keys = 65'536;
inline constexpr uint64_t tensors = 65'536;
inline constexpr uint64_t key_bytes = 256;
inline constexpr uint64_t string_bytes = 16u << 20;
inline constexpr uint64_t array_elements = 16u << 20;
inline constexpr uint64_t alignment = 64u << 10;
inline constexpr uint64_t tensor_name_bytes = 256;
inline constexpr uint32_t layers = 1024;
inline constexpr uint32_t heads = 1024;
inline constexpr uint32_t embedding = 1u << 17;
inline constexpr uint32_t feed_forward = 1u << 20;
inline constexpr uint32_t context = 1u << 24;
} // namespace gguf_limit

} // namespace lamella::model
