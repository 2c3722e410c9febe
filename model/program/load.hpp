/// From a file to something that can run: checkpoint, program, tokeniser.
#pragma once

#include "model/files/checkpoint.hpp"
#include "model/program/program.hpp"
#include "model/tokenizer/tokenizer.hpp"

#include <filesystem>
#include <memory>

namespace lamella::model {

/// A model file that was opened, checked against its architecture, and converted.
struct loaded_model {
  std::unique_ptr<checkpoint> file;
  std::shared_ptr<const model_program> program;
  std::shared_ptr<const tokenizer> text;

  /// The tensor that a weight is, or is some rows of, with the shape the program expects; throws
  /// file_error otherwise.
  const tensor_view& tensor(const weight_use& weight) const;
};

/// The program of one of `ranks` ranks of a tensor-parallel group (L-M03); all ranks have the same,
/// each with its own share of the weights. Throws std::invalid_argument with both numbers when the
/// model cannot be split so: heads, KV heads, feed-forward width, and the blocks of quantised
/// weights along the sums that are split.
std::shared_ptr<const model_program> rank_program(const loaded_model& model, uint32_t ranks,
                                                  query_order order = query_order::early);

/// Opens, checks every tensor's shape, and runs the converter: trace, cut, list. Reads no weights.
/// Throws file_error. Cost: milliseconds.
loaded_model load_model(const std::filesystem::path& path);

/// The same without a tokeniser: `text` is null. For programs that are given tokens.
loaded_model load_program(const std::filesystem::path& path);

/// Where `lamella model fetch` keeps the default model.
std::filesystem::path default_model_path();

} // namespace lamella::model
