// tests/run leaves out the tests that tests/long_tests names, unless it is asked for all: a name
// that no test has any more would make it leave out nothing.
#include "tests/house/sources.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

using namespace lamella::house;

TEST_CASE("each long test is a test, and the list is in order") {
  std::string sources = text_of(root / "tests/CMakeLists.txt");
  for (const auto& file : code_of("tests")) sources += text_of(file);
  const auto names = lines_of(root / "tests/long_tests");
  CHECK(names.size() > 10);
  CHECK(std::is_sorted(names.begin(), names.end()));
  for (const auto& name : names) {
    CAPTURE(name);
    const auto colon = name.find(':');
    REQUIRE(colon != std::string::npos);
    const auto of_itself = name.substr(name.find_first_not_of(' ', colon + 1));
    CHECK(sources.find(of_itself) != std::string::npos);
  }
}
