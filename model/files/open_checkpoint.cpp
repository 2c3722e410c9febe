#include "model/files/open_checkpoint.hpp"

#include "base/file_error.hpp"
#include "base/printable.hpp"
#include "model/files/gguf.hpp"
#include "model/files/hugging_face/directory.hpp"

#include <array>
#include <fstream>

namespace lamella::model {

namespace {

constexpr const char* known_formats = "GGUF v2 and v3 files (*.gguf) are read, and Hugging Face "
                                      "directories (config.json, *.safetensors, tokenizer.json)";

} // namespace

std::unique_ptr<checkpoint> open_checkpoint(const std::filesystem::path& path) {
  std::error_code failed;
  const auto kind = std::filesystem::status(path, failed);
  if (!std::filesystem::exists(kind)) throw file_error(path, {}, "path", "no such file");
  if (std::filesystem::is_directory(kind)) return hugging_face::open_directory(path);
  if (!std::filesystem::is_regular_file(kind))
    throw file_error(path, {}, "path", "is not a regular file");
  std::array<char, 4> magic{};
  std::ifstream in(path, std::ios::binary);
  if (!in) throw file_error(path, {}, "path", "cannot be opened");
  in.read(magic.data(), magic.size());
  if (std::string_view(magic.data(), static_cast<size_t>(in.gcount())) == "GGUF")
    return open_gguf(path);
  throw file_error(path, 0, "magic",
                   "the file begins with '"
                       + printable({magic.data(), static_cast<size_t>(in.gcount())})
                       + "', an unknown format; " + known_formats);
}

} // namespace lamella::model
