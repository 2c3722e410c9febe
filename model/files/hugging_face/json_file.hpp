/// JSON files of a model, with errors that name file and field.
#pragma once

#include "base/file_error.hpp"
#include "base/json_reader.hpp"

#include <filesystem>
#include <string>
#include <string_view>

namespace lamella::model::hugging_face {

/// All bytes of a small file, which is let go of at once. Throws file_error if it is no regular
/// file, is empty, or has more than `bytes_max`.
std::string read_text(const std::filesystem::path& path, size_t bytes_max);

/// The words of a json_field_error under the field that they are about, as file_error has it.
file_error at_field(const std::filesystem::path& path, const json_field_error& error);

/// An error whose what() is the field and its problem.
inline json_field_error refuse(const std::string& path, const std::string& problem) {
  return {path, path + " " + problem};
}

/// A JSON text that was read and parsed.
class json_file {
public:
  /// Throws file_error for a file that cannot be read, with its place for what is not JSON or
  /// beyond the limits.
  explicit json_file(const std::filesystem::path& path, const json_limits& limits = {});

  const std::filesystem::path& path() const { return path_; }
  const std::string& text() const { return text_; }
  const json_value& root() const { return root_; }

  /// An error about a field of the file.
  file_error error(const std::string& field, const std::string& problem) const {
    return {path_, {}, field, problem};
  }

  /// What `f` makes of the fields of the file's object; what it throws about one of them is thrown
  /// as file_error.
  template <class F> auto read(F&& f) const {
    try {
      json_object_reader fields{root_};
      return f(fields);
    } catch (const json_field_error& wrong) {
      throw at_field(path_, wrong);
    }
  }

private:
  std::filesystem::path path_;
  std::string text_;
  json_value root_;
};

} // namespace lamella::model::hugging_face
