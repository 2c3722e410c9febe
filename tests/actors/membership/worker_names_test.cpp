// Workers by their names, which nobody keeps from being alike.
#include "tests/actors/membership/scaled_world.hpp"

namespace lamella::actors::test {

TEST_CASE("a name that several workers have drains none of them") {
  scaled_world w{0, 1};
  const auto spare = w.join("attention");
  CHECK(says(w.drain("w"), "several workers are named 'w': give a seat, "));
  CHECK(spare.book->left.empty());
  CHECK(w.drain("attention/2") == "done");
  CHECK(spare.book->left.size() == 1);
}

} // namespace lamella::actors::test
