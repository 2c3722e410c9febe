/// A folder of its own for tests that write files.
#pragma once

#include "config/yaml.hpp"

#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace lamella::tests {

class scratch_folder {
public:
  scratch_folder() {
    auto name = (std::filesystem::temp_directory_path() / "lamella-test-XXXXXX").string();
    REQUIRE(mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  ~scratch_folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  scratch_folder(const scratch_folder&) = delete;
  scratch_folder& operator=(const scratch_folder&) = delete;

  const std::filesystem::path& path() const { return path_; }

  /// Writes a file, with the folders above it, and returns its path.
  std::filesystem::path write(const std::string& name, const std::string& text) const {
    const auto file = path_ / name;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream out{file, std::ios::binary};
    out << text;
    REQUIRE(out.good());
    return file;
  }

  /// Inputs that find no file anywhere.
  config::inputs nothing() const {
    config::inputs from;
    from.working_directory = path_ / "empty";
    from.system_directory = path_ / "empty";
    return from;
  }

private:
  std::filesystem::path path_;
};

} // namespace lamella::tests
