/// The sources as the tests of the house read them: files, lines, and what they include. The
/// scanner is a few lines by hand; it reads #include lines and nothing else.
#pragma once

#include "tests/folders.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace lamella::house {

inline const std::filesystem::path root{lamella::tests::source_folder};

/// All of a file; the test ends where there is none.
inline std::string text_of(const std::filesystem::path& file) {
  std::ifstream in{file};
  REQUIRE_MESSAGE(in.good(), file);
  return {std::istreambuf_iterator<char>{in}, {}};
}

/// Where the product is.
inline const std::set<std::string> top_folders{"base", "model", "scheduler", "config",
                                               "gpu",  "net",   "actors",    "cli"};

struct include_line {
  std::string path;
  bool quoted; ///< "…" rather than <…>
};

/// The file that a line includes, if it is an #include line: `#`, `include`, and the name, with
/// blanks between them.
inline bool read_include(std::string_view line, include_line& out) {
  const auto skip = [&] {
    const auto at = line.find_first_not_of(" \t");
    line.remove_prefix(at == std::string_view::npos ? line.size() : at);
  };
  skip();
  if (!line.starts_with('#')) return false;
  line.remove_prefix(1);
  skip();
  constexpr std::string_view word = "include";
  if (!line.starts_with(word)) return false;
  line.remove_prefix(word.size());
  skip();
  if (line.empty() || (line[0] != '"' && line[0] != '<')) return false;
  out.quoted = line[0] == '"';
  const auto end = line.find(out.quoted ? '"' : '>', 1);
  if (end == std::string_view::npos) return false;
  out.path = std::string{line.substr(1, end - 1)};
  return true;
}

inline std::vector<std::string> lines_of(const std::filesystem::path& file) {
  std::ifstream in{file};
  REQUIRE_MESSAGE(in.good(), file);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

inline bool is_code(const std::filesystem::path& file) {
  const auto extension = file.extension();
  return extension == ".hpp" || extension == ".cpp" || extension == ".cu" || extension == ".cuh";
}

/// All code of a folder, in a fixed order.
inline std::vector<std::filesystem::path> code_of(const std::string& folder) {
  std::vector<std::filesystem::path> files;
  if (!std::filesystem::exists(root / folder)) return files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root / folder))
    if (entry.is_regular_file() && is_code(entry.path())) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

inline std::string name_of(const std::filesystem::path& file) {
  return std::filesystem::relative(file, root).generic_string();
}

/// Calls `f(file, include)` for every #include line of the folder.
template <class F> size_t for_each_include(const std::string& folder, F f) {
  size_t count = 0;
  for (const auto& file : code_of(folder))
    for (const auto& line : lines_of(file)) {
      include_line found;
      if (!read_include(line, found)) continue;
      ++count;
      INFO(name_of(file) << ": " << line);
      f(file, found);
    }
  return count;
}

} // namespace lamella::house
