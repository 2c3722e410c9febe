#include "scheduler/head_partition.hpp"

#include <doctest/doctest.h>

using namespace lamella::scheduler;

TEST_CASE("L-M23 every KV head has one member, and all members have the same number") {
  for (uint32_t kv_heads = 1; kv_heads <= 54; ++kv_heads)
    for (uint32_t members = 1; members <= kv_heads; ++members) {
      if (refuse_partition(kv_heads, members)) continue;
      CAPTURE(kv_heads);
      CAPTURE(members);
      uint32_t next = 0;
      for (uint32_t i = 0; i < members; ++i) {
        const auto range = heads_of(kv_heads, members, i);
        CHECK(range.first == next);
        CHECK(range.count == kv_heads / members);
        next += range.count;
      }
      CHECK(next == kv_heads);
    }
}

TEST_CASE("L-M24 exactly the divisors of the KV heads are member counts") {
  for (uint32_t kv_heads : {1u, 3u, 7u, 8u, 17u, 54u})
    for (uint32_t members = 1; members <= 60; ++members) {
      const bool divides = members <= kv_heads && kv_heads - kv_heads / members * members == 0;
      CHECK(refuse_partition(kv_heads, members).has_value() == !divides);
    }
}

TEST_CASE("L-M24 six members for eight KV heads are refused with both numbers and a way out") {
  const auto reason = refuse_partition(8, 6).value();
  for (const char* word : {"8 KV heads", "6 attention members", "divisor of 8", "requests"})
    CHECK(reason.find(word) != std::string::npos);
  CHECK(refuse_partition(8, 0).has_value());
}

static_assert(heads_of(3, 3, 2) == head_range{2, 1});
static_assert(heads_of(8, 1, 0) == head_range{0, 8});
