// tests/recovery_matrix.md says which test covers which cell of the component x failure matrix
// (reliability A2). It must name tests that exist, by the names that CTest lists.
#include "tests/house/sources.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace fs = std::filesystem;
using lamella::house::root;
using lamella::house::text_of;

namespace {

/// What lies between the quote at `from` and the next one.
std::string piece_at(const std::string& code, size_t from) {
  return code.substr(from + 1, code.find('"', from + 1) - from - 1);
}

/// The literal that begins with the quote at `from`; pieces that follow each other are one.
std::string literal_at(const std::string& code, size_t from) {
  std::string text;
  for (size_t at = from; at < code.size() && code[at] == '"';) {
    const auto piece = piece_at(code, at);
    text += piece;
    at = code.find_first_not_of(" \n", at + piece.size() + 2);
  }
  return text;
}

/// The tests of a doctest program, with the prefix that CTest gives them.
void add_cases(const fs::path& file, std::set<std::string>& names) {
  const auto code = text_of(file);
  const std::string word = std::string{"TEST_"} + "CASE";
  for (size_t at = code.find(word); at != std::string::npos; at = code.find(word, at + 1)) {
    const auto quote = code.find('"', at);
    const auto end = code.find('{', at);
    if (quote == std::string::npos || quote > end) continue;
    // the top folder below tests/
    names.insert(fs::relative(file, root / "tests").begin()->string() + ": "
                 + literal_at(code, quote));
  }
}

/// Those that CMake adds by name.
void add_scripts(const fs::path& file, std::set<std::string>& names) {
  const auto code = text_of(file);
  const std::string call = "lamella_process_test(\"";
  for (size_t at = code.find(call); at != std::string::npos; at = code.find(call, at + 1))
    names.insert(piece_at(code, at + call.size() - 1));
}

std::set<std::string> all_tests() {
  std::set<std::string> names;
  for (const auto& entry : fs::recursive_directory_iterator(root / "tests"))
    if (entry.path().string().ends_with("_test.cpp")) add_cases(entry.path(), names);
  add_scripts(root / "tests" / "CMakeLists.txt", names);
  return names;
}

/// Texts in back quotes.
std::vector<std::string> quoted_in(const std::string& line) {
  std::vector<std::string> found;
  for (size_t at = line.find('`'); at != std::string::npos;) {
    const auto end = line.find('`', at + 1);
    if (end == std::string::npos) break;
    found.push_back(line.substr(at + 1, end - at - 1));
    at = line.find('`', end + 1);
  }
  return found;
}

} // namespace

TEST_CASE("every test that the recovery matrix names exists") {
  const auto known = all_tests();
  REQUIRE(known.size() > 100);
  REQUIRE(known.contains("house: every test that the recovery matrix names exists"));
  std::ifstream in{root / "tests" / "recovery_matrix.md"};
  REQUIRE(in.good());
  std::map<std::string, size_t> cells; // by component
  std::string component;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("## ")) component = line.substr(3);
    if (!line.starts_with("| ") || line.starts_with("| failure")) continue;
    const auto names = quoted_in(line.substr(line.rfind('|', line.size() - 2)));
    INFO(component << ": " << line);
    CHECK_FALSE(names.empty());
    for (const auto& name : names) {
      INFO(name);
      CHECK(known.contains(name));
    }
    ++cells[component];
  }
  for (const char* row : {"Gateway", "Request actor", "Batch actor", "Model replica",
                          "Attention worker", "KV allocator", "Prefill worker", "GPU executor",
                          "Membership and supervisor", "Control link", "Data link"}) {
    CAPTURE(row);
    CHECK(cells[row] >= 4);
  }
  CHECK(cells.size() == 11);
}

TEST_CASE("A2 clock jump: the wall clock dates answers and reports, nothing else") {
  // A deadline on it would pass early or late when an operator sets the clock.
  constexpr const char* ways[] = {"system_clock::now", "gettimeofday", "CLOCK_REALTIME",
                                  "time(nullptr"};
  std::vector<std::string> readers;
  for (const char* folder : {"base", "model", "scheduler", "config", "gpu", "net", "actors", "cli"})
    for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
      const auto extension = entry.path().extension();
      if (extension != ".cpp" && extension != ".hpp" && extension != ".cu") continue;
      const auto code = text_of(entry.path());
      if (std::ranges::any_of(ways,
                              [&](const char* x) { return code.find(x) != std::string::npos; }))
        readers.push_back(fs::relative(entry.path(), root).generic_string());
    }
  std::sort(readers.begin(), readers.end());
  const std::vector<std::string> dated{"base/environment.cpp", "cli/bench/bench_report_json.cpp",
                                       "net/http/http_session_write.cpp",
                                       "net/http/tls_identity.cpp"};
  CHECK(readers == dated);
}
