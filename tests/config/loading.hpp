/// Configuration files from text, and what is said of them.
#pragma once

#include "config/yaml.hpp"
#include "tests/config/scratch.hpp"

#include <algorithm>
#include <string>

namespace lamella::config::test {

using lamella::tests::scratch_folder;

inline loaded load_text(const scratch_folder& folder, const std::string& text) {
  auto from = folder.nothing();
  from.file = folder.write("lamella.yaml", text);
  return load(from);
}

/// True when some problem's text and hint together contain `part`.
inline bool says(const loaded& got, const std::string& part) {
  return std::ranges::any_of(got.problems, [&](const problem& x) {
    return (x.text() + " | " + x.hint).find(part) != std::string::npos;
  });
}

inline std::string all_of(const loaded& got) {
  std::string text;
  for (const auto& x : got.problems) text += x.text() + " | " + x.hint + "\n";
  return text;
}

} // namespace lamella::config::test
