/// One safetensors file.
///
/// Eight bytes with the length of a header, the header, a JSON object of tensors with their types,
/// shapes and places, and then their bytes, one tensor after the other. The file may come from
/// anywhere, so that everything it claims is checked before anything else is made of it.
#pragma once

#include "base/mapped_file.hpp"
#include "model/tensor.hpp"

#include <cstdint>
#include <filesystem>
#include <vector>

namespace lamella::model::hugging_face {

/// Bounds on what a file may claim. A file that claims more is refused with file_error.
namespace safetensors_limit {
inline constexpr uint64_t header_bytes = 100'000'000;
inline constexpr uint64_t tensors = 65'536;
inline constexpr uint64_t name_bytes = 256;
} // namespace safetensors_limit

/// A mapped and validated file, and its tensors in the order of their bytes.
class safetensors_file {
public:
  /// Throws file_error, naming the tensor and the field, for types other than F32, F16 and BF16,
  /// for tensors that are not of the length that type and shape say, and for data that they do not
  /// cover without gaps or overlaps. A tensor of rank 3 or 4 appears with its outer dimensions
  /// multiplied into `rows`. Cost: O(header bytes + tensors * log tensors).
  explicit safetensors_file(const std::filesystem::path& path);

  const mapped_file& file() const { return file_; }
  const std::vector<tensor_view>& tensors() const { return tensors_; }

private:
  mapped_file file_;
  std::vector<tensor_view> tensors_;
};

} // namespace lamella::model::hugging_face
