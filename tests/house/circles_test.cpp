// Files that include one another, directly or through others, can only be understood together.
#include "actors/protocol/parity.hpp"
#include "actors/protocol/prefills.hpp"
#include "tests/house/sources.hpp"

#include <doctest/doctest.h>

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

using namespace lamella::house;

namespace {

/// A header, its source, and the header that its sources alone include: one unit.
std::string unit_of(std::string path) {
  path.erase(path.rfind('.'));
  if (path.ends_with("_impl")) path.erase(path.size() - 5);
  return path;
}

using graph = std::map<std::string, std::set<std::string>>;

graph units() {
  graph g;
  for (const auto& folder : top_folders) {
    for (const auto& file : code_of(folder)) g[unit_of(name_of(file))];
    for_each_include(folder, [&](const std::filesystem::path& file, const include_line& x) {
      const auto from = unit_of(name_of(file)), to = x.quoted ? unit_of(x.path) : from;
      if (from != to) g[from].insert(to);
    });
  }
  return g;
}

/// The sets of units that reach each other (Tarjan), each in order.
class circles {
public:
  explicit circles(const graph& g) : graph_{g} {
    for (const auto& [unit, to] : graph_)
      if (!number_.contains(unit)) walk(unit);
  }
  const std::set<std::set<std::string>>& found() const { return found_; }

private:
  void walk(const std::string& unit) {
    number_[unit] = low_[unit] = number_.size();
    open_.push_back(unit);
    is_open_.insert(unit);
    for (const auto& to : graph_.at(unit))
      if (!number_.contains(to)) {
        walk(to);
        low_[unit] = std::min(low_[unit], low_[to]);
      } else if (is_open_.contains(to)) {
        low_[unit] = std::min(low_[unit], number_[to]);
      }
    if (low_[unit] != number_[unit]) return;
    std::set<std::string> circle;
    for (bool more = true; more;) {
      more = open_.back() != unit;
      is_open_.erase(open_.back());
      circle.insert(std::move(open_.back()));
      open_.pop_back();
    }
    if (circle.size() > 1) found_.insert(std::move(circle));
  }

  const graph& graph_;
  std::map<std::string, size_t> number_, low_;
  std::vector<std::string> open_;
  std::set<std::string> is_open_;
  std::set<std::set<std::string>> found_;
};

/// Those of today. Entries go or get smaller, none comes.
const std::vector<std::set<std::string>> known{
    {"model/grammar/regular_expression", "model/grammar/regular_expression_parts"},
    {"gpu/kernels/operators", "gpu/kernels/sets"},
    {"gpu/cuda/driver/driver", "gpu/cuda/driver/driver_line"},
};

std::string joined(const std::set<std::string>& units) {
  std::string text;
  for (const auto& x : units) text += (text.empty() ? "" : " ") + x;
  return text;
}

} // namespace

TEST_CASE("the search for circles finds them") {
  const graph g{{"a", {"b"}}, {"b", {"c"}},      {"c", {"a", "d"}},
                {"d", {}},    {"e", {"d", "f"}}, {"f", {"e"}}};
  CHECK(circles{g}.found() == std::set<std::set<std::string>>{{"a", "b", "c"}, {"e", "f"}});
}

TEST_CASE("no files but known ones include each other in a circle") {
  const auto g = units();
  REQUIRE(g.size() > 400);
  const circles all{g};
  for (const auto& circle : all.found()) {
    INFO(joined(circle));
    CHECK(std::any_of(known.begin(), known.end(), [&](const auto& old) {
      return std::includes(old.begin(), old.end(), circle.begin(), circle.end());
    }));
  }
  for (const auto& old : known) {
    INFO("there is no such circle any more, or a smaller one: " << joined(old));
    CHECK(all.found().contains(old));
  }
}
