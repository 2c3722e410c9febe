// `lamella bench compare`: ratios of two servers, from records written by hand.
#include "base/json.hpp"
#include "cli/bench/bench_compare.hpp"
#include "cli/client.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <random>

using namespace lamella::cli;
using std::chrono::microseconds;

namespace {

bench_record record(double ttft_ms, double gap_ms, uint32_t tokens = 11) {
  bench_record r;
  r.first = microseconds{static_cast<int64_t>(ttft_ms * 1e3)};
  r.gaps_ms.assign(tokens - 1, static_cast<float>(gap_ms));
  r.pieces = tokens;
  r.end = r.last = r.first + microseconds{static_cast<int64_t>(gap_ms * 1e3) * (tokens - 1)};
  return r;
}

bench_result result(double ttft_ms, double gap_ms, double seconds = 1) {
  bench_result x;
  x.records = {record(ttft_ms, gap_ms), record(ttft_ms * 3, gap_ms)};
  x.duration_s = seconds;
  return x;
}

} // namespace

TEST_CASE("a server that is the same has ratios of one, one that is twice as slow of two") {
  std::vector<compared_round> rounds;
  for (int i = 1; i <= 6; ++i) // a machine that slows down
    rounds.push_back({result(10 * i, 2 * i, i), result(20 * i, 4 * i, 2 * i)});
  const auto [throughput, ttft, tbt] = compare(rounds, 7);
  CHECK(throughput.a == doctest::Approx(6 * 22 / 21.0));
  CHECK(throughput.ratio == doctest::Approx(0.5));
  CHECK(throughput.low == doctest::Approx(0.5));
  CHECK(throughput.high == doctest::Approx(0.5));
  CHECK(ttft.ratio == doctest::Approx(2));
  CHECK(ttft.low == doctest::Approx(2));
  CHECK(tbt.b == doctest::Approx(14));
  CHECK(tbt.high == doctest::Approx(2));
  for (auto& x : rounds) x.b = x.a;
  for (const auto& x : compare(rounds, 7)) {
    CAPTURE(x.name);
    CHECK(x.ratio == doctest::Approx(1));
    CHECK(x.low == doctest::Approx(1));
    CHECK(x.high == doctest::Approx(1));
  }
}

TEST_CASE("intervals depend on the seed alone, hold the ratio, and narrow with more rounds") {
  const auto noisy = [](size_t count) {
    std::mt19937_64 random{1};
    const auto noise = [&] { return 1 + static_cast<double>(random() % 1000) / 2500; };
    std::vector<compared_round> rounds;
    while (rounds.size() < count)
      rounds.push_back({result(10 * noise(), 2), result(11 * noise(), 2)});
    return rounds;
  };
  const auto few = compare(noisy(6), 3)[1], same = compare(noisy(6), 3)[1];
  const auto many = compare(noisy(200), 3)[1];
  CHECK(few.low == same.low);
  CHECK(few.high == same.high);
  CHECK(few.low < few.ratio);
  CHECK(few.ratio < few.high);
  CHECK(many.low > 1);
  CHECK(many.high - many.low < (few.high - few.low) / 2);
}

TEST_CASE("latencies are of requests that both servers answered") {
  compared_round round{result(10, 2), result(10, 2)};
  round.b.records[1].error = "429 queue_full";
  const auto [throughput, ttft, tbt] = compare({round, round}, 0);
  CHECK(ttft.a == doctest::Approx(10)); // of the first request alone
  CHECK(ttft.ratio == doctest::Approx(1));
  CHECK(throughput.ratio == doctest::Approx(0.5));
  CHECK(tbt.ratio == doctest::Approx(1));
}

TEST_CASE("what has no value has no ratio, and one round has no interval") {
  compared_round round{result(10, 2), result(10, 2)};
  for (auto* x : {&round.a, &round.b})
    for (auto& r : x->records) r.gaps_ms.clear();
  const auto [throughput, ttft, tbt] = compare({round}, 0);
  CHECK(std::isnan(tbt.ratio));
  CHECK(ttft.ratio == doctest::Approx(1));
  CHECK(std::isnan(ttft.low));
  CHECK(std::isnan(compare({}, 0)[0].ratio));
}

TEST_CASE("a comparison is a table and JSON with every round") {
  comparison x;
  x.url_a = "http://a";
  x.url_b = "http://b";
  x.options_a.seed = x.options_b.seed = 5;
  x.rounds = {{result(10, 2), result(20, 2)}, {result(10, 2), result(20, 2)}};
  x.figures = compare(x.rounds, 5);
  const auto block = comparison_block(x);
  CHECK(block.find("seed 5") != std::string::npos);
  CHECK(block.find("note: few rounds") != std::string::npos);
  CHECK(block.find("2.000  2.000 to 2.000\n") != std::string::npos);
  CHECK(block.find("1.000  1.000 to 1.000 (no difference is shown)\n") != std::string::npos);
  const auto json = lamella::parse_json(comparison_json(x, true));
  CHECK(number_or(find_path(json, {"ratios", "mean_ttft_ms", "ratio"}), 0) == doctest::Approx(2));
  CHECK(number_or(find_path(json, {"b", "1", "mean_ttft_ms"}), 0) == doctest::Approx(40));
  CHECK(number_or(find_path(json, {"b", "1", "lamella", "seed"}), 0) == 6);
  CHECK(find_path(json, {"a", "0", "ttfts", "1"}) != nullptr);
}
