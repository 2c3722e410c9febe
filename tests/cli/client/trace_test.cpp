// Traces as operators record and draw them: the real binary, and a server that says what a test
// wants.
#include "cli/client/trace.hpp"
#include "cli/client/trace_picture.hpp"
#include "cli/commands.hpp"
#include "tests/cli/client/fake_admin.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

using namespace lamella::cli;
using lamella::tests::fake_admin;
using lamella::tests::run_shell;
using lamella::tests::scratch_folder;

namespace {

std::string name_of(const char* what, int process, int thread, const std::string& name) {
  return R"({"name":")" + std::string{what} + R"(","ph":"M","pid":)" + std::to_string(process)
         + R"(,"tid":)" + std::to_string(thread) + R"(,"args":{"name":")" + name + R"("}},)";
}

std::string span_of(const std::string& name, const char* kind, int process, double begin,
                    double length, int iteration, int number) {
  return R"({"name":")" + name + R"(","cat":")" + kind + R"(","ph":"X","ts":)"
         + std::to_string(begin) + R"(,"dur":)" + std::to_string(length) + R"(,"pid":)"
         + std::to_string(process) + R"(,"tid":1,"args":{"iteration":)" + std::to_string(iteration)
         + R"(,"number":)" + std::to_string(number) + "}}";
}

/// A replica and a shard, eight iterations of two slices.
std::string some_trace() {
  std::string events = name_of("process_name", 1, 0, "model/0 (replica <0>)")
                       + name_of("thread_name", 1, 1, "batch 0, host/model/0")
                       + name_of("process_name", 2, 0, "attention/0 (shard 0)")
                       + name_of("thread_name", 2, 1, "batch 0, host/attention/0");
  for (int i = 0; i < 8; ++i) {
    const auto at = i * 1000.;
    events += span_of("slice 0", "compute", 1, at, 300, i, 0) + ",";
    events += span_of("send_q 0", "send", 1, at + 100, 10, i, 0) + ",";
    events += span_of("recv_attention 0", "wait", 1, at + 300, 300, i, 0) + ",";
    events += span_of("attend_previous 0", "compute", 2, at + 120, 200, i, 0) + ",";
    events += span_of("slice 1", "compute", 1, at + 600, 300, i, 1) + (i == 7 ? "" : ",");
  }
  return R"({"otherData":{"version":1,"model":"tiny","time":"now","seconds":0.5,"workers":[)"
         R"({"seat":"model/0","clock":"shared","error_us":0,"spans":32,"dropped":0},)"
         R"({"seat":"attention/0","clock":"measured","error_us":41.2,"spans":8,"dropped":5}],)"
         R"("left_out":[{"seat":"attention/1","reason":"it did not begin"}]},"traceEvents":[)"
         + events + "]}";
}

size_t count_of(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

bool has(const std::string& text, const std::string& part) { return count_of(text, part) > 0; }

std::string read(const std::filesystem::path& file) {
  std::ifstream in{file};
  return {std::istreambuf_iterator<char>{in}, {}};
}

} // namespace

TEST_CASE("A trace is read into lanes in the order of its workers") {
  const auto trace = read_trace(some_trace(), "it");
  REQUIRE(trace.lanes.size() == 2);
  CHECK(trace.lanes[0].worker == "model/0 (replica <0>)");
  CHECK(trace.lanes[1].lane == "batch 0, host/attention/0");
  CHECK(trace.lanes[0].spans.size() == 32);
  CHECK(trace.lanes[1].spans[1].begin == 1120);
  CHECK(trace.left_out == std::vector<std::string>{"attention/1: it did not begin"});
  for (const auto* wrong : {"", "[1", "{}", R"({"traceEvents":[]})"}) {
    CAPTURE(wrong);
    CHECK_THROWS_AS(read_trace(wrong, "it"), command_error);
  }
}

TEST_CASE("The picture shows two iterations from the middle, or as much as is asked for") {
  const auto trace = read_trace(some_trace(), "it");
  CHECK(choose_window(trace).begin == 3000);
  CHECK(choose_window(trace).end == 5000);
  CHECK(choose_window(trace, 500).end == 3500);
  CHECK(choose_window(trace, 500, 100).begin == 100);
  CHECK(choose_window(trace, 0, 1500).begin == 2000);
  CHECK(choose_window(trace, 0, 1500).end == 4000);
  CHECK(choose_window({}).end > choose_window({}).begin);
}

TEST_CASE("The picture has every lane, a colour for each kind, an axis and a legend") {
  const auto trace = read_trace(some_trace(), "it");
  const auto picture = trace_picture(trace, choose_window(trace));
  CHECK(picture.starts_with("<svg "));
  CHECK(picture.ends_with("</svg>\n"));
  CHECK(has(picture, "model/0 (replica &lt;0&gt;)"));
  CHECK(has(picture, "batch 0, host/attention/0"));
  CHECK(count_of(picture, "<title>slice 0, ") == 2);
  CHECK(count_of(picture, "<title>attend_previous 0, ") == 2);
  CHECK(count_of(picture, "<title>send_q 0, ") == 2);
  CHECK(count_of(picture, "<title>recv_attention 0, ") == 2);
  for (const auto* words : {"slice of a replica", "wait for another device", "milliseconds"})
    CHECK(has(picture, words));
  CHECK_FALSE(has(picture, "sample</text>")); // of which there is none
  CHECK(has(trace_picture({}, choose_window({})), "Nothing ran"));
}

TEST_CASE("A time is a number with a unit, within bounds") {
  CHECK(trace_seconds("2s", "--for", .05, 30) == 2);
  CHECK(trace_seconds("0.5", "--for", .05, 30) == .5);
  CHECK(trace_seconds("50ms", "--for", .05, 30) == doctest::Approx(.05));
  CHECK(trace_seconds("20us", "--window", 1e-5, 30) == doctest::Approx(2e-5));
  for (const auto* wrong : {"", "s", "-1s", "31s", "1ms", "2h", "nan", "1 s"}) {
    CAPTURE(wrong);
    CHECK_THROWS_AS(trace_seconds(wrong, "--for", .05, 30), command_error);
  }
}

TEST_CASE("lamella trace writes what the server recorded, draws it, and says what is missing") {
  const scratch_folder folder;
  fake_admin server;
  server.answers["POST /admin/trace"] = {{200, some_trace()}};
  const auto json = (folder / "t.json").string(), svg = (folder / "t.svg").string();
  const auto got = server.run("trace --for 250ms -o " + json + " --svg " + svg);
  CHECK(got.code == 0);
  CHECK(server.queries == std::vector<std::string>{"for=0.25"});
  CHECK(read(json) == some_trace());
  CHECK(has(read(svg), "<title>slice 0, "));
  CHECK(has(got.out, "measured, within 41 us"));
  CHECK(has(got.out, "perfetto"));
  CHECK(has(got.err, "left out: attention/1: it did not begin"));
  const auto again = (folder / "again.svg").string();
  const auto drawn =
      run_shell(folder / ".", "lamella trace --from " + json + " --svg " + again + " --window 1ms");
  CHECK(drawn.code == 0);
  CHECK(has(read(again), "3.00 to 4.00 ms"));
}

TEST_CASE("lamella trace tells mistakes before it asks, and the server's reason of a refusal") {
  const scratch_folder folder;
  fake_admin server;
  CHECK(server.run("trace --for 31s").code == exit_usage);
  CHECK(server.run("trace --window 1ms").code != 0); // without --svg
  CHECK(server.queries.empty());
  server.answers["POST /admin/trace"] = {
      {409, R"({"error":{"message":"a recording is under way","code":"trace_under_way"}})"}};
  const auto busy = server.run("trace");
  CHECK(busy.code == exit_failure);
  CHECK(has(busy.err, "a recording is under way"));
  server.answers["POST /admin/trace"] = {{404, "{}"}};
  CHECK(has(server.run("trace").err, "admin.listen of a 'lamella serve' of this version"));
  server.answers["POST /admin/trace"] = {{200, some_trace()}};
  const auto nowhere = server.run("trace -o " + (folder / "no" / "t.json").string());
  CHECK(nowhere.code == exit_failure);
  CHECK(has(nowhere.err, "cannot write the file"));
  const auto missing = run_shell(folder / ".", "lamella trace --from none.json --svg x.svg");
  CHECK(missing.code == exit_missing_input);
}

TEST_CASE("lamella trace that fails leaves no file that it has made, and others as they were") {
  const scratch_folder folder;
  fake_admin server;
  server.answers["POST /admin/trace"] = {{409, R"({"error":{"message":"busy","code":"x"}})"}};
  const auto made = folder / "t.json", svg = folder / "t.svg", kept = folder / "kept.json";
  std::ofstream{kept} << "old";
  CHECK(server.run("trace -o " + made.string() + " --svg " + svg.string()).code == exit_failure);
  CHECK_FALSE(std::filesystem::exists(made));
  CHECK_FALSE(std::filesystem::exists(svg));
  CHECK(server.run("trace -o " + kept.string()).code == exit_failure);
  CHECK(read(kept.string()) == "old");
  std::ofstream{kept, std::ios::trunc};
  CHECK(server.run("trace -o " + kept.string()).code == exit_failure);
  CHECK(std::filesystem::exists(kept)); // empty before
}
