// Things keep their places when others come.
#include "config/named_list.hpp"

#include <doctest/doctest.h>

#include <stdexcept>
#include <vector>

namespace lamella::config::test {

namespace {

std::vector<std::string> names_of(const named_list<int>& x) {
  std::vector<std::string> names;
  for (const auto& [name, value] : x) names.push_back(name);
  return names;
}

} // namespace

TEST_CASE("a list of names is in order of names, and what is appended comes behind") {
  named_list<int> x;
  auto& b = x["b"];
  x["c"] = 3;
  x["a"] = 1;
  b = 2; // still that of b
  CHECK(names_of(x) == std::vector<std::string>{"a", "b", "c"});
  x.append("aa", 4);
  CHECK(names_of(x) == std::vector<std::string>{"a", "b", "c", "aa"});
  CHECK(x.at("aa") == 4);
  CHECK(x["b"] == 2);
  CHECK(x.size() == 4);
  CHECK_FALSE(x.contains("d"));
  CHECK(x.find("d") == x.end());
  CHECK_THROWS_AS(x.at("d"), std::out_of_range);
  const auto copy = x;
  x.shorten(3);
  CHECK(names_of(x) == std::vector<std::string>{"a", "b", "c"});
  x.shorten(5);
  x.erase("b");
  CHECK(names_of(x) == std::vector<std::string>{"a", "c"});
  x.clear();
  CHECK(x.empty());
  CHECK(copy.at("b") == 2);
}

} // namespace lamella::config::test
