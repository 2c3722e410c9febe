#include "scheduler/machine_label.hpp"

#include <doctest/doctest.h>

using namespace lamella::scheduler;

TEST_CASE("S-M08 S-M09 a machine is mixed, returns, and after long changes its own pool") {
  machine_label m{machine_pool::token};
  CHECK(m.join_mixed(10));
  CHECK_FALSE(m.join_mixed(20)); // it counts from the first time on
  CHECK(m.now() == machine_pool::mixed);
  CHECK_FALSE(m.repurpose(39, 30));
  m.leave_mixed();
  CHECK(m.now() == machine_pool::token);
  CHECK_FALSE(m.repurpose(100, 30)); // it is not mixed any more
  CHECK(m.join_mixed(100));
  CHECK_FALSE(m.repurpose(1000, 0)); // never
  CHECK(m.repurpose(130, 30));
  CHECK(m.now() == machine_pool::prompt);
  CHECK(m.home() == machine_pool::prompt);
  CHECK(m.join_mixed(200));
  CHECK(m.repurpose(230, 30));
  CHECK(m.home() == machine_pool::token);
}

TEST_CASE("S-M03 a machine whose own pool is the mixed one stays there") {
  machine_label m{machine_pool::mixed};
  CHECK_FALSE(m.join_mixed(1));
  CHECK_FALSE(m.repurpose(100, 1));
  m.leave_mixed();
  CHECK(m.now() == machine_pool::mixed);
}
