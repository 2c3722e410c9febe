// `lamella status --json` and GET /admin/status: complete and stable.
#include "actors/gateway/status_text.hpp"
#include "actors/machine/sizing.hpp"
#include "actors/protocol/status.hpp"
#include "actors/protocol/work_reports.hpp"
#include "base/json.hpp"

#include <doctest/doctest.h>

#include <unistd.h>

using namespace lamella::actors;

TEST_CASE("the status of a system has every field in its place, letter by letter") {
  system_status x;
  x.epoch = 7;
  x.pool = "main";
  worker_info w;
  w.name = "left";
  w.role = "model";
  w.seat = "model/0";
  w.state = "live";
  w.device = "host";
  w.incarnation = 3;
  w.host = "there";
  w.pid = 4711;
  w.slow = true;
  w.draining = true;
  w.part = "replica 0";
  w.peers = {{"attention/0", "shm", 12.5, 1'000'000'007}, {"attention/1", "", 0, 0}};
  x.workers = {w};
  worker_info gone;
  gone.role = "attention";
  gone.seat = "attention/1";
  gone.incarnation = 2;
  gone.state = "failing";
  gone.trouble = "exit code 69, 6 times in a row";
  x.missing = {gone};
  x.pools = {{"main", "heads", 2, 4096, 100, 8, 60, 7, 3996, 110, 111}};
  x.running = 4;
  x.waiting = 5;
  x.requests = 6;
  x.restarts = 1;
  x.pipeline = {true, 3};
  x.times = {{"attention", "far", 512.5, 0.004, 1.5, 9}};
  x.supervisors = {{"pipeline", "one_for_all", {1, 5, 30}, {{"batch", "model", 2, {}}}, 7}, {}};
  CHECK(
      status_json(x, 3)
      == R"({"version":1,"epochs":{"attention/main":7},"workers":[{"name":"left","role":"model",)"
         R"("seat":"model/0","incarnation":3,"pid":4711,"host":"there","state":"live",)"
         R"("device":"host","slow":true,"draining":true,"part":"replica 0","cell":"","trouble":"","busy":null,"peers":[{"seat":"attention/0",)"
         R"("transport":"shm","rtt_us":12.5,"bytes":1000000007},{"seat":"attention/1",)"
         R"("transport":"","rtt_us":0.0,"bytes":0}]}],"missing":[{"role":"attention",)"
         R"("seat":"attention/1","incarnation":2,"state":"failing",)"
         R"("trouble":"exit code 69, 6 times in a row"}],"pools":[{"name":"main","members":2,)"
         R"("partition":"heads","slots":{"free":3996,"used":93,"cached":8,"parity":60,)"
         R"("orphan":7,"total":4096},"references":{"counted":110,"held":111}}],"requests":{"running":4,"waiting":5,"recovering":3},)"
         R"("gateway":{"requests":6,"host":")"
             + host_name() + R"(","pid":)" + std::to_string(getpid())
             + R"(},"pipeline":{"restarts":1,"rotates":true,"batches":3},"times":[{"work":"attention","cell":"far",)"
               R"("units":512.5,"seconds":0.004,"correction":1.5,"samples":9}],"supervisors":[{"name":"pipeline",)"
               R"("strategy":"one_for_all","restarts":{"used":1,"allowed":5,"window_s":30},)"
               R"("children":[{"name":"batch","role":"model","count":2,)"
               R"("restarts":{"used":0,"allowed":0,"window_s":0}}],"more":7}]})");
}

TEST_CASE("the status of a system where nobody is has the same fields") {
  const auto text = status_json({}, 0);
  const auto parsed = lamella::parse_json(text);
  for (const char* name :
       {"version", "epochs", "workers", "missing", "pools", "requests", "gateway", "pipeline"}) {
    CAPTURE(name);
    CHECK(parsed.find(name) != nullptr);
  }
}
