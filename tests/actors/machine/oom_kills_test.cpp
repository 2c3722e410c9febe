// Was a process killed for want of memory? What the kernel writes about it.
#include "actors/machine/oom_kills.hpp"

#include <doctest/doctest.h>

using namespace lamella::actors;

TEST_CASE("The count of kills for want of memory is found in both versions of control groups") {
  CHECK(oom_file_of("0::/\n") == "/sys/fs/cgroup/memory.events");
  CHECK(oom_file_of("0::/system.slice/lamella.service\n")
        == "/sys/fs/cgroup/system.slice/lamella.service/memory.events");
  CHECK(oom_file_of("5:cpu,cpuacct:/a\n4:memory:/b/c\n0::/d\n")
        == "/sys/fs/cgroup/memory/b/c/memory.oom_control");
  CHECK(oom_file_of("5:cpu:/a\n").empty());
  CHECK(oom_file_of("").empty());
  CHECK(oom_kills_in("low 0\nhigh 0\nmax 3\noom 2\noom_kill 17\noom_group_kill 0\n") == 17);
  CHECK(oom_kills_in("oom_kill_disable 0\nunder_oom 0\noom_kill 4\n") == 4);
  CHECK_FALSE(oom_kills_in("oom_kill_disable 0\nunder_oom 0\n"));
  CHECK_FALSE(oom_kills_in("oom_kill x\n"));
  CHECK_FALSE(oom_kills_in(""));
}
