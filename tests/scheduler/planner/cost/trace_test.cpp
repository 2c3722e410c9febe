#include "scheduler/planner/cost/trace.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <sstream>

using namespace lamella::scheduler;

namespace {

request_trace read(const std::string& text) {
  std::istringstream in{text};
  return read_trace(in);
}

std::string refusal(const std::string& text) {
  try {
    read(text);
  } catch (const table_error& e) {
    return e.what();
  }
  return "";
}

const std::string head = "arrival_s,prompt_tokens,output_tokens\n";

} // namespace

TEST_CASE("our own columns, in any order of rows, begin at time 0") {
  const auto t = read(head + "7.5,17,3\n5,1,54\n");
  REQUIRE(t.size() == 2);
  CHECK(t[0] == trace_request{0, 1, 54, {}});
  CHECK(t[1] == trace_request{2.5, 17, 3, {}});
}

TEST_CASE("the Azure original and Mooncake's lines are read directly") {
  const auto azure =
      read("TIMESTAMP,ContextTokens,GeneratedTokens\r\n"
           "2023-11-16 23:59:59.5000000,374,44\r\n2023-11-17 00:00:01.2500000,396,109\r\n");
  REQUIRE(azure.size() == 2);
  CHECK(azure[1].arrival_s == doctest::Approx(1.75));
  CHECK(azure[1].prompt_tokens == 396);
  const auto kimi = read("{\"timestamp\": 27000, \"input_length\": 6758, \"output_length\": 500, "
                         "\"hash_ids\": [0, 1, 54]}\n\n{\"timestamp\": 30000, \"input_length\": 1, "
                         "\"output_length\": 2, \"hash_ids\": []}\n");
  REQUIRE(kimi.size() == 2);
  CHECK(kimi[0].prefix_blocks == std::vector<uint32_t>{0, 1, 54});
  CHECK(kimi[1].arrival_s == 3);
}

TEST_CASE("writing and reading gives the same trace") {
  const uint64_t seed = 17;
  auto t =
      with_shared_prefixes(with_arrivals(uniform_trace(54, 2000, 17, seed), 3, seed), 0.5, 3, seed);
  std::ostringstream out;
  write_trace(out, t);
  const auto again = read(out.str());
  REQUIRE(again.size() == t.size());
  for (size_t i = 0; i < t.size(); ++i) {
    CHECK(again[i].arrival_s == doctest::Approx(t[i].arrival_s));
    CHECK(again[i].prefix_blocks == t[i].prefix_blocks);
    CHECK(again[i].output_tokens == t[i].output_tokens);
  }
}

TEST_CASE("bad rows are refused with their line") {
  CHECK(refusal(head) == "the trace has no requests");
  CHECK(refusal("").find("empty") != std::string::npos);
  CHECK(refusal(head + "0,1,1\n0,-1,1\n").find("line 3: prompt_tokens: '-1'") == 0);
  CHECK(refusal(head + "0,1,0\n").find("line 2: output_tokens") == 0);
  CHECK(refusal(head + "0,1.5,1\n").find("whole number") != std::string::npos);
  CHECK(refusal(head + "0,1,99999999999\n").find("not within") != std::string::npos);
  CHECK(refusal(head + "-3,1,1\n").find("line 2: arrival_s") == 0);
  CHECK(refusal(head + "0,1\n").find("line 2: 2 fields") == 0);
  CHECK(refusal(head + "inf,1,1\n") != "");
  CHECK(refusal("time,in,out\n1,1,1\n").find("arrival_s") != std::string::npos);
  CHECK(refusal("{\"timestamp\": 1, \"input_length\": 5}\n")
            .find("line 1: no member \"output_length\"")
        == 0);
  CHECK(refusal("{\"timestamp\": 1, \"input_length\": -5, \"output_length\": 1}\n").find("line 1")
        == 0);
  CHECK(refusal("TIMESTAMP,ContextTokens,GeneratedTokens\nyesterday,1,1\n").find("line 2") == 0);
  CHECK(refusal(head + std::string(1, '\0') + "\n").find("zero byte") != std::string::npos);
}

TEST_CASE(
    "N-M25 synthetic lengths lie within a tenth of the mean, arrivals have the rate asked for") {
  const uint64_t seed = 7;
  const auto t = uniform_trace(20'000, 1000, 100, seed);
  double in = 0, out = 0;
  for (const auto& x : t) {
    CHECK((x.prompt_tokens >= 900 && x.prompt_tokens <= 1100));
    CHECK((x.output_tokens >= 90 && x.output_tokens <= 110));
    in += x.prompt_tokens;
    out += x.output_tokens;
  }
  CHECK(in / 20'000 == doctest::Approx(1000).epsilon(0.005));
  CHECK(out / 20'000 == doctest::Approx(100).epsilon(0.005));
  for (const double shape : {1.0, 0.25, 3.0}) {
    const auto a = with_arrivals(t, 5, seed, shape);
    CHECK(a.back().arrival_s == doctest::Approx(20'000 / 5.0).epsilon(0.05));
    double mean = a.back().arrival_s / 19'999, square = 0;
    for (size_t i = 1; i < a.size(); ++i)
      square += std::pow(a[i].arrival_s - a[i - 1].arrival_s - mean, 2) / 19'999;
    CHECK(square / (mean * mean) == doctest::Approx(1 / shape).epsilon(0.1)); // of a gamma
  }
}

TEST_CASE("shuffling keeps arrivals and requests, and changes who comes when") {
  const auto t = with_arrivals(uniform_trace(1000, 500, 50, 1), 2, 1);
  const auto s = shuffled(t, 54);
  CHECK(summary_of(s).prompt_mean == doctest::Approx(summary_of(t).prompt_mean));
  size_t moved = 0;
  for (size_t i = 0; i < t.size(); ++i) {
    CHECK(s[i].arrival_s == t[i].arrival_s);
    moved += s[i].prompt_tokens != t[i].prompt_tokens;
  }
  CHECK(moved > 900);
}

TEST_CASE("dates are whole microseconds from the first request on") {
  const auto azure =
      read("TIMESTAMP,ContextTokens,GeneratedTokens\n9998-12-31 23:59:59.9999990,1,1\n"
           "9999-01-01 00:00:00,1,1\n9999-01-01 00:00:00.0000016,1,1\n");
  REQUIRE(azure.size() == 3);
  CHECK(azure[0].arrival_s == 0);
  CHECK(azure[1].arrival_s == 1e-6);
  CHECK(azure[2].arrival_s == 3e-6);
  const lamella::scheduler::request_trace long_one{{0, 1, 1, {}}, {12345678.901234, 1, 1, {}}};
  std::ostringstream out;
  write_trace(out, long_one);
  CHECK(read(out.str()) == long_one);
}

TEST_CASE("times may have a zone, and texts the mark of some editors; half a row is refused") {
  const auto azure = read("\xef\xbb\xbfTIMESTAMP,ContextTokens,GeneratedTokens\n"
                          "2024-05-10 01:00:00.5+02:00,374,44\n2024-05-09T23:00:01.5Z,396,109\n"
                          "2024-05-09 17:30:02.500000-05:30,1,1\n");
  REQUIRE(azure.size() == 3);
  CHECK(azure[1].arrival_s == doctest::Approx(1));
  CHECK(azure[2].arrival_s == doctest::Approx(2));
  const auto rows = [](const std::string& time) {
    return refusal("TIMESTAMP,ContextTokens,GeneratedTokens\n" + time + ",1,1\n");
  };
  for (const char* good :
       {"2024-02-29 00:00:00", "2023-11-16T23:59:60Z", "1970-01-01 00:00:00+14:00"}) {
    CAPTURE(good);
    CHECK(rows(good).empty());
  }
  for (const char* bad :
       {"2023-02-29 00:00:00", "2100-02-29 00:00:00", "2023-04-31 00:00:00",
        "2023-11-16 18:15:0x1p3", "2023-11-16 18:15:inf", "2023-11-16 18:15:4e1",
        "2023-11-16 18:15:46.", "2023-11-16 18:15:+6", "2023-11-16 18:15: 6", "2023-1-16 18:15:46",
        "2023-11-16 18:15:46xyz", "2023-02-30 00:00:00", "2023-11-16 18:15:46+25:00",
        "2023-11-16 18:15:46 +01:00", "2023-11-16 18:15:46Z2"}) {
    CAPTURE(bad);
    CHECK(rows(bad).find("line 2: ") == 0);
  }
  CHECK(read("\xef\xbb\xbf{\"timestamp\": 1, \"input_length\": 5, \"output_length\": 3}\n").size()
        == 1);
  CHECK(refusal("\xef\xbbxx,1,1\n").find("line 1: ") == 0);
  CHECK(refusal("{\"timestamp\": 1, \"input_length\": 5, \"output_length\": 3}\n"
                "{\"timestamp\": 1, \"input_length\": 5, \"output_length\": 3\n")
        == "line 2: not a whole JSON object");
}
