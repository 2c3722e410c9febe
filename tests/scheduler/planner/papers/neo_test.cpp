// NEO's six steps, and the principles behind them as invariants of every schedule.
#include "tests/scheduler/planner/papers/neo_bench.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

using namespace lamella::scheduler;

namespace {

double context_of(const neo_state& s, const std::vector<uint32_t>& which) {
  double sum = 0;
  for (const auto i : which) sum += s.on_host[i].context;
  return sum;
}

double time_left_0(const neo_iteration& x) { return x.linear_1 + x.gpu_attention - x.host_0; }
double time_left_1(const neo_iteration& x) { return x.linear_0 - x.host_1; }

/// States around which the invariants are checked: awkward numbers, some queue empty, all full.
std::vector<neo_state> all_states() {
  std::vector<neo_state> all;
  for (const uint32_t gpu : {0u, 1u, 7u, 25u})
    for (const uint32_t host : {1u, 17u, 54u, 150u})
      for (const uint32_t waiting : {0u, 1u, 7u})
        all.push_back(neo_state_of(gpu, host, waiting, 1000));
  return all;
}

} // namespace

TEST_CASE("N-M08 two batches begin empty: without requests there is nothing in them") {
  neo_state s;
  const auto it = neo_bench{}.plan(s, offload_kind::neo);
  CHECK(it.batch_0.empty());
  CHECK(it.batch_1.empty());
  CHECK(it.gpu_prefills.empty());
  CHECK(it.host_prefills.empty());
  CHECK(it.sequences == 0);
}

TEST_CASE("N-M02 batch 0 is long at linear operators, batch 1 at attention on the host") {
  const neo_bench b;
  auto s = neo_state_of(26, 60, 3, 1000);
  const auto it = b.plan_two(s);
  REQUIRE(it.two_batches);
  CHECK(!it.host_prefills.empty()); // the GPU is full
  CHECK(!it.batch_1.empty());
  CHECK(it.batch_0.size() < it.batch_1.size() / 3);
  CHECK(it.linear_0 > 3 * it.linear_1);
  CHECK(it.host_1 > 3 * it.host_0);
  // No request is in both, and those of the GPU are in batch 0 only.
  for (const auto i : it.batch_0) CHECK(std::count(it.batch_1.begin(), it.batch_1.end(), i) == 0);
  CHECK(it.sequences
        == s.on_gpu.size() + it.gpu_prefills.size() + it.host_prefills.size() + it.batch_0.size()
               + it.batch_1.size());
}

TEST_CASE("N-M03 prompts are computed in batch 0, with the tokens of the GPU's requests") {
  const neo_bench b;
  const auto profile = b.profile();
  auto s = neo_state_of(7, 0, 3, 1000); // the GPU has room
  const auto it = b.plan(s, offload_kind::neo);
  CHECK(it.gpu_prefills.size() == 3);
  CHECK(it.sequences == 10);
  CHECK(it.linear_0 == doctest::Approx(profile.linear_s(7 + 3 * 1000)));
  CHECK(it.linear_1 == 0);
  CHECK(it.gpu_attention
        == doctest::Approx(3 * profile.prompt_s(1000) + profile.gpu_s(7 * 1000.0)));
  // Prompts whose KV goes to the host are computed there, too: the host only decodes.
  s = neo_state_of(26, 30, 3, 1000);
  const auto other = b.plan_two(s);
  REQUIRE(!other.host_prefills.empty());
  CHECK(other.linear_0
        == doctest::Approx(
            profile.linear_s(26 + 1000.0 * other.host_prefills.size() + other.batch_0.size())));
  CHECK(other.linear_1 == doctest::Approx(profile.linear_s(other.batch_1.size())));
  CHECK(other.host_1 == doctest::Approx(profile.host_s(context_of(s, other.batch_1))));
}

TEST_CASE("N-M05 N-M07 N-M14 hiding the host: the GPU is never idle while the host computes") {
  const neo_bench b;
  for (auto& s : all_states()) {
    const auto it = b.plan_two(s);
    if (!it.two_batches) continue;
    CAPTURE(s.on_gpu.size());
    CAPTURE(s.on_host.size());
    CAPTURE(s.waiting.size());
    CHECK(time_left_0(it) >= -1e-9);
    CHECK(time_left_1(it) >= -1e-9);
    CHECK(it.time()
          == doctest::Approx(std::max(it.linear_0, it.host_1)
                             + std::max(it.linear_1 + it.gpu_attention, it.host_0)));
  }
}

TEST_CASE("N-M14 balancing: while requests wait on the host, neither half has time for one more") {
  const neo_bench b;
  const auto one = b.profile().host_s(1000);
  for (auto& s : all_states()) {
    const auto it = b.plan_two(s);
    if (!it.two_batches || it.batch_0.size() + it.batch_1.size() == s.on_host.size()) continue;
    CAPTURE(s.on_gpu.size());
    CAPTURE(s.on_host.size());
    CAPTURE(s.waiting.size());
    CHECK(std::max(time_left_0(it), time_left_1(it)) < 2 * one);
  }
}

TEST_CASE("N-M14 maximizing the GPU: all its requests, and prompts until something is full") {
  const neo_bench b;
  for (auto& s : all_states()) {
    const auto before = s.on_gpu.size();
    const auto it = b.plan(s, offload_kind::neo);
    CHECK(s.on_gpu.size() >= before); // nothing had to leave
    CHECK(it.sequences >= s.on_gpu.size());
    const auto fits = s.gpu_tokens() + s.on_gpu.size() * 16 + 1016 <= b.machine.gpu_kv_tokens;
    if (fits && !s.waiting.empty()) CHECK(!it.gpu_prefills.empty());
  }
}

TEST_CASE("N-M13 N-M14 greedy: of two batches and the GPU alone, the one with more tokens per s") {
  const neo_bench b;
  uint32_t chose_two = 0, chose_one = 0;
  for (const auto& s : all_states()) {
    auto for_two = s, for_neo = s;
    const auto two = b.plan_two(for_two), chosen = b.plan(for_neo, offload_kind::neo);
    CHECK(chosen.sequences / chosen.seconds >= two.sequences / two.seconds * 0.999999);
    // The GPU's own schedule leaves the host's requests out; it is in the running, too.
    CHECK((chosen.two_batches == two.two_batches
           || (chosen.batch_0.empty() && chosen.batch_1.empty())));
    if (for_neo.waiting.empty() && !for_neo.on_gpu.empty()) {
      for_neo.on_host.clear();
      const auto alone = b.plan(for_neo, offload_kind::none);
      CHECK(chosen.sequences / chosen.seconds >= alone.sequences / alone.seconds * 0.999999);
    }
    ++(chosen.two_batches ? chose_two : chose_one);
  }
  CHECK(chose_two > 0);
  CHECK(chose_one > 0);
}

TEST_CASE("N-M09 the last in leaves the GPU when it is full, and comes back below 95 %") {
  const neo_bench b;
  auto s = neo_state_of(27, 0, 0, 1000); // 27,000 tokens
  double swapped = 0;
  b.plan(s, offload_kind::neo, &swapped);
  CHECK(s.on_gpu.size() == 26);
  REQUIRE(s.on_host.size() == 1);
  CHECK(s.on_host[0].index == 26);
  CHECK(swapped == 1000);
  s = neo_state_of(10, 3, 0, 1000);
  b.plan(s, offload_kind::neo, &swapped);
  CHECK(s.on_gpu.size() == 13);
  CHECK(swapped == 3000);
}

TEST_CASE("N-M09 what outgrows the host as well is computed again, with its tokens so far") {
  neo_bench b;
  b.machine.host_kv_tokens = 10'000;
  auto s = neo_state_of(26, 10, 0, 1000); // ten need 10,080 tokens in blocks
  b.plan(s, offload_kind::neo);
  CHECK(s.on_host.size() == 9);
  REQUIRE(s.waiting.size() == 1);
  CHECK(s.waiting[0].index == 35);
  CHECK(s.waiting[0].context == 1000);
}

TEST_CASE("N-M10 prompts stay on the GPU while they fit; after one for the host, all go there") {
  const neo_bench b;
  auto s = neo_state_of(24, 0, 4, 1000); // room for two more
  const auto it = b.plan_two(s);
  CHECK(it.gpu_prefills == std::vector<uint32_t>{0, 1});
  for (const auto i : it.host_prefills) CHECK(i >= 2);
  s = neo_state_of(24, 0, 4, 1000);
  s.waiting[2].context = 20'000;
  s.waiting[3].context = 10; // would fit the GPU
  const auto other = b.plan_two(s);
  CHECK(std::count(other.gpu_prefills.begin(), other.gpu_prefills.end(), 3) == 0);
}

TEST_CASE("N-M11 a request that cannot be hidden is skipped, and with it all that are as long") {
  const neo_bench b;
  neo_state s;
  for (uint32_t i = 0; i < 12; ++i) s.on_host.push_back({i, i == 3 ? 100'000u : 700u, 50});
  s.on_host.push_back({12, 80'000, 50});
  s.on_gpu.push_back({13, 26'000, 50}); // the GPU has no room to take them back
  const auto it = b.plan_two(s);
  std::vector<uint32_t> taken = it.batch_0;
  taken.insert(taken.end(), it.batch_1.begin(), it.batch_1.end());
  CHECK(std::count(taken.begin(), taken.end(), 3) == 0);
  CHECK(std::count(taken.begin(), taken.end(), 12) == 0);
  CHECK(std::count(taken.begin(), taken.end(), 4) == 1); // shorter, behind the skipped one
}

TEST_CASE("N-M12 prompts for the host that hide nothing wait") {
  const neo_bench b;
  auto s = neo_state_of(26, 0, 3, 1000); // nobody on the host needs to be hidden
  const auto it = b.plan(s, offload_kind::neo);
  CHECK(it.host_prefills.size() < 3);
}
