/// The tensors of a directory, in one file or in several.
#pragma once

#include "model/files/hugging_face/json_file.hpp"
#include "model/files/hugging_face/safetensors.hpp"

#include <filesystem>
#include <memory>
#include <vector>

namespace lamella::model::hugging_face {

/// Opens the files that "model.safetensors.index.json" lists, which must have each of its tensors
/// where it says and no others, or, without such an index, "model.safetensors". Throws file_error,
/// also where there are both and the index does not list that file; for directories with weights in
/// other formats it names these.
std::vector<std::unique_ptr<safetensors_file>> open_weights(const std::filesystem::path& folder);

} // namespace lamella::model::hugging_face
