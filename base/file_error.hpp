/// The one error of everything that reads model files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

namespace lamella {

/// A model file that cannot be used: which file, where in it, which field, and what is wrong.
/// what() reads `FILE: FIELD (at byte OFFSET): PROBLEM`.
class file_error : public std::runtime_error {
public:
  file_error(std::filesystem::path file, std::optional<uint64_t> offset, std::string field,
             const std::string& problem)
      : std::runtime_error(compose(file, offset, field, problem)), file_(std::move(file)),
        offset_(offset), field_(std::move(field)) {}

  const std::filesystem::path& file() const { return file_; }
  /// Byte in the file, where the trouble has a place in it.
  std::optional<uint64_t> offset() const { return offset_; }
  /// The header field, key or tensor concerned, in the words of the format.
  const std::string& field() const { return field_; }

private:
  static std::string compose(const std::filesystem::path& file, std::optional<uint64_t> offset,
                             const std::string& field, const std::string& problem) {
    std::string text = file.string() + ": " + field;
    if (offset) text += " (at byte " + std::to_string(*offset) + ")";
    return text + ": " + problem;
  }

  std::filesystem::path file_;
  std::optional<uint64_t> offset_;
  std::string field_;
};

} // namespace lamella
