// Which processors compute, and on which a process is put, by what kernels say of machines.
#include "actors/machine/topology.hpp"
#include "tests/scratch_folder.hpp"

#include <doctest/doctest.h>

#include <fstream>
#include <thread>

namespace lamella::actors::test {

namespace {

using set = std::set<unsigned>;

/// A /sys of so many processors, of which a test writes what the kernel would.
struct machine {
  tests::scratch_folder folder;

  void write(const std::string& file, const std::string& text) const {
    const auto path = folder / file;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream{path} << text << "\n";
  }
  void siblings(unsigned number, const std::string& list) const {
    write("devices/system/cpu/cpu" + std::to_string(number) + "/topology/thread_siblings_list",
          list);
  }
  void node(unsigned number, const std::string& list) const {
    write("devices/system/node/node" + std::to_string(number) + "/cpulist", list);
  }
  std::vector<processor> of(const std::string& allowed) const {
    return topology_of(*processors_of(allowed), folder / "");
  }
};

/// Two sockets of four cores with two threads each, numbered as Linux does on servers.
struct two_sockets : machine {
  two_sockets() {
    for (unsigned i = 0; i < 16; ++i)
      siblings(i, std::to_string(i % 8) + "," + std::to_string(i % 8 + 8));
    node(0, "0-3,8-11");
    node(1, "4-7,12-15");
  }
};

} // namespace

TEST_CASE("lists of processors are read and written as the kernel does") {
  CHECK(*processors_of("0") == set{0});
  CHECK(*processors_of("0-3,8,10-11") == set{0, 1, 2, 3, 8, 10, 11});
  CHECK(list_of({0, 1, 2, 3, 8, 10, 11}) == "0-3,8,10-11");
  CHECK(list_of({}).empty());
  for (const auto* bad : {"", ",", "1,", ",1", "a", "1-", "-1", "3-1", "1 2", "0x1", "70000",
                          "0-99999999999999999999", "1,,2", "1-2-3", "0-3\n"}) {
    CAPTURE(bad);
    CHECK_FALSE(processors_of(bad));
  }
}

TEST_CASE_FIXTURE(two_sockets, "one thread of each core computes") {
  CHECK(computing(of("0-15")) == set{0, 1, 2, 3, 4, 5, 6, 7});
  // Within what a process may use, also the second thread of a core alone.
  CHECK(computing(of("0,8,9,12,15")) == set{0, 9, 12, 15});
  // On a few cores all threads do.
  CHECK(computing(of("0-2,8-10")) == set{0, 1, 2, 8, 9, 10});
}

TEST_CASE_FIXTURE(machine, "where there are two kinds of cores the fast ones compute") {
  // Four fast cores with two threads each, four slow ones, as on a desktop of Intel.
  for (unsigned i = 0; i < 8; ++i)
    siblings(i, std::to_string(i / 2 * 2) + "-" + std::to_string(i / 2 * 2 + 1));
  for (unsigned i = 8; i < 12; ++i) siblings(i, std::to_string(i));
  write("devices/cpu_atom/cpus", "8-11");
  CHECK(computing(of("0-11")) == set{0, 2, 4, 6});
  CHECK(computing(of("0-3,8-11")) == set{0, 1, 2, 3}); // two fast cores, and both their threads
  CHECK(computing(of("8-11")) == set{8, 9, 10, 11});   // it may use no others
}

TEST_CASE_FIXTURE(machine, "the capacity of cores tells the fast ones on Arm") {
  for (unsigned i = 0; i < 4; ++i)
    write("devices/system/cpu/cpu" + std::to_string(i) + "/cpu_capacity", i < 2 ? "446" : "1024");
  CHECK(computing(of("0-3")) == set{2, 3});
}

TEST_CASE_FIXTURE(machine, "where the kernel says nothing every processor is a core of one node") {
  CHECK(computing(of("0-3")) == set{0, 1, 2, 3});
  CHECK(by_node(of("0-3")).size() == 1);
  siblings(1, "nonsense");
  node(0, "");
  CHECK(computing(of("0-3")) == set{0, 1, 2, 3});
}

TEST_CASE_FIXTURE(two_sockets, "processes are put on the nodes in turn where there are enough") {
  const auto all = of("0-15");
  CHECK(by_node(all)
        == std::vector{set{0, 1, 2, 3, 8, 9, 10, 11}, set{4, 5, 6, 7, 12, 13, 14, 15}});
  CHECK(share_of(all, 0, 2) == set{0, 1, 2, 3, 8, 9, 10, 11});
  CHECK(share_of(all, 1, 2) == set{4, 5, 6, 7, 12, 13, 14, 15});
  CHECK(share_of(all, 2, 3) == share_of(all, 0, 2));
  CHECK(share_of(all, 0, 1).size() == 16); // one process uses both
  // A process that may only run on one node knows no other.
  CHECK(share_of(of("4-7"), 1, 2) == set{4, 5, 6, 7});
}

TEST_CASE("a thread that is bound runs there alone, as do those that it starts") {
  const auto before = allowed_processors();
  const set one{*before.rbegin()};
  std::thread{[&] {
    bind_to(one);
    CHECK(allowed_processors() == one);
    std::thread{[&] { CHECK(allowed_processors() == one); }}.join();
    CHECK(own_topology().size() == 1);
  }}.join();
  CHECK(allowed_processors() == before);
  CHECK_THROWS_AS(bind_to({65'000}), std::system_error);
}

} // namespace lamella::actors::test
