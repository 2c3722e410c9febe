/// The files of the project, as tests that read them see them.
#pragma once

#include "tests/folders.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace lamella::house {

namespace fs = std::filesystem;

inline const fs::path root{lamella::tests::source_folder};

/// All of a file; the test ends where there is none.
inline std::string text_of(const fs::path& file) {
  std::ifstream in{file};
  REQUIRE_MESSAGE(in.good(), file);
  return {std::istreambuf_iterator<char>{in}, {}};
}

} // namespace lamella::house
