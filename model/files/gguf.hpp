/// GGUF v2 and v3 files.
///
/// A GGUF file is a header (counts), a table of typed keys and values, a table of tensors (name,
/// dimensions, type, offset), and the tensors' bytes, aligned. The file may come from anywhere, so
/// every count is bounded before anything is allocated for it and every sum is checked.
#pragma once

#include "model/files/checkpoint.hpp"
#include "model/files/gguf_limit.hpp"

#include <cstdint>
#include <filesystem>
#include <memory>

namespace lamella::model {

/// Maps and validates the file at `path`, with all rules above. A tensor of rank 3 or 4 appears
/// with its outer dimensions multiplied into `rows`. Tensor types are those of tensor_type; another
/// type is an error that names the tensor, the type and the types that are read. A file without
/// tensors (vocabulary only) is fine; one part of a split model is refused. Cost: O(header bytes +
/// tensors * log tensors); the tensors' bytes are not touched.
std::unique_ptr<checkpoint> open_gguf(const std::filesystem::path& path);

} // namespace lamella::model
