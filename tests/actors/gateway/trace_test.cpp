// Recordings of a whole service: every slice of an iteration once and in order, and who is refused.
#include "actors/gateway/trace_audience.hpp"
#include "tests/actors/gateway/fake_exchange.hpp"
#include "tests/actors/gateway/served.hpp"

#include <atomic>
#include <future>
#include <map>

namespace lamella::actors::test {

using namespace std::chrono_literals;

namespace {

constexpr int64_t layers = 3;

/// A span that computes, of one lane.
struct computed {
  std::string name; ///< "slice 2"
  double begin = 0, end = 0;
};

/// By lane ("1/2": process and thread) and iteration, in the order of the trace.
using iterations = std::map<std::string, std::map<int64_t, std::vector<computed>>>;

iterations computed_in(const json_value& trace) {
  iterations result;
  const auto* events = trace.find("traceEvents");
  REQUIRE(events != nullptr);
  for (const auto& x : *events->get_if<json_value::array>()) {
    if (text_at(x, "ph") != "X" || text_at(x, "cat") != "compute") continue;
    const auto lane = std::to_string(int_at(x, "pid")) + "/" + std::to_string(int_at(x, "tid"));
    const auto begin = number_at(x, "ts");
    result[lane][int_at(x, "args.iteration")].push_back(
        {text_at(x, "name"), begin, begin + number_at(x, "dur")});
  }
  // The recording may cut the first and the last ones of a lane.
  for (auto& [lane, all] : result) {
    if (!all.empty()) all.erase(all.begin());
    if (!all.empty()) all.erase(std::prev(all.end()));
  }
  std::erase_if(result, [](const auto& x) { return x.second.empty(); });
  return result;
}

std::vector<std::string> replica_steps() {
  std::vector<std::string> names;
  for (int64_t k = 0; k <= layers; ++k) names.push_back("slice " + std::to_string(k));
  return names;
}

std::vector<std::string> shard_steps() {
  std::vector<std::string> names;
  for (int64_t l = 0; l < layers; ++l)
    for (const auto* word : {"attend_previous ", "attend_new "})
      names.push_back(word + std::to_string(l));
  return names;
}

bool is_replica(const std::vector<computed>& steps) {
  return steps.front().name.starts_with("slice");
}

/// Records while tokens are made, until replicas and shards have whole iterations.
json_value record_tokens(served& s) {
  std::atomic<bool> enough{false};
  auto asking = std::async(std::launch::async, [&] {
    while (!enough)
      s.post("/v1/completions",
             R"({"model":"tiny","prompt":"on","max_tokens":64,"ignore_eos":true})");
  });
  json_value trace;
  const bool found = eventually([&] {
    const auto got = s.admin("POST", "/admin/trace?for=0.2");
    if (got.status != 200) return false;
    trace = got.json;
    bool slices = false, attention = false;
    for (const auto& [lane, all] : computed_in(trace))
      (is_replica(all.begin()->second) ? slices : attention) = true;
    return slices && attention;
  });
  enough = true;
  asking.get();
  CHECK(found);
  return trace;
}

} // namespace

TEST_CASE("a trace has each slice of an iteration, and the attention of each layer, once and in "
          "order") {
  served s{tiny_settings(layers)};
  const auto trace = record_tokens(s);
  size_t replicas = 0, shards = 0;
  for (const auto& [lane, all] : computed_in(trace)) {
    CAPTURE(lane);
    const bool slices = is_replica(all.begin()->second);
    ++(slices ? replicas : shards);
    for (const auto& [iteration, steps] : all) {
      CAPTURE(iteration);
      std::vector<std::string> names;
      for (const auto& x : steps) names.push_back(x.name);
      CHECK(names == (slices ? replica_steps() : shard_steps()));
      for (size_t i = 1; i < steps.size(); ++i) CHECK(steps[i].begin >= steps[i - 1].end - 0.002);
    }
  }
  CHECK(replicas >= 1);
  CHECK(shards >= 1);
  CHECK(size_at(trace, "otherData.left_out") == 0);
  for (size_t i = 0; i < size_at(trace, "otherData.workers"); ++i)
    CHECK(text_at(trace, "otherData.workers." + std::to_string(i) + ".clock") == "shared");
}

TEST_CASE("one recording at a time, and of a time within bounds") {
  served s;
  for (const std::string wrong : {"0.01", "31", "x", "", "nan", "1s"}) {
    CAPTURE(wrong);
    const auto got = s.admin("POST", "/admin/trace?for=" + wrong);
    CHECK(got.status == 400);
    CHECK(text_at(got.json, "error.param") == "for");
  }
  CHECK(s.admin("GET", "/admin/trace").status == 405);
  CHECK(s.get("/admin/trace").status == 404); // the public listener
  net::http_client client{s.admin_url()};
  auto first = std::async(std::launch::async, [&] {
    try {
      while (client.post("/admin/trace?for=30", "", deadline).status == 409) continue;
    } catch (const net::http_call_error&) { // aborted below
    }
  });
  CHECK(eventually([&] {
    const auto got = s.admin("POST", "/admin/trace?for=0.05");
    return got.status == 409 && text_at(got.json, "error.code") == "trace_under_way";
  }));
  client.abort();
  first.get();
  // With its asker the recording is gone.
  CHECK(eventually([&] { return s.admin("POST", "/admin/trace?for=0.05").status == 200; }));
}

TEST_CASE("those who take a recent recording share one, and it does not end with who asked first") {
  served s;
  for (const std::string wrong : {"-1", "11", "x"})
    CHECK(text_at(s.admin("POST", "/admin/trace?newest=" + wrong).json, "error.param") == "newest");
  // The first one leaves; the second one gets what was recorded for both.
  net::http_client client{s.admin_url()};
  auto first = std::async(std::launch::async, [&] {
    try {
      while (client.post("/admin/trace?for=2&newest=10", "", deadline).status == 409) continue;
    } catch (const net::http_call_error&) { // aborted below
    }
  });
  REQUIRE(eventually([&] {
    return text_at(s.admin("POST", "/admin/trace?for=0.05").json, "error.code")
           == "trace_under_way";
  }));
  auto second = std::async(std::launch::async,
                           [&] { return s.admin("POST", "/admin/trace?for=0.05&newest=10"); });
  client.abort();
  first.get();
  const auto got = second.get();
  REQUIRE(got.status == 200);
  CHECK(number_at(got.json, "otherData.seconds") == 2); // of the one who left
  // It is still there, and not what somebody gets who takes no other one's.
  const auto again = s.admin("POST", "/admin/trace?for=0.05&newest=10");
  CHECK(text_at(again.json, "otherData.time") == text_at(got.json, "otherData.time"));
  CHECK(number_at(s.admin("POST", "/admin/trace?for=0.05").json, "otherData.seconds") == 0.05);
  CHECK(number_at(s.admin("POST", "/admin/trace?for=0.05&newest=0").json, "otherData.seconds")
        == 0.05);
}

TEST_CASE("a recording is given to all who wait for it, 32 at most, and to those who come soon") {
  const auto exchange = [] { return std::make_shared<fake_exchange>(""); };
  const trace_audience::time_point begin{};
  const auto first = exchange();
  auto recording = std::make_shared<bool>(true);
  trace_audience x{first, begin, recording};
  std::vector<std::shared_ptr<fake_exchange>> others;
  for (size_t i = 1; i < trace_audience::waiting_max; ++i)
    CHECK(x.take_in(others.emplace_back(exchange()), begin, 0s));
  CHECK_FALSE(x.take_in(exchange(), begin, 9s));
  CHECK(first->status == 0);
  x.deliver("{}");
  CHECK(first->status == 200);
  for (const auto& each : others) CHECK(each->body == "{}");
  const auto late = exchange();
  CHECK_FALSE(x.take_in(late, begin + 3s, 2s));
  CHECK(x.take_in(late, begin + 2s, 2s));
  CHECK(late->body == "{}");
  const auto refused = exchange();
  trace_audience none{refused, begin, recording};
  none.refuse(net::no_capacity("later"));
  CHECK(refused->status == 503);
  CHECK_FALSE(none.take_in(exchange(), begin, 9s));
  trace_audience large{exchange(), begin, recording};
  large.deliver(std::string(trace_audience::kept_bytes_max + 1, ' '));
  CHECK_FALSE(large.take_in(exchange(), begin, 9s));
  trace_audience left{exchange(), begin, recording};
  CHECK(left.take_in(exchange(), begin, 0s));
  recording.reset(); // TRACER has ended without an answer
  CHECK_FALSE(left.take_in(exchange(), begin, 9s));
}

TEST_CASE("status tells how busy each device was") {
  served s;
  CHECK(eventually([&] {
    s.post("/v1/completions", R"({"model":"tiny","prompt":"on","max_tokens":8})");
    const auto page = s.admin("GET", "/admin/status").json;
    return number_at(page, "workers.0.busy") > 0 && number_at(page, "workers.0.busy") <= 1;
  }));
}

} // namespace lamella::actors::test
