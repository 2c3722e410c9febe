/// From a file to something that can run: checkpoint, program, tokeniser.
#pragma once

#include "model/checkpoint.hpp"
#include "model/program.hpp"
#include "model/tokenizer.hpp"

#include <filesystem>
#include <memory>

namespace lamella::model {

/// A model file that was opened, checked against its architecture, and converted.
struct loaded_model {
  std::unique_ptr<checkpoint> file;
  std::shared_ptr<const model_program> program;
  std::shared_ptr<const tokenizer> text;

  /// The tensor behind a weight, with the shape the program expects; throws file_error otherwise.
  const tensor_view& tensor(const weight_use& weight) const;
};

/// Opens, checks every tensor's shape, and runs the converter: trace, cut, list. Reads no weights.
/// Throws file_error. Cost: milliseconds.
loaded_model load_model(const std::filesystem::path& path);

/// Where `lamella model fetch` keeps the default model.
std::filesystem::path default_model_path();

} // namespace lamella::model
