// Which member of a pool gets a prompt, of those that have a part of it in their prefix cache.
#include "actors/protocol/kv.hpp"
#include "tests/actors/kv/cached_pool.hpp"

namespace lamella::actors::test {

TEST_CASE("prefix cache: whole requests go to the member that has most of them, if that pays") {
  cached_pool w{100, 2};
  const auto long_one = counting(100, 60);
  const auto first = w.begin(1, long_one);
  REQUIRE(first);
  w.filled(1, long_one);
  w.release(1, 60);
  SUBCASE("more than half of it") {
    const auto held = w.begin(2, long_one + counting(7, 20));
    CHECK(held->member == first->member);
    CHECK(held->cached == 60);
  }
  SUBCASE("less than half: the load is even instead") {
    w.begin(9, counting(5000, 10)); // to whichever member: the other one is emptier now
    const auto held = w.begin(2, counting(100, 20) + counting(7, 40));
    REQUIRE(held);
    const auto again = w.begin(3, counting(100, 20) + counting(9, 40));
    REQUIRE(again);
    CHECK(held->member != again->member);
  }
  SUBCASE("no room there") {
    const auto other = w.begin(2, long_one + counting(7, 1), 30);
    REQUIRE(other);
    CHECK(other->member == first->member);
    const auto last = w.begin(3, long_one + counting(8, 20), 10);
    REQUIRE(last);
    CHECK(last->member != first->member);
    CHECK(last->cached == 0);
  }
  SUBCASE("room because of the beginning alone") {
    const auto next = w.begin(2, long_one + counting(8, 20), 15);
    REQUIRE(next);
    CHECK(next->member == first->member);
    CHECK(next->cached == 60);
  }
  SUBCASE("the member was lost") {
    w.adopt({first->member});
    CHECK(w.usage().free == 200);
  }
  SUBCASE("the other member was lost") {
    w.adopt({1 - first->member});
    CHECK(w.cached() == 60);
  }
}

TEST_CASE("prefix cache: a prompt goes to a member that has room for all of its choices") {
  cached_pool w{200, 2};
  const auto prompt = counting(100, 60);
  const auto first = w.begin(1, prompt);
  REQUIRE(first);
  w.filled(1, prompt);
  w.release(1, 60);
  const auto other = w.begin(2, counting(5000, 40), 0);
  REQUIRE(other);
  REQUIRE(other->member == first->member); // where 160 are left, cached ones included
  const auto ask = [&](uint64_t request, uint32_t window) {
    std::vector<kv_need> needs{
        {seq(request), 60 + window, {}, 0, reserve_mode::fresh, 0, {0, prompt}}};
    for (uint32_t k = 1; k < 5; ++k)
      needs.push_back({seq(request, k), window, seq(request), 60, reserve_mode::fresh});
    auto answer = w.ask<kv_grant>(w.allocator, kv_reserve{needs, 0, false, w.epoch});
    w.settle();
    REQUIRE_FALSE(answer->error);
    CHECK(answer->value.holdings.size() == 5);
    return answer->value.holdings.front();
  };
  SUBCASE("which has its beginning") {
    const auto held = ask(3, 20);
    CHECK(held.member == first->member);
    CHECK(held.cached == 59);
  }
  SUBCASE("or another") {
    const auto held = ask(3, 25);
    CHECK(held.member != first->member);
    CHECK(held.cached == 0);
  }
}

TEST_CASE("prefix cache: a member with much more to do than others is not given more for it") {
  cached_pool w{200, 2};
  const auto prompt = counting(100, 20);
  const auto first = w.begin(1, prompt);
  REQUIRE(first);
  w.filled(1, prompt);
  w.release(1, 20);
  uint32_t there = 0;
  for (uint64_t i = 2; i < 12; ++i) { // each needs some slots beside those it shares
    const auto held = w.begin(i, prompt + counting(static_cast<token_id>(1000 * i), 2), 12);
    REQUIRE(held);
    there += held->member == first->member ? 1 : 0;
  }
  CHECK(there >= 4);
  CHECK(there <= 8);
}

} // namespace lamella::actors::test
