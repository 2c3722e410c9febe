// What the allocator tells of those who wait for slots.
#include "actors/protocol/kv.hpp"
#include "tests/actors/kv/cached_pool.hpp"

namespace lamella::actors::test {

namespace {

struct asked_pool : cached_pool {
  asked_pool() : cached_pool{100, 1, false, 0s} {}

  /// Whether the slots were granted. `tell`: as who waits asks.
  bool ask_for(uint64_t request, uint32_t slots, bool tell) {
    auto answer = ask<kv_grant>(allocator, kv_reserve{{{seq(request), slots}}, 5, tell, epoch});
    settle();
    return !answer->error;
  }
};

} // namespace

TEST_CASE("the allocator tells what is waited for, until it is granted") {
  asked_pool x;
  REQUIRE(x.begin(1, counting(1, 60), 0));
  CHECK(x.usage().wanted == 0);
  CHECK_FALSE(x.ask_for(2, 50, true));
  CHECK(x.usage().wanted == 55); // with what has to stay free
  CHECK_FALSE(x.ask_for(3, 90, false));
  CHECK(x.usage().wanted == 55); // this one does not wait
  x.release(1);
  CHECK(x.ask_for(3, 20, false));
  CHECK(x.usage().wanted == 55);
  CHECK(x.ask_for(2, 50, true));
  CHECK(x.usage().wanted == 0);
}

} // namespace lamella::actors::test
