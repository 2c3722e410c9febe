// Sizes of pools that become impossible while a change to them is under way.
#include "tests/actors/membership/scaled_world.hpp"

namespace lamella::actors::test {

TEST_CASE_FIXTURE(scaled_world,
                  "L-M03 a size that becomes impossible while its workers are awaited "
                  "is rolled back") {
  CHECK(resize("attention", 4) == "under way");
  no_memory = true;
  join("attention");
  join("attention");
  CHECK(due.empty());
  end(a0.worker);
  want_epoch();
  REQUIRE(opened.size() == 2); // of the size before
  CHECK(opened[1].shards.size() == 2);
  advance(2min, 1s);
  CHECK(change(1).state == "rolled back");
}

} // namespace lamella::actors::test
