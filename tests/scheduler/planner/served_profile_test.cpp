// Profiles as tables, and the times that come of them.
#include "scheduler/planner/served_profile.hpp"

#include <doctest/doctest.h>

#include <sstream>

using namespace lamella::scheduler;

namespace {

/// A machine whose times follow formulas, so that every prediction is known.
double iteration_of(double rows, double each) { return 2e-3 + 1e-4 * rows + 1e-7 * rows * each; }
double prompt_of(double tokens, double chunk) {
  double seconds = 0;
  for (double at = 0; at < tokens; at += chunk) {
    const auto n = std::min(chunk, tokens - at);
    seconds += 1e-3 + 2e-4 * n + 4e-8 * n * at;
  }
  return seconds;
}

served_profile made() {
  served_profile p;
  p.model = "a \"model\", of ours";
  p.kernels = "avx2";
  p.threads = 2;
  p.limits = {10'000, 32, 512, 64, 8192};
  for (const double rows : {1., 8., 64.})
    for (const double context : {100., 1000., 2000.})
      p.decode.push_back({rows, context + rows, iteration_of(rows, context + rows)});
  for (const double tokens : {32., 128., 512., 2048., 4096.})
    p.prefill.push_back({tokens, prompt_of(tokens, 512)});
  p.sharing = {{1, 0.4, 0.6}, {64, 0.6, 0.3}};
  return p;
}

std::string text_of(const served_profile& p) {
  std::ostringstream out;
  write_served_profile(out, p);
  return out.str();
}

std::string error_of(const std::string& text) {
  std::istringstream in{text};
  try {
    served_cost{read_served_profile(in)};
  } catch (const table_error& e) {
    return e.what();
  }
  return {};
}

/// The text with one line in place of the line that begins with `start`; without it if empty.
std::string with(std::string text, const std::string& start, const std::string& line) {
  const auto at = text.find("\n" + start) + 1;
  REQUIRE(at != 0);
  const auto end = text.find('\n', at) + 1;
  return text.replace(at, end - at, line.empty() ? "" : line + "\n");
}

prefill_piece piece(uint32_t position, uint32_t tokens) {
  return {sequence_id{1}, position, tokens, false};
}

} // namespace

TEST_CASE("S-M23 a profile that is written and read is the same") {
  std::istringstream in{text_of(made())};
  CHECK(read_served_profile(in) == made());
}

TEST_CASE("S-M23 a profile that cannot be used says which line is wrong, or what is missing") {
  const auto good = text_of(made());
  CHECK(error_of(good).empty());
  const auto has = [](const std::string& text, const std::string& part) {
    INFO(text);
    return text.find(part) != std::string::npos;
  };
  CHECK(has(error_of(""), "empty"));
  CHECK(has(error_of("a,b\n1,2\n"), "'what'"));
  CHECK(has(error_of(with(good, "version", "version,,,,1")), "line 2: a profile of version 1"));
  CHECK(has(error_of(with(good, "version", "")), "begins with its version"));
  CHECK(has(error_of(with(good, "threads", "threads,,,,0")), "line 5: value: '0' is not within"));
  CHECK(has(error_of(with(good, "threads", "threads,,,,1.5")), "not a whole number"));
  CHECK(has(error_of(with(good, "threads", "threads,,,,1,2")), "line 5: 6 fields"));
  CHECK(has(error_of(with(good, "slots", "slots,,,,-4")), "not within"));
  CHECK(has(error_of(with(good, "decode_s,1,", "decode_s,1,5,,nan")), "not a number"));
  CHECK(has(error_of(with(good, "decode_s,1,", "decode_s,1,5,,0")), "not within"));
  CHECK(has(error_of(with(good, "decode_s,1,", "decode_s,0,5,,1")), "rows: '0'"));
  CHECK(has(error_of(with(good, "decode_s,1,", "decode_s,1,-5,,1")), "context: '-5'"));
  CHECK(has(error_of(with(good, "decode_rate,1,", "decode_rate,1,,,1.2")), "not within"));
  CHECK(has(error_of(with(good, "decode_rate,1,", "")), "not both"));
  CHECK(has(error_of(with(good, "decode_rate,1,", "speed,1,,,1")), "'speed' is nothing"));
  CHECK(has(error_of(with(good, "prefill_s,,,32,", "prefill_s,,,128,1")), "twice"));
  CHECK(has(error_of(with(good, "model", "")), "no row of model"));
  CHECK(has(error_of(with(good, "model", "model,,,,")), "1 to 200 characters"));
  CHECK(has(error_of(with(good, "chunk_tokens", "chunk_tokens,,,,16")), "of at most one chunk"));
}

TEST_CASE("S-M23 iterations come out on, between and beyond the measured points") {
  const served_cost cost{made()};
  for (const double rows : {1., 3., 8., 40., 64., 90.})
    for (const double each : {20., 101., 700., 1800., 5000.}) {
      CAPTURE(rows);
      CAPTURE(each);
      // Linear in the context, and in the rows at one context: between batches there are only the
      // straight lines of the formula.
      CHECK(cost.iteration_s(rows, rows * each)
            == doctest::Approx(iteration_of(rows, each)).epsilon(1e-9));
    }
  CHECK(cost.iteration_s(0, 0) == 0);
  CHECK(!cost.beyond(8, 8 * 500));
  CHECK(cost.beyond(8, 8 * 5000));
  CHECK(cost.beyond(65, 65 * 500));
}

TEST_CASE("S-M23 noise never makes more work quicker, nor any time negative") {
  auto p = made();
  p.decode = {{1, 100, 5e-3}, {1, 200, 3e-3}, {1, 300, 6e-3}, {8, 100, 2e-3}, {8, 300, 9e-3}};
  p.prefill = {{32, 1e-3}, {512, 400e-3}, {2048, 0.2}};
  const served_cost cost{p};
  double before = 0;
  for (double each = 1; each < 2000; each += 7) {
    const auto now = cost.iteration_s(1, each);
    CHECK(now > 0);
    CHECK(now >= before);
    CHECK(cost.iteration_s(8, 8 * each) >= now);
    before = now;
  }
  for (const uint32_t tokens : {1u, 7u, 31u, 512u}) {
    const prefill_piece one[] = {piece(0, tokens)};
    CHECK(cost.chunk_s(one) > 0);
  }
}

TEST_CASE("S-M10 a chunk costs what its tokens and the positions before them cost") {
  const served_cost cost{made()};
  for (const uint32_t at : {0u, 512u, 4096u}) {
    const prefill_piece one[] = {piece(at, 512)};
    CHECK(cost.chunk_s(one) == doctest::Approx(1e-3 + 2e-4 * 512 + 4e-8 * 512 * at).epsilon(1e-6));
  }
  // Two short prompts of one iteration share its constant part, and do not attend to each other.
  const prefill_piece two[] = {piece(0, 64), piece(0, 64)};
  const prefill_piece one[] = {piece(0, 64)};
  CHECK(cost.chunk_s(two) < 2 * cost.chunk_s(one));
  CHECK(cost.chunk_s(two) == doctest::Approx(1e-3 + 2e-4 * 128 - 4e-8 * 64 * 64).epsilon(1e-6));
  CHECK(cost.chunk_s({}) == 0);
}

TEST_CASE("S-M23 rates lie between measured contexts, too, where a profile tells of them") {
  auto p = made();
  p.sharing = {{1, 0.4, 0.6, 100}, {1, 0.6, 0.4, 1100}, {64, 0.5, 0.5, 100}, {64, 0.9, 0.1, 1100}};
  std::istringstream in{text_of(p)};
  CHECK(read_served_profile(in) == p);
  const served_cost cost{p};
  CHECK(cost.decode_rate(1, 100) == doctest::Approx(0.4));
  CHECK(cost.decode_rate(1, 600) == doctest::Approx(0.5));
  CHECK(cost.decode_rate(64, 64 * 600) == doctest::Approx(0.7));
  CHECK(cost.decode_rate(32.5, 32.5 * 600) == doctest::Approx(0.6));
  CHECK(cost.prefill_rate(64, 64 * 600) == doctest::Approx(0.3));
  CHECK(cost.decode_rate(64, 64 * 5000) == doctest::Approx(0.9));
  CHECK(cost.decode_rate(64, 64 * 5) == doctest::Approx(0.5));
  // A profile of before, or of a service that was measured at one context, says the same of all.
  const served_cost older{made()};
  CHECK(older.decode_rate(1, 100) == older.decode_rate(1, 5000));
}

TEST_CASE("S-M23 rates lie between measured prompts, too, by where their tokens are on average") {
  auto p = made();
  p.sharing = {{1, 0.6, 0.4, 100, 512}, {1, 0.4, 0.6, 100, 2048}};
  std::istringstream in{text_of(p)};
  CHECK(read_served_profile(in) == p);
  const served_cost cost{p};
  const prefill_piece chunk[] = {piece(0, 512)};
  const prefill_piece late[] = {piece(384, 512)};
  const prefill_piece far[] = {piece(4096, 512)};
  const prefill_piece many[] = {piece(0, 256), piece(0, 128), piece(0, 128)};
  CHECK(mean_position(chunk) == doctest::Approx(256));
  CHECK(mean_position(late) == doctest::Approx(640));
  CHECK(mean_position(many) == doctest::Approx(96));
  CHECK(mean_position({}) == 0);
  CHECK(cost.decode_rate(1, 100, mean_position(chunk)) == doctest::Approx(0.6));
  CHECK(cost.decode_rate(1, 100, mean_position(late)) == doctest::Approx(0.5));
  CHECK(cost.prefill_rate(1, 100, mean_position(late)) == doctest::Approx(0.5));
  CHECK(cost.decode_rate(1, 100, mean_position(far)) == doctest::Approx(0.4));
  CHECK(cost.decode_rate(1, 100, mean_position(many)) == doctest::Approx(0.6));
}

TEST_CASE("rates lie between measured batches and stay constant beyond them") {
  const served_cost cost{made()};
  CHECK(cost.decode_rate(1) == doctest::Approx(0.4));
  CHECK(cost.decode_rate(32.5) == doctest::Approx(0.5));
  CHECK(cost.decode_rate(1000) == doctest::Approx(0.6));
  CHECK(cost.prefill_rate(32.5) == doctest::Approx(0.45));
}
