#include "model/files/hugging_face/json_file.hpp"

#include "base/mapped_file.hpp"
#include "base/printable.hpp"

#include <utility>

namespace lamella::model::hugging_face {

std::string read_text(const std::filesystem::path& path, size_t bytes_max) {
  const mapped_file file{path};
  const auto bytes = file.bytes();
  if (bytes.size() > bytes_max)
    throw file_error(file.path(), {}, "file",
                     "has " + std::to_string(bytes.size()) + " bytes, at most "
                         + std::to_string(bytes_max) + " are read");
  std::string text{reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  file.check_intact();
  return text;
}

file_error at_field(const std::filesystem::path& path, const json_field_error& error) {
  const std::string_view what = error.what();
  const std::string_view subject = error.path.empty() ? std::string_view{"the body"} : error.path;
  const bool said = what.starts_with(subject) && what.substr(subject.size()).starts_with(' ');
  return {path,
          {},
          error.path.empty() ? "file" : printable(error.path, 256),
          std::string{said ? what.substr(subject.size() + 1) : what}};
}

json_file::json_file(const std::filesystem::path& path, const json_limits& limits)
    : path_(path), text_(read_text(path, limits.text_bytes)) {
  try {
    root_ = parse_json(text_, limits);
  } catch (const json_syntax_error& wrong) {
    throw file_error(path_, wrong.offset, "JSON", printable(wrong.what(), 256));
  }
}

} // namespace lamella::model::hugging_face
