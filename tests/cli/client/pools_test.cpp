// Pools of a running server as operators see and change them: the real binary, and a server that
// says what a test wants.
#include "cli/client/admin.hpp"
#include "cli/client/pools.hpp"
#include "cli/client/watch.hpp"
#include "tests/cli/client/fake_admin.hpp"
#include "tests/scratch_folder.hpp"

using namespace lamella::cli;
using lamella::parse_json;
using lamella::tests::program_result;
using lamella::tests::run_shell;
using lamella::tests::scratch_folder;
using lamella::tests::source_folder;

namespace {

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// An admin listener that tells of the pool attention.
struct fake_admin : lamella::tests::fake_admin {
  /// What GET /admin/pools says next.
  void pools(uint32_t from, uint32_t members, const std::string& state,
             const std::string& reason = {}) {
    answers["GET /admin/pools"].push_back(
        {200, R"({"version":1,"epoch":4,"pools":[{"pool":"model","from":1,"members":1,)"
              R"("state":"none","reason":""},)"
                  + text_of(from, members, state, reason) + "]}"});
  }

  static std::string text_of(uint32_t from, uint32_t members, const std::string& state,
                             const std::string& reason = {}) {
    return R"({"pool":"attention","from":)" + std::to_string(from) + R"(,"members":)"
           + std::to_string(members) + R"(,"state":")" + state + R"(","reason":")" + reason + "\"}";
  }
};

std::string refusal(const std::string& why) {
  return R"({"error":{"message":")" + why + R"(","code":"resize_refused"}})";
}

/// A status with attention/0 and, of that incarnation, attention/1; 0: without it.
std::string workers(uint32_t incarnation, const char* more = "") {
  return R"({"workers":[{"name":"attention-0","seat":"attention/0","incarnation":1})"
         + (incarnation == 0 ? ""
                             : R"(,{"name":"attention-1","seat":"attention/1","incarnation":)"
                                   + std::to_string(incarnation) + more + "}")
         + "]}";
}

} // namespace

TEST_CASE("an admin listener is a host and a port") {
  for (const char* wrong : {"127.0.0.1", "127.0.0.1:", ":8001", "127.0.0.1:70000", "a b:1", ""}) {
    CAPTURE(wrong);
    const admin_choice choice{wrong, {}};
    CHECK_THROWS_WITH_AS(choice.url(), doctest::Contains("is not HOST:PORT"), command_error);
  }
  const admin_choice choice{"[::1]:8001", {}};
  CHECK(choice.url().port == 8001);
}

TEST_CASE("The page of pools shows sizes, states and reasons") {
  CHECK(pools_page(parse_json(R"({"version":1,"epoch":7,"pools":[
    {"pool":"model","from":1,"members":2,"state":"done","reason":""},
    {"pool":"attention","from":1,"members":3,"state":"under way","reason":"epoch 8"},
    {"pool":"prefill","from":0,"members":0,"state":"none","reason":""}]})"))
        == "POOL       MEMBERS  STATE      REASON\n"
           "model      2        done\n"
           "attention  1 -> 3   under way  epoch 8\n"
           "prefill    0        -\n");
  CHECK(pools_page(parse_json(R"({"pools":[
    {"pool":"attention","from":1,"members":3,"state":"rolled back","reason":"too late"}]})"))
        == "POOL       MEMBERS  STATE        REASON\n"
           "attention  1        rolled back  too late\n");
  CHECK(pools_page(parse_json(R"({"pools":[
    {"pool":"attention","from":1,"members":3,"state":"short","reason":"two were lost"}]})"))
        == "POOL       MEMBERS  STATE  REASON\n"
           "attention  1 of 3   short  two were lost\n");
  CHECK(pools_page(parse_json(R"({"pools":[
    {"pool":"model","from":1,"members":2,"state":"queued","reason":"it waits"}]})"))
        == "POOL   MEMBERS  STATE   REASON\n"
           "model  1 -> 2   queued  it waits\n");
}

TEST_CASE("L-M24 the page of pools shows how cells are cut, and shall be") {
  CHECK(pools_page(parse_json(R"({"pools":[
    {"pool":"attention/a","from":2,"members":2,"state":"none","reason":"","partition":"heads"},
    {"pool":"attention/b","from":2,"members":2,"state":"under way","reason":"",
     "partition":"requests","to_partition":"heads"},
    {"pool":"attention/c","from":2,"members":3,"state":"under way","reason":"",
     "partition":"requests"},
    {"pool":"attention/d","from":2,"members":3,"state":"rolled back","reason":"too late",
     "partition":"heads"}]})"))
        == "POOL         MEMBERS                      STATE        REASON\n"
           "attention/a  2 by heads                   -\n"
           "attention/b  2 by requests -> 2 by heads  under way\n"
           "attention/c  2 -> 3 by requests           under way\n"
           "attention/d  2 by heads                   rolled back  too late\n");
}

TEST_CASE("L-M03 the page of pools shows the memory of members where it is configured") {
  CHECK(pools_page(parse_json(R"({"pools":[
    {"pool":"model","from":1,"members":1,"state":"none","reason":""},
    {"pool":"attention","from":2,"members":2,"state":"under way","reason":"",
     "kv_bytes":268435456,"to_kv_bytes":1000000},
    {"pool":"prefill","from":1,"members":1,"state":"under way","reason":"",
     "kv_bytes":1048576,"to_kv_bytes":0}]})"))
        == "POOL       MEMBERS  KV EACH                   STATE      REASON\n"
           "model      1        -                         -\n"
           "attention  2        256 MiB -> 1000000 bytes  under way\n"
           "prefill    1        1 MiB -> auto             under way\n");
}

TEST_CASE("A size is a pool and a whole number") {
  const auto size = wanted_size_of("attention=3");
  CHECK(size.pool == "attention");
  CHECK(size.members == 3);
  for (const char* wrong : {"attention", "attention=", "=3", "attention=x", "attention=3x",
                            "attention=-1", "attention=99999999999", ""}) {
    CAPTURE(wrong);
    CHECK_THROWS_AS(wanted_size_of(wrong), command_error);
  }
}

TEST_CASE("A worker in a seat is told from its successor there") {
  const auto now = parse_json(workers(2));
  const auto by_name = seat_of_worker(now, "attention-1"),
             by_seat = seat_of_worker(now, "attention/1");
  REQUIRE(by_name);
  REQUIRE(by_seat);
  CHECK(by_name->incarnation == 2);
  CHECK(sits(now, *by_name));
  CHECK_FALSE(sits(parse_json(workers(3)), *by_name));
  CHECK_FALSE(sits(parse_json(workers(0)), *by_seat));
  CHECK_FALSE(seat_of_worker(now, "attention-7"));
}

TEST_CASE("lamella scale waits until the pool has its size, and shows each state once") {
  fake_admin server;
  server.answers["POST /admin/scale"] = {{202, fake_admin::text_of(1, 3, "under way")}};
  server.pools(1, 3, "under way");
  server.pools(1, 3, "under way", "waits for 2 workers");
  server.pools(1, 3, "done");
  const auto got = server.run("scale attention=3");
  CHECK(got.code == 0);
  CHECK(got.err.empty());
  CHECK(got.out
        == "attention: 1 -> 3, under way\n"
           "attention: 1 -> 3, under way: waits for 2 workers\n"
           "attention: 1 -> 3, done\n");
  CHECK(server.bodies == std::vector<std::string>{R"({"pool":"attention","members":3})"});
}

TEST_CASE("L-M03 lamella scale gives members other memory") {
  fake_admin server;
  const std::string way = R"({"pool":"attention","from":3,"members":3,"state":"under way",)"
                          R"("reason":"","to_kv_bytes":536870912})";
  server.answers["POST /admin/scale"] = {{202, way}};
  server.answers["GET /admin/pools"] = {
      {200, R"({"pools":[)" + way + "]}"},
      {200, R"({"pools":[{"pool":"attention","from":3,"members":3,"state":"done",)"
            R"("reason":"","kv_bytes":536870912}]})"}};
  const auto got = server.run("scale attention=3 --kv-bytes 512MiB");
  CHECK(got.code == 0);
  CHECK(got.out
        == "attention: KV each auto -> 512 MiB, under way\n"
           "attention: done\n");
  CHECK(server.bodies
        == std::vector<std::string>{R"({"pool":"attention","members":3,"kv_bytes":536870912})"});
  for (const std::string bytes : {"much", "0", "1KiB", "65TiB"}) {
    CAPTURE(bytes);
    const auto refused = server.run("scale attention=3 --kv-bytes " + bytes);
    CHECK(refused.code == 2);
    CHECK(refused.err.find("--kv-bytes") != std::string::npos);
  }
  CHECK(server.bodies.size() == 1); // none of them was sent
}

TEST_CASE("L-M24 lamella scale cuts a cell otherwise") {
  fake_admin server;
  const std::string way = R"({"pool":"attention/far","from":2,"members":3,"state":"under way",)"
                          R"("reason":"","partition":"requests","to_partition":"heads"})";
  server.answers["POST /admin/scale"] = {{202, way}};
  server.answers["GET /admin/pools"] = {
      {200, R"({"pools":[)" + way + "]}"},
      {200, R"({"pools":[{"pool":"attention/far","from":2,"members":3,"state":"done",)"
            R"("reason":"","partition":"heads"}]})"}};
  const auto got = server.run("scale attention/far=3 --partition heads");
  CHECK(got.code == 0);
  CHECK(got.out
        == "attention/far: 2 by requests -> 3 by heads, under way\n"
           "attention/far: 2 -> 3, done\n");
  CHECK(server.bodies
        == std::vector<std::string>{R"({"pool":"attention/far","members":3,"partition":"heads"})"});
  CHECK(server.run("scale attention/far=3 --partition rows").code == 2);
}

TEST_CASE("lamella scale ends with 1 and the server's reason when a change is refused or undone") {
  fake_admin server;
  SUBCASE("refused") {
    server.answers["POST /admin/scale"] = {{409, refusal("a pool cannot be empty")}};
    const auto got = server.run("scale attention=0");
    CHECK(got.code == 1);
    CHECK(got.out.empty());
    CHECK(has(got.err, "lamella: error: cannot scale attention=0: a pool cannot be empty\nhint: "));
  }
  SUBCASE("rolled back") {
    server.answers["POST /admin/scale"] = {{202, fake_admin::text_of(1, 3, "under way")}};
    server.pools(1, 3, "under way");
    server.pools(1, 3, "rolled back", "its workers were not ready within 60 s");
    const auto got = server.run("scale attention=3");
    CHECK(got.code == 1);
    CHECK(got.out == "attention: 1 -> 3, under way\n");
    CHECK(has(got.err, "rolled back: the pool attention still has 1 member(s): its workers were "
                       "not ready within 60 s"));
  }
  SUBCASE("a reload has another change wait behind it") {
    server.answers["POST /admin/scale"] = {{202, fake_admin::text_of(1, 3, "under way")}};
    server.pools(3, 1, "queued");
    CHECK(server.run("scale attention=3").code == 0);
  }
  SUBCASE("another change follows before it is seen to end") {
    server.answers["POST /admin/scale"] = {{202, fake_admin::text_of(1, 3, "under way")}};
    server.pools(3, 2, "under way");
    const auto got = server.run("scale attention=3");
    CHECK(got.code == 1);
    CHECK(has(got.err, "another change of the pool has followed: attention: 3 -> 2, under way"));
  }
  SUBCASE("the time is over") {
    server.answers["POST /admin/scale"] = {{202, fake_admin::text_of(1, 3, "under way")}};
    server.pools(1, 3, "under way");
    const auto got = server.run("scale attention=3 --timeout 0");
    CHECK(got.code == 1);
    CHECK(has(got.err, "still under way after 0 s, and goes on"));
  }
  SUBCASE("a server that does not know it") {
    const auto got = server.run("scale attention=3");
    CHECK(got.code == 1);
    CHECK(has(got.err, "the server does not know this request"));
  }
}

TEST_CASE("lamella scale --no-wait returns at once, and a size that is there is done") {
  fake_admin server; // which says nothing of its pools
  server.answers["POST /admin/scale"] = {{202, fake_admin::text_of(1, 3, "under way")}};
  auto got = server.run("scale attention=3 --no-wait");
  CHECK(got.code == 0);
  CHECK(got.out == "attention: 1 -> 3, under way\n'lamella pools' shows when it is done\n");
  server.answers["POST /admin/scale"] = {{200, fake_admin::text_of(3, 3, "done")}};
  got = server.run("scale attention=3");
  CHECK(got.code == 0);
  CHECK(got.out == "attention: done\n");
}

TEST_CASE("lamella scale does not say that a pool has the size that it lacks workers for") {
  fake_admin server;
  server.answers["POST /admin/scale"] = {
      {202, fake_admin::text_of(1, 3, "short", "two were lost")}};
  for (const char* words : {"scale attention=3", "scale attention=3 --no-wait"}) {
    CAPTURE(words);
    const auto got = server.run(words);
    CHECK(got.code == 1);
    CHECK(got.out == "attention: 1 -> 3, short: two were lost\n");
    CHECK(has(got.err, "the pool attention has 1 of the 3 member(s)"));
  }
}

TEST_CASE("lamella drain waits until the worker is gone, not until its seat is empty") {
  fake_admin server;
  auto& status = server.answers["GET /admin/status"];
  auto& post = server.answers["POST /admin/drain-worker"];
  SUBCASE("a spare takes its part") {
    post = {{202, fake_admin::text_of(2, 2, "under way")}};
    status = {{200, workers(1)}, {200, workers(1)}, {200, workers(2)}};
    const auto got = server.run("drain attention-1");
    CHECK(got.code == 0);
    CHECK(got.out == "attention: under way\nworker attention-1: gone\n");
    CHECK(server.bodies == std::vector<std::string>{R"({"worker":"attention-1"})"});
  }
  SUBCASE("its pool gets smaller") {
    post = {{202, fake_admin::text_of(2, 1, "under way")}};
    server.pools(2, 1, "under way");
    server.pools(2, 1, "done");
    status = {{200, workers(1)}, {200, workers(0)}};
    const auto got = server.run("drain attention/1");
    CHECK(got.code == 0);
    CHECK(got.out
          == "attention: 2 -> 1, under way\nattention: 2 -> 1, done\n"
             "worker attention/1: gone\n");
  }
  SUBCASE("nobody takes its part in time") {
    post = {{202, fake_admin::text_of(2, 2, "under way")}};
    status = {{200, workers(1, R"(,"draining":false)")},
              {200, workers(1, R"(,"draining":true)")},
              {200, workers(1, R"(,"draining":false)")}};
    const auto got = server.run("drain attention-1");
    CHECK(got.code == 1);
    CHECK(got.out == "attention: under way\n");
    CHECK(has(got.err, "the drain of attention-1 was given up: it keeps its part"));
  }
  SUBCASE("refused") {
    status = {{200, workers(1)}};
    post = {{409, refusal("there is no worker")}};
    const auto got = server.run("drain attention-7");
    CHECK(got.code == 1);
    CHECK(has(got.err, "cannot drain attention-7: there is no worker"));
  }
}

TEST_CASE("lamella pools shows the table, or the server's JSON") {
  fake_admin server;
  server.pools(3, 3, "none");
  auto got = server.run("pools");
  CHECK(got.code == 0);
  CHECK(got.out
        == "POOL       MEMBERS  STATE  REASON\n"
           "model      1        -\n"
           "attention  3        -\n");
  got = server.run("pools --json");
  CHECK(got.code == 0);
  CHECK(got.out == server.answers["GET /admin/pools"].front().body + "\n");
}

TEST_CASE("Without a server the commands for pools end with 69 and a hint") {
  const scratch_folder folder;
  for (const char* words :
       {"pools", "scale attention=2", "drain attention-1", "status --watch 1"}) {
    CAPTURE(words);
    const auto got =
        run_shell(folder / ".", std::string{"lamella "} + words + " --admin 127.0.0.1:1");
    CHECK(got.code == 69);
    CHECK(got.out.empty());
    CHECK(has(got.err, "127.0.0.1:1"));
    CHECK(has(got.err, "hint: is \'lamella serve\' running?"));
  }
  const auto wrong = run_shell(folder / ".", "lamella scale attention");
  CHECK(wrong.code == 2);
  CHECK(has(wrong.err, "is not POOL=N"));
}

TEST_CASE("lamella status --watch prints again what is no terminal, and ends well by Ctrl-C") {
  fake_admin server;
  server.answers["GET /admin/status"] = {{200, workers(1)}, {200, workers(0)}};
  server.answers["GET /ready"].push_back({503, R"({"status":"loading"})"});
  const auto interrupted = "timeout 300 python3 " + std::string{source_folder}
                           + "/tests/cli/client/interrupt_at.py \"not ready\"";
  const auto got = server.run("status --watch 0.05", interrupted);
  CHECK(got.code == 0);
  CHECK(got.err.empty());
  CHECK(has(got.out, "attention-1"));
  CHECK(has(got.out, "the server is not ready: loading"));
  CHECK_FALSE(has(got.out, "\033"));
}

TEST_CASE("An interval is two seconds, or what is written") {
  using std::chrono::milliseconds;
  CHECK(watch_interval("") == milliseconds{2000});
  CHECK(watch_interval("0.5") == milliseconds{500});
  for (const char* wrong : {"0", "-1", "x", "2s", "nan", "1e9"}) {
    CAPTURE(wrong);
    CHECK_THROWS_AS(watch_interval(wrong), command_error);
  }
}

TEST_CASE("A terminal is redrawn from its corner, line by line, and nothing beyond its height") {
  CHECK(redraw("a\nb\n", 24) == "\033[Ha\033[K\nb\033[K\n\033[J");
  CHECK(redraw("a\nb\nc\n", 4) == "\033[Ha\033[K\nb\033[K\nc\033[K\n\033[J");
  CHECK(redraw("a\nb\nc\nd\n", 4)
        == "\033[Ha\033[K\n"
           "b\033[K\n... and 2 more lines\033[K\n\033[J");
}
