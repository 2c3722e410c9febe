// What control groups allow a process, of both versions.
#include "actors/machine/control_groups.hpp"
#include "tests/scratch_folder.hpp"

#include <doctest/doctest.h>

#include <fstream>
#include <limits>

namespace lamella::actors::test {
namespace {

using folders = std::vector<std::string>;

/// A tree of groups as the kernel shows them.
struct tree {
  tests::scratch_folder root;
  void write(const std::string& file, const std::string& text) {
    const auto path = root / file;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream{path} << text;
  }
  control_groups of(const std::string& text, const std::string& controller) const {
    return groups_of(text, controller, (root / ".").string());
  }
};

constexpr auto unbounded = std::numeric_limits<uint64_t>::max();

} // namespace

TEST_CASE("A process is bounded by its control group and by those around it") {
  CHECK(groups_of("0::/system.slice/lamella.service\n", "memory", "/c").folders
        == folders{"/c/system.slice/lamella.service", "/c/system.slice", "/c"});
  CHECK(groups_of("0::/\n", "cpu", "/c").folders == folders{"/c"});
  const auto first = groups_of("5:cpuacct,cpu:/a/b\n0::/d\n", "cpu", "/c");
  CHECK(first.version == 1);
  CHECK(first.folders == folders{"/c/cpu/a/b", "/c/cpu/a", "/c/cpu"});
  CHECK(groups_of("5:cpuset:/a\n0::/d\n", "cpu", "/c").version == 2);
  CHECK(groups_of("5:cpuset:/a\n", "cpu", "/c").version == 0);
  CHECK(groups_of("", "cpu", "/c").folders.empty());
  CHECK(groups_of("0::relative\n", "cpu", "/c").folders.back() == "/c"); // it ends
}

TEST_CASE("The least of the bounds counts, whatever group it is of") {
  tree t;
  const std::string unit = "0::/system.slice/lamella.service\n";
  CHECK(memory_bound(t.of(unit, "memory")) == unbounded);
  CHECK(processor_bound(t.of(unit, "cpu")) >= 1e9);
  t.write("system.slice/lamella.service/memory.max", "max\n");
  t.write("system.slice/memory.max", "5000000\n");
  t.write("memory.max", "7000000\n");
  CHECK(memory_bound(t.of(unit, "memory")) == 5'000'000);
  t.write("system.slice/lamella.service/memory.max", "4000000\n");
  CHECK(memory_bound(t.of(unit, "memory")) == 4'000'000);
  t.write("system.slice/lamella.service/cpu.max", "max 100000\n");
  t.write("system.slice/cpu.max", "150000 100000\n");
  CHECK(processor_bound(t.of(unit, "cpu")) == 1.5);
}

TEST_CASE("The first version of control groups bounds, too") {
  tree t;
  const std::string text = "4:memory:/a\n3:cpu,cpuacct:/a\n0::/\n";
  t.write("memory/memory.limit_in_bytes", "9223372036854771712\n");
  t.write("memory/a/memory.limit_in_bytes", "6000000\n");
  t.write("cpu/a/cpu.cfs_quota_us", "-1\n");
  t.write("cpu/a/cpu.cfs_period_us", "100000\n");
  CHECK(memory_bound(t.of(text, "memory")) == 6'000'000);
  CHECK(processor_bound(t.of(text, "cpu")) >= 1e9);
  t.write("cpu/cpu.cfs_quota_us", "300000\n");
  t.write("cpu/cpu.cfs_period_us", "100000\n");
  CHECK(processor_bound(t.of(text, "cpu")) == 3);
}

} // namespace lamella::actors::test
