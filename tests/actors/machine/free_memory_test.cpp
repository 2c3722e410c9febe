// How much memory a process can still write.
#include "actors/machine/free_memory.hpp"
#include "tests/scratch_folder.hpp"

#include <doctest/doctest.h>

#include <fstream>
#include <limits>

namespace lamella::actors::test {

namespace {

constexpr auto unbounded = std::numeric_limits<uint64_t>::max();

struct groups {
  tests::scratch_folder root;
  void write(const std::string& file, const std::string& text) {
    const auto path = root / file;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream{path} << text;
  }
  uint64_t left(const std::string& of = "0::/unit\n") const {
    return left_by(groups_of(of, "memory", (root / ".").string()));
  }
};

} // namespace

TEST_CASE("L-M03 the machine has what the kernel says is available") {
  CHECK(available_in("MemTotal:  24 kB\nMemFree:  1 kB\nMemAvailable:   7 kB\n") == 7 * 1024);
  CHECK(available_in("MemTotal:  24 kB\n") == unbounded);
  CHECK(available_in("") == unbounded);
  CHECK(free_memory() > 0);
}

TEST_CASE("L-M03 a control group leaves its limit less what cannot be dropped") {
  groups g;
  CHECK(g.left() == unbounded);
  g.write("unit/memory.max", "max\n");
  g.write("unit/memory.current", "900\n");
  CHECK(g.left() == unbounded);
  g.write("unit/memory.max", "1000\n");
  CHECK(g.left() == 100);
  g.write("unit/memory.stat", "anon 600\ninactive_file 250\n");
  CHECK(g.left() == 350);
  g.write("memory.max", "2000\n");
  g.write("memory.current", "1900\n");
  CHECK(g.left() == 100); // of the group around it
  g.write("memory.current", "2100\n");
  CHECK(g.left() == 0);
}

TEST_CASE("L-M03 control groups of version 1 likewise") {
  groups g;
  g.write("memory/unit/memory.limit_in_bytes", "1000\n");
  g.write("memory/unit/memory.usage_in_bytes", "900\n");
  g.write("memory/unit/memory.stat", "inactive_file 1\ntotal_inactive_file 50\n");
  CHECK(g.left("3:memory:/unit\n") == 150);
}

} // namespace lamella::actors::test
