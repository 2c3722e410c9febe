// What streams feel of a planned change, on devices whose kernels take a known time.
#include "tests/simulation/workload.hpp"

#include <algorithm>

namespace lamella::simulation {

namespace {

constexpr device_pace pace{2ms, 2ms};

/// Streams that decode, and the times between two of their tokens.
class watched_streams {
public:
  watched_streams(const cluster_shape& shape, uint32_t streams, uint64_t seed)
      : where_{shape, seed}, clients_(streams), watches_(streams) {
    REQUIRE(where_.run_until([&] { return where_.server != nullptr; }, 60s));
    for (uint32_t i = 0; i < streams; ++i) {
      // Each of their tokens is a letter, and is seen at once.
      clients_[i] = std::make_shared<actors::test::fake_exchange>(
          R"({"model":"integer","prompt":[)" + std::to_string(first_byte + i)
          + R"(],"max_tokens":450,"seed":)" + std::to_string(i)
          + R"(,"stream":true,"guided_regex":"[a-z]{450}"})");
      where_.post(clients_[i]);
    }
    run(1s);
  }

  void run(duration span) {
    where_.run_until([&] { return look(); }, span);
  }
  /// Changes the pool. Returns the longest gap of each stream from then on until some time after
  /// the next epoch has taken over.
  std::vector<duration> scale(const std::string& pool, uint32_t members) {
    for (auto& x : watches_) x.longest = {};
    const auto epochs = where_.epochs.size();
    where_.scale(pool, members);
    CHECK(where_.run_until([&] { return look() || where_.epochs.size() > epochs; }, 30s));
    run(300ms);
    std::vector<duration> longest;
    for (const auto& x : watches_) longest.push_back(x.longest);
    CHECK(where_.changing() == "");
    run(300ms);
    return longest;
  }
  /// Of all gaps so far.
  duration median() {
    std::ranges::sort(gaps_);
    return gaps_.at(gaps_.size() / 2);
  }

private:
  bool look() {
    const auto now = where_.time.now();
    for (size_t i = 0; i < clients_.size(); ++i) {
      auto& x = watches_[i];
      const auto bytes = clients_[i]->streamed.size();
      if (bytes == x.bytes) continue;
      if (x.bytes > 0) {
        gaps_.push_back(now - x.last);
        x.longest = std::max(x.longest, gaps_.back());
      }
      x.bytes = bytes;
      x.last = now;
    }
    return false;
  }

  struct watch {
    size_t bytes = 0; ///< that have come
    time_point last{};
    duration longest{};
  };
  cluster where_;
  std::vector<std::shared_ptr<actors::test::fake_exchange>> clients_;
  std::vector<watch> watches_;
  std::vector<duration> gaps_;
};

/// The pauses of streams at planned changes, in iterations, ascending.
std::vector<double> pauses(uint32_t replicas) {
  std::vector<double> result;
  for (uint64_t seed = 1; seed <= 15; ++seed) {
    cluster_shape shape;
    shape.replicas = replicas;
    shape.shards = 1;
    shape.spares = 0;
    shape.slots = 4'000;
    shape.slowest_step = 5us;
    shape.slowest_message = 200us;
    shape.pace = pace;
    watched_streams x{shape, 4 * replicas, seed};
    const auto iteration = x.median();
    const auto change = [&](const std::string& pool, uint32_t members) {
      for (const auto gap : x.scale(pool, members))
        result.push_back(std::chrono::duration<double>{gap}
                         / std::chrono::duration<double>{iteration});
    };
    change("attention", 2);
    change("model", replicas + 1);
    change("attention", 1);
    change("model", replicas);
  }
  std::ranges::sort(result);
  return result;
}

} // namespace

TEST_CASE("L-M25 L-M03 no stream waits for longer than two iterations for a planned change") {
  for (const uint32_t replicas : {1u, 2u, 3u}) {
    CAPTURE(replicas);
    const auto all = pauses(replicas);
    const auto p50 = all.at(all.size() / 2), p99 = all.at(all.size() * 99 / 100);
    MESSAGE(replicas << " batches: pauses of planned changes in iterations: p50 " << p50 << ", p99 "
                     << p99 << ", longest " << all.back());
    // A batch waits for the others, so that each of n waits for (n - 1) / n of an iteration at
    // most.
    CHECK(p50 < 1.4);
    CHECK(p99 < 2);
    CHECK(all.back() < 2.5);
    if (replicas == 1) CHECK(all.back() < 1.1);
  }
}

} // namespace lamella::simulation
