#include "actors/request/response_store.hpp"

#include <doctest/doctest.h>

using namespace lamella::actors;
using namespace std::chrono_literals;

namespace {

const response_store::time start{1000s};

kept_response response_of(const std::string& id, uint64_t caller = 0, size_t bytes = 10) {
  return {id, caller, std::string(bytes, 'x'), {}};
}

} // namespace

TEST_CASE("a response is kept for its time, for its caller alone") {
  response_store store{60s, 1 << 20};
  store.add(response_of("a", 1), start);
  REQUIRE(store.find("a", 1, start + 59s));
  CHECK(store.find("a", 1, start + 59s)->body == "xxxxxxxxxx");
  CHECK_FALSE(store.find("a", 2, start));
  CHECK_FALSE(store.erase("a", 2, start));
  CHECK_FALSE(store.find("b", 1, start));
  CHECK_FALSE(store.find("a", 1, start + 60s));
  CHECK(store.bytes() == 0);
  store.add(response_of("c", 1), start);
  CHECK(store.erase("c", 1, start));
  CHECK_FALSE(store.erase("c", 1, start));
  CHECK(store.bytes() == 0);
}

TEST_CASE("responses take no more bytes than they may: the oldest go") {
  response_store store{60s, 10'000};
  for (const auto* id : {"a", "b", "c", "d"}) {
    store.add(response_of(id, 0, 3'000), start);
    CHECK(store.bytes() <= 10'000);
  }
  CHECK_FALSE(store.find("a", 0, start));
  CHECK(store.find("d", 0, start));
  store.add(response_of("huge", 0, 20'000), start);
  CHECK_FALSE(store.find("huge", 0, start));
  CHECK(store.find("d", 0, start)); // what cannot be kept drives nothing out
}
