// Memory for a copy of the KV that moves to the members of a next epoch.
#include "scheduler/kv/memory_room.hpp"

#include <doctest/doctest.h>

namespace lamella::scheduler {

namespace {
constexpr uint64_t mib = uint64_t{1} << 20;
}

TEST_CASE("L-M03 a cache takes more memory than the rows that are written, up to all of it") {
  CHECK(room_for(0, 100 * mib, 60 * mib) == 0);
  CHECK(room_for(40 * mib, 1000 * mib, 60 * mib) == 230 * mib);
  CHECK(room_for(40 * mib, 160 * mib, 60 * mib) == 160 * mib);
}

TEST_CASE("L-M03 the members of one host share its memory, and some of it stays free") {
  const std::vector<uint64_t> bytes{100 * mib, 60 * mib};
  const auto lacks = shortage_of(bytes, {{"a", 200 * mib}, {"a", 250 * mib}});
  REQUIRE(lacks); // 160 MiB and 64 MiB
  CHECK(lacks->host == "a");
  CHECK(lacks->needed == 160 * mib);
  CHECK(lacks->free == 200 * mib); // whoever looked last
  CHECK_FALSE(shortage_of(bytes, {{"a", 200 * mib}, {"b", 124 * mib}}));
  CHECK_FALSE(shortage_of(bytes, {{"a", 224 * mib}, {"a", 224 * mib}}));
  CHECK(shortage_of(bytes, {{"a", 224 * mib}, {"a", 224 * mib - 1}}));
  CHECK(shortage_of(bytes, {{"a", 1000 * mib}, {"b", 123 * mib}})->host == "b");
}

TEST_CASE("L-M03 no memory is needed where nothing moves, or where devices have given it") {
  CHECK_FALSE(shortage_of({0, 0}, {{"a", 0}, {"a", 0}}));
  CHECK_FALSE(shortage_of({100 * mib}, {{"a", memory_room::no_limit}}));
  CHECK_FALSE(shortage_of({}, {}));
}

} // namespace lamella::scheduler
