/// Models as Hugging Face's hub has them: a directory of JSON files and safetensors.
#pragma once

#include "model/files/checkpoint.hpp"

#include <filesystem>
#include <memory>

namespace lamella::model::hugging_face {

/// Opens the model of a directory: config.json, tokenizer.json, model.safetensors or the files that
/// model.safetensors.index.json lists; and, where they are there, generation_config.json (for its
/// ends of answers), tokenizer_config.json and chat_template.jinja. No code is run, and nothing but
/// these files is read. Throws file_error, naming file and field, for what is missing, damaged,
/// beyond the bounds, or not known. Cost: as long as parsing the vocabulary takes; the tensors'
/// bytes are not touched.
std::unique_ptr<checkpoint> open_directory(const std::filesystem::path& path);

} // namespace lamella::model::hugging_face
