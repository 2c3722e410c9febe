/// A model on disk, independent of the format of its files.
#pragma once

#include "base/file_error.hpp"
#include "model/tensor.hpp"
#include "model/tokenizer/tokenizer_source.hpp"

#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lamella::model {

/// An opened and validated model: hyperparameters, tensors, tokeniser, chat template.
///
/// Whatever the format, keys of hyperparameters are those of GGUF without the architecture in
/// front, "block_count", "attention.head_count_kv", "rope.freq_base", and tensors have the names
/// and the meaning that they have there. Everything but the tensors' bytes is copied when the file
/// is opened. The bytes stay in the file's mapping; once the weights are packed call check_intact()
/// and release_pages(), and read no tensor after that.
///
/// Const functions may be called from several threads.
class checkpoint {
public:
  checkpoint() = default;
  checkpoint(const checkpoint&) = delete;
  checkpoint& operator=(const checkpoint&) = delete;
  virtual ~checkpoint() = default;

  /// The file (or the directory) as it was resolved.
  virtual const std::filesystem::path& path() const = 0;
  /// What the file is called, without its ending.
  virtual std::string file_name() const = 0;
  /// Bytes on disk, in all files.
  virtual uint64_t file_bytes() const = 0;
  /// Name of the format, e.g. "GGUF v3".
  virtual std::string format() const = 0;
  /// "llama", "gpt2", …
  virtual const std::string& architecture() const = 0;
  /// Human name of the model; file_name() where the model has none.
  virtual std::string name() const = 0;
  /// Text of the chat template; empty if there is none.
  virtual const std::string& chat_template() const = 0;
  virtual const tokenizer_source& tokenizer() const = 0;

  /// Integer hyperparameter; nothing if it is absent. Throws file_error if it is no integer or does
  /// not fit into 64 bits unsigned.
  virtual std::optional<uint64_t> find_u64(std::string_view key) const = 0;
  /// Number (an integer is taken too); throws file_error if it is not a finite number.
  virtual std::optional<double> find_f64(std::string_view key) const = 0;
  virtual std::optional<bool> find_bool(std::string_view key) const = 0;
  virtual std::optional<std::string> find_text(std::string_view key) const = 0;
  /// Array of integers, e.g. head counts per layer; a single integer is an array of one.
  virtual std::optional<std::vector<uint64_t>> find_u64s(std::string_view key) const = 0;

  /// The value of `key`, which must lie in [low, high]; throws file_error naming the key, the value
  /// and the range. Without `fallback` the key must be there.
  uint32_t u32(std::string_view key, uint32_t low, uint32_t high,
               std::optional<uint32_t> fallback = {}) const;
  /// As u32(), for numbers.
  float f32(std::string_view key, float low, float high, std::optional<float> fallback = {}) const;
  /// The text of `key`; without `fallback` the key must be there.
  std::string text(std::string_view key, std::optional<std::string> fallback = {}) const;

  /// All tensors in the order of the file. Empty in a file that carries a vocabulary only.
  virtual std::span<const tensor_view> tensors() const = 0;
  /// The tensor of this name or nullptr; O(log tensors).
  virtual const tensor_view* find(std::string_view name) const = 0;
  /// The tensor of this name, which must have this shape; throws file_error with the shape found.
  const tensor_view& tensor(std::string_view name, uint64_t rows, uint64_t inner) const;
  /// Throws file_error naming the first tensor that `expected` (sorted by name) does not contain.
  void refuse_others(std::span<const std::string_view> expected) const;

  /// Every key with its value as a short text, in the order of the file, for `model inspect`.
  virtual std::vector<std::pair<std::string, std::string>> describe() const = 0;

  /// 64-bit digest of every byte of all files (byte_digest.hpp), computed by the first call, which
  /// reads all of it: as long as the disk takes, or some 10 GB/s and core where the file is in
  /// memory. Throws file_error as check_intact().
  virtual uint64_t digest() const = 0;

  /// Throws file_error if the file lost bytes under us since it was opened (see mapped_file.hpp).
  virtual void check_intact() const = 0;
  /// Gives the mapping's pages back to the system. Later reads of tensors fetch them again.
  virtual void release_pages() const = 0;

  /// An error about hyperparameter `key`, with its name in the file and its place.
  virtual file_error error_at_key(std::string_view key, const std::string& problem) const = 0;
  /// An error about a tensor, as the file calls it.
  virtual file_error error_at_tensor(std::string_view name, const std::string& problem) const = 0;
};

} // namespace lamella::model
