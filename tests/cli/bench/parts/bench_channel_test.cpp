// `lamella bench channel --json`: complete and stable (decisions, Interfaces).
#include "base/json.hpp"
#include "tests/cli/program.hpp"
#include "tests/scratch_folder.hpp"

#include <set>
#include <vector>

using namespace lamella;

namespace {

double number(const json_value& row, const char* name) {
  const auto* found = row.find(name);
  REQUIRE_MESSAGE(found != nullptr, name);
  const auto* real = found->get_if<double>();
  if (real != nullptr) return *real;
  const auto* whole = found->get_if<int64_t>();
  if (whole != nullptr) return static_cast<double>(*whole);
  const auto* natural = found->get_if<uint64_t>();
  REQUIRE_MESSAGE(natural != nullptr, name);
  return static_cast<double>(*natural);
}

std::string text(const json_value& row, const char* name) {
  const auto* found = row.find(name);
  REQUIRE_MESSAGE(found != nullptr, name);
  const auto* value = found->get_if<std::string>();
  REQUIRE_MESSAGE(value != nullptr, name);
  return *value;
}

} // namespace

TEST_CASE("bench channel --json has a row for every way and size, and nothing else on its output") {
  const tests::scratch_folder folder;
  const auto got = tests::run_shell(folder / ".",
                                    "lamella bench channel --tier shm,tcp --max-bytes 4096 --json");
  INFO(got.err);
  REQUIRE(got.code == 0);
  const auto all = parse_json(got.out);
  CHECK(number(all, "version") == 1);
  std::set<std::string> ways;
  std::set<double> sizes;
  const auto* rows = all.find("rows")->get_if<json_value::array>();
  REQUIRE(rows != nullptr);
  for (const auto& row : *rows) {
    ways.insert(text(row, "kind") + " " + text(row, "tier"));
    sizes.insert(number(row, "bytes"));
    CHECK(number(row, "p50_us") > 0);
    CHECK(number(row, "p99_us") >= number(row, "p50_us"));
    CHECK(number(row, "gb_per_s") > 0);
  }
  CHECK(ways
        == std::set<std::string>{"baseline plain_tcp", "baseline plain_unix", "tier shm",
                                 "tier tcp"});
  CHECK(sizes.contains(64));
  CHECK(sizes.contains(4096));
  CHECK(rows->size() == ways.size() * sizes.size());
  const auto* copies = all.find("memcpy")->get_if<json_value::array>();
  REQUIRE(copies != nullptr);
  CHECK(copies->size() == sizes.size());
  std::set<double> copied;
  for (const auto& copy : *copies) {
    copied.insert(number(copy, "bytes"));
    CHECK(number(copy, "gb_per_s") > 0);
    CHECK(number(copy, "buffers") == 8); // as many as the link has slots
    CHECK(number(copy, "threads") == 1);
  }
  CHECK(copied == sizes);
}
