// What keeps the house in order: which libraries a folder may use, how long a file may be, which
// words it may not leave behind.
#include "tests/house/sources.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

using namespace lamella::house;
namespace fs = std::filesystem;

namespace {

/// Folders of headers that are not the standard library's or the system's, and who may use them.
/// `sources_only`: not in headers, so that users of the folder compile without them.
struct library {
  std::set<std::string> folders;
  bool sources_only;
};
const std::map<std::string, library> libraries{
    {"boost/graph", {{"model"}, true}},
    {"boost/json", {{"base"}, true}},
    {"unicode", {{"model"}, true}},
    {"sentencepiece", {{"model"}, true}},
    {"yaml-cpp", {{"config"}, true}},
    {"boost/asio", {{"net", "actors"}, false}},
    {"boost/beast", {{"net"}, false}},
    {"boost/pfr", {{"actors"}, false}},
    {"boost/version.hpp", {{"cli"}, true}},
    {"openssl", {{"net", "cli"}, true}},
    {"prometheus", {{"net"}, false}},
    {"protozero", {{"net"}, true}},
    {"infiniband", {{"net"}, false}},
    {"zlib", {{"cli"}, true}},
    {"boost/iostreams", {{"cli"}, true}},
    {"caf", {{"actors", "cli"}, false}},
    {"spdlog", {{"actors", "cli"}, false}},
    {"fmt", {{"actors", "cli"}, false}},
    {"CLI", {{"cli"}, false}},
    {"boost/version.hpp", {{"cli"}, true}},
};

} // namespace

TEST_CASE("the scanner reads include lines and nothing else") {
  include_line x;
  CHECK(read_include("#include \"base/json.hpp\"", x));
  CHECK((x.path == "base/json.hpp" && x.quoted));
  CHECK(read_include("  #\tinclude <caf/all.hpp> // actors", x));
  CHECK((x.path == "caf/all.hpp" && !x.quoted));
  for (const char* no : {"", "// #include \"a/b.hpp\"", "#define include", "#include",
                         "include <a>", "#include MACRO", "#include <unfinished"})
    CHECK_FALSE(read_include(no, x));
}

TEST_CASE("a folder of ours is included by a path from the root, in quotes") {
  for (const auto& folder : top_folders)
    for_each_include(folder, [](const fs::path&, const include_line& x) {
      const auto first = x.path.substr(0, x.path.find('/'));
      if (top_folders.contains(first) && x.path.find('/') != std::string::npos) CHECK(x.quoted);
    });
}

TEST_CASE("outside libraries stay in the folders that may use them") {
  size_t used = 0;
  for (const auto& folder : top_folders) {
    for_each_include(folder, [&](const fs::path& file, const include_line& x) {
      if (x.quoted || x.path.find('/') == std::string::npos) return;
      if (x.path.starts_with("sys/") || x.path.starts_with("netinet/")
          || x.path.starts_with("arpa/") || x.path.starts_with("linux/"))
        return;
      const auto known = std::find_if(libraries.begin(), libraries.end(), [&](const auto& entry) {
        return x.path == entry.first || x.path.starts_with(entry.first + "/");
      });
      REQUIRE_MESSAGE(known != libraries.end(), "a library that the house does not know");
      ++used;
      CHECK(known->second.folders.contains(folder));
      if (known->second.sources_only) CHECK(file.extension() == ".cpp");
    });
  }
  CHECK(used > 10);
}

TEST_CASE("headers of model and scheduler need the standard library alone") {
  for (const char* folder : {"model", "scheduler"})
    for_each_include(folder, [](const fs::path& file, const include_line& x) {
      // Names of the standard library have neither a folder nor an ending.
      if (file.extension() == ".hpp" && !x.quoted)
        CHECK(x.path.find_first_of("/.") == std::string::npos);
    });
}

TEST_CASE("pure folders and actors ask no clock, start no thread and never sleep") {
  // Words put together here so that this file does not hold them.
  const std::string std_name = "std::";
  const std::vector<std::string> words{std_name + "thread", std_name + "jthread",
                                       std_name + "this_" + "thread", "clock::now",
                                       std_name + "regex"};
  for (const char* folder : {"scheduler", "actors"})
    for (const auto& file : code_of(folder))
      for (const auto& line : lines_of(file))
        for (const auto& word : words) {
          // Deadlines of devices are told by the executor and start-up, in the device's own time.
          if (word == "clock::now" && std::string_view{folder} == "actors") continue;
          INFO(name_of(file) << ": " << line);
          CHECK(line.find(word) == std::string::npos);
        }
  for (const auto& folder : top_folders)
    for (const auto& file : code_of(folder))
      for (const auto& line : lines_of(file)) {
        INFO(name_of(file) << ": " << line);
        CHECK(line.find(words.back()) == std::string::npos);
      }
}

// ninja and ccache compare the files that a compiler has read, and none that was absent: an object
// of a machine without the header would be given to one that has it (cmake/optional_headers.cmake).
TEST_CASE("no source asks whether a header is there") {
  const std::string word = std::string{"__has"} + "_include"; // this file does not hold it
  std::vector<std::string> folders{"tests", "deploy"};
  folders.insert(folders.end(), top_folders.begin(), top_folders.end());
  for (const auto& folder : folders)
    for (const auto& file : code_of(folder)) {
      INFO(name_of(file));
      CHECK(text_of(file).find(word) == std::string::npos);
    }
}

TEST_CASE("no file is longer than 400 lines") {
  auto folders = top_folders;
  folders.insert("tests");
  for (const auto& folder : folders)
    for (const auto& file : code_of(folder)) {
      const auto lines = lines_of(file).size();
      INFO(name_of(file) << " has " << lines << " lines");
      CHECK(lines <= 400);
    }
}

TEST_CASE("headers say what they are for, and are included once") {
  for (const auto& folder : top_folders)
    for (const auto& file : code_of(folder)) {
      if (file.extension() != ".hpp") continue;
      const auto lines = lines_of(file);
      INFO(name_of(file));
      CHECK(lines.at(0).starts_with("///"));
      CHECK(std::count(lines.begin(), lines.end(), "#pragma once") == 1);
      for (const auto& line : lines) CHECK_FALSE(line.starts_with("using namespace"));
    }
}

TEST_CASE("nothing is left for later in the code") {
  // Put together here so that this file does not hold the words.
  const std::vector<std::string> words{std::string{"TO"} + "DO", std::string{"FIX"} + "ME",
                                       std::string{"place"} + "holder"};
  std::vector<std::string> folders{"tests", "deploy", "cmake"};
  for (const auto& folder : top_folders) folders.push_back(folder);
  for (const auto& folder : folders)
    for (const auto& file : code_of(folder))
      for (const auto& line : lines_of(file))
        for (const auto& word : words) {
          INFO(name_of(file) << ": " << line);
          CHECK(line.find(word) == std::string::npos);
        }
}

TEST_CASE("the folder map of the README names what exists") {
  const auto readme = root / "README.md";
  if (!fs::exists(readme)) {
    MESSAGE("skipped: there is no README.md yet");
    return;
  }
  // Names in back quotes that begin with a folder of ours: `model/`, `actors/lane/lane_tokens.cpp`.
  size_t seen = 0;
  for (const auto& line : lines_of(readme)) {
    size_t at = 0;
    while ((at = line.find('`', at)) != std::string::npos) {
      const auto end = line.find('`', at + 1);
      if (end == std::string::npos) break;
      const auto name = line.substr(at + 1, end - at - 1);
      at = end + 1;
      const auto slash = name.find('/');
      if (slash == std::string::npos || !top_folders.contains(name.substr(0, slash))) continue;
      if (name.find_first_of(" *{…<") != std::string::npos) continue;
      ++seen;
      INFO(line);
      const bool there = fs::exists(root / name) || fs::exists(root / (name + ".hpp"))
                         || fs::exists(root / (name + ".cpp"));
      CHECK(there);
    }
  }
  CHECK(seen > 0);
}
