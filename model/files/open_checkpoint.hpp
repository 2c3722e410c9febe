/// Opens a model on disk, whatever the format of its files.
#pragma once

#include "model/files/checkpoint.hpp"

#include <filesystem>
#include <memory>

namespace lamella::model {

/// Opens the model at `path`: a GGUF file, told by its first bytes, or a directory of Hugging Face.
/// Symbolic links are followed.
/// Throws file_error for what is missing, unreadable, of no known format, or invalid.
std::unique_ptr<checkpoint> open_checkpoint(const std::filesystem::path& path);

} // namespace lamella::model
