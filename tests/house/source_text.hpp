/// The files of the project, as tests that read them see them.
#pragma once

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace lamella::house {

namespace fs = std::filesystem;

inline const fs::path root{LAMELLA_SOURCE_DIR};

/// All of a file; the test ends where there is none.
inline std::string text_of(const fs::path& file) {
  std::ifstream in{file};
  REQUIRE_MESSAGE(in.good(), file);
  return {std::istreambuf_iterator<char>{in}, {}};
}

} // namespace lamella::house
