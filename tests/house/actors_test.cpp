// What every actor does first.
#include "tests/house/sources.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

using namespace lamella::house;
namespace fs = std::filesystem;

namespace {

/// The bodies of functions that make the behaviour of an actor: from behind their brace on.
std::vector<std::string_view> behaviours_of(std::string_view code) {
  std::vector<std::string_view> bodies;
  for (const std::string_view type : {"::behavior_type", "caf::behavior"})
    for (auto at = code.find(type); at != code.npos; at = code.find(type, at + 1)) {
      const auto brace = code.find_first_of("{;", at);
      if (brace != code.npos && code[brace] == '{') bodies.push_back(code.substr(brace + 1));
    }
  return bodies;
}

bool begins_well(std::string_view body) {
  const auto first = body.find_first_not_of(" \n");
  return first != body.npos && body.substr(first).starts_with("end_on_exceptions(");
}

} // namespace

TEST_CASE("the scanner finds what makes a behaviour") {
  CHECK(behaviours_of("a_actor::behavior_type a(int);").empty());
  const auto found = behaviours_of("caf::behavior a(x* self) {\n  end_on_exceptions(self);\n}\n"
                                   "b::behavior_type\nb(x* self) {\n  return {};\n}");
  REQUIRE(found.size() == 2);
  CHECK(begins_well(found[1]));
  CHECK_FALSE(begins_well(found[0]));
}

TEST_CASE("A8 every actor begins with what exceptions in it mean") {
  size_t actors = 0;
  for (const auto& file : fs::recursive_directory_iterator(root / "actors")) {
    if (file.path().extension() != ".cpp") continue;
    std::ifstream in{file.path()};
    const std::string code{std::istreambuf_iterator<char>{in}, {}};
    for (const auto body : behaviours_of(code)) {
      ++actors;
      CHECK_MESSAGE(begins_well(body), file.path().string()
                                           << " makes a behaviour: " << body.substr(0, 60));
    }
  }
  CHECK(actors > 15);
}

TEST_CASE(
    "causes of failures are told in sentences (actors/shared/explain), wherever they are told") {
  size_t files = 0;
  for (const auto* folder : {"actors", "cli"})
    for (const auto& file : fs::recursive_directory_iterator(root / folder)) {
      const auto name = file.path().filename();
      if (file.path().extension() != ".cpp" || name == "explain.cpp") continue;
      ++files;
      std::ifstream in{file.path()};
      const std::string code{std::istreambuf_iterator<char>{in}, {}};
      for (const std::string_view raw : {"system().render(", "system.render(", "system_.render("})
        CHECK_MESSAGE(code.find(raw) == code.npos, file.path().string() << " has " << raw);
    }
  CHECK(files > 60);
}
