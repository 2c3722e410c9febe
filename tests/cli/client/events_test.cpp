// What has happened to a running server, as operators read it: the real binary, and a server that
// says what a test wants.
#include "cli/client/events.hpp"
#include "cli/commands.hpp"
#include "tests/cli/client/fake_admin.hpp"

using namespace lamella::cli;
using lamella::parse_json;
using lamella::tests::fake_admin;

namespace {

/// A page with the events of these numbers.
std::string page(const std::vector<int>& numbers, int newest, int missed = 0) {
  std::string events;
  for (const auto n : numbers) {
    const auto number = std::to_string(n);
    events += (events.empty() ? "" : ",") + std::string{R"({"number":)"} + number
              + R"(,"time":"2026-01-31T12:00:0)" + number
              + R"(.000Z","kind":"pool_resized","subject":"attention","text":"pool resized to=)"
              + number + R"(","fields":{"to":)" + number + "}}";
  }
  return R"({"version":1,"time":"2026-01-31T12:01:00.000Z","newest":)" + std::to_string(newest)
         + R"(,"missed":)" + std::to_string(missed) + R"(,"events":[)" + events + "]}";
}

std::string line(int n) {
  const auto number = std::to_string(n);
  return "2026-01-31T12:00:0" + number + ".000Z  pool resized to=" + number;
}

} // namespace

TEST_CASE("Events are lines of time and text, or of JSON") {
  const auto reply = parse_json(page({3, 4}, 4, 2));
  const auto text = event_lines_of(reply, false);
  CHECK(text.newest == 4);
  CHECK(text.missed == 2);
  CHECK(text.lines == std::vector<std::string>{line(3), line(4)});
  const auto json = event_lines_of(reply, true);
  REQUIRE(json.lines.size() == 2);
  CHECK(json.lines[1]
        == R"({"number":4,"time":"2026-01-31T12:00:04.000Z","kind":"pool_resized",)"
           R"("subject":"attention","text":"pool resized to=4","fields":{"to":4}})");
  CHECK_THROWS_AS(event_lines_of(parse_json(R"({"pools":[]})"), false), command_error);
}

TEST_CASE("A time back is a whole number with a unit") {
  CHECK(event_age("90") == 90);
  CHECK(event_age("90s") == 90);
  CHECK(event_age("10m") == 600);
  CHECK(event_age("2h") == 7200);
  CHECK(event_age("1d") == 86'400);
  for (const auto* wrong :
       {"", "0", "-1", "1.5h", "10 m", "m", "2w", "10001d", "99999999999999999999s"})
    CHECK_THROWS_AS(event_age(wrong), command_error);
}

TEST_CASE("lamella events shows the events that the server has") {
  fake_admin server;
  server.answers["GET /admin/events"] = {{200, page({3, 4}, 4, 2)}};
  auto got = server.run("events");
  CHECK(got.code == 0);
  CHECK(got.out == line(3) + "\n" + line(4) + "\n");
  CHECK(got.err == "lamella: 2 earlier events are not kept any more\n");
  got = server.run("events --json --since 10m");
  CHECK(got.code == 0);
  CHECK(got.out.starts_with(R"({"number":3,)"));
  CHECK(server.queries == std::vector<std::string>{"after=0", "after=0&since=600"});
}

TEST_CASE("lamella events --follow asks for what comes after what it has seen") {
  fake_admin server;
  server.answers["GET /admin/events"] = {{200, page({3}, 4)}, {200, page({5, 6}, 6)}, {404, "{}"}};
  const auto got = server.run("events --follow --since 1h"); // until the server does not know it
  CHECK(got.code == 1);
  CHECK(got.out == line(3) + "\n" + line(5) + "\n" + line(6) + "\n");
  CHECK(server.queries
        == std::vector<std::string>{"after=0&since=3600", "after=4&wait=20", "after=6&wait=20"});
}

TEST_CASE("lamella events says what is wrong, and where to look") {
  fake_admin server;
  auto got = server.run("events");
  CHECK(got.code == 1);
  CHECK(got.err.find("does not tell of events") != std::string::npos);
  server.answers["GET /admin/events"] = {{503, R"({"error":{"message":"32 readers wait"}})"}};
  got = server.run("events");
  CHECK(got.code == 69);
  CHECK(got.err.find("32 readers wait") != std::string::npos);
  got = server.run("events --since yesterday");
  CHECK(got.code == 2);
  CHECK(got.err.find("--since: 'yesterday' is not a time") != std::string::npos);
}
