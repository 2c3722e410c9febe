#include "scheduler/slot_set.hpp"

#include <doctest/doctest.h>

using namespace lamella::scheduler;
using runs = std::vector<slot_run>;

TEST_CASE("A set of slots counts each once and cuts runs where it begins and ends") {
  slot_set x{20};
  x.insert(runs{{3, 4}, {10, 1}});
  x.insert(runs{{6, 2}});
  CHECK(x.count() == 6); // 3 4 5 6 7 10
  CHECK(x.contains(7));
  CHECK_FALSE(x.contains(8));
  CHECK(x.part(runs{{0, 20}}, true) == runs{{3, 5}, {10, 1}});
  CHECK(x.part(runs{{0, 20}}, false) == runs{{0, 3}, {8, 2}, {11, 9}});
  CHECK(x.part(runs{{10, 2}, {2, 2}}, true) == runs{{10, 1}, {3, 1}}); // in the order given
  CHECK(x.part(runs{{10, 1}, {11, 2}}, false) == runs{{11, 2}});
  CHECK(x.meets(runs{{0, 4}}));
  CHECK_FALSE(x.meets(runs{{0, 3}, {8, 2}}));
  x.erase(runs{{0, 5}, {10, 5}});
  CHECK(x.count() == 3);
  x.erase(runs{{0, 20}});
  CHECK(x.empty());
}
