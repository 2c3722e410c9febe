// Bytes between workers as counters: only what is new is added.
#include "actors/gateway/link_traffic.hpp"
#include "actors/protocol/status.hpp"
#include "actors/protocol/work_reports.hpp"

#include <doctest/doctest.h>

using namespace lamella;
using namespace lamella::actors;

namespace {

system_status told(uint32_t incarnation, const std::string& transport, uint64_t bytes) {
  worker_info w;
  w.seat = "model/0";
  w.incarnation = incarnation;
  w.peers = {{"attention/0", transport, 1.0, bytes}, {"attention/1", transport, 1.0, 1}};
  system_status status;
  status.workers = {w};
  return status;
}

system_status measured(uint32_t incarnation, double rtt_us, uint64_t times) {
  auto status = told(incarnation, "shm", 0);
  status.workers[0].peers = {{"attention/0", "shm", rtt_us, 0, times}};
  return status;
}

/// How many round trips of that kind were measured, and their sum as text.
std::pair<std::string, std::string> round_trips(net::metrics& metrics) {
  const auto page = metrics.scrape("").body;
  const auto of = [&](const char* what) {
    const auto name = std::string{"lamella_link_rtt_seconds_"} + what
                      + "{peer_role=\"attention\",transport=\"shm\"} ";
    const auto at = page.find(name);
    return at == std::string::npos
               ? std::string{}
               : page.substr(at + name.size(), page.find('\n', at) - at - name.size());
  };
  return {of("count"), of("sum")};
}

bool shows(net::metrics& metrics, const std::string& transport, const std::string& value) {
  const auto page = metrics.scrape("").body;
  return page.find("lamella_link_bytes_total{peer_role=\"attention\",transport=\"" + transport
                   + "\"} " + value + "\n")
         != std::string::npos;
}

} // namespace

TEST_CASE("bytes between workers are counted once, by transport, over restarts of a worker") {
  net::metrics metrics{{}};
  link_traffic traffic;
  traffic.note(told(1, "shm", 100), metrics);
  CHECK(shows(metrics, "shm", "101"));
  traffic.note(told(1, "shm", 100), metrics);
  CHECK(shows(metrics, "shm", "101"));
  traffic.note(told(1, "", 150), metrics); // its links are being made again
  CHECK(shows(metrics, "shm", "101"));
  traffic.note(told(1, "tcp", 154), metrics);
  CHECK(shows(metrics, "shm", "101"));
  CHECK(shows(metrics, "tcp", "54"));
  traffic.note(told(2, "shm", 17), metrics); // another worker sits there
  CHECK(shows(metrics, "shm", "119"));
}

TEST_CASE("a round trip between workers counts once for each look that finds a new measurement") {
  net::metrics metrics{{}};
  link_traffic traffic;
  traffic.note(measured(1, 0, 0), metrics); // the two sides have not met
  CHECK(round_trips(metrics).first.empty());
  traffic.note(measured(1, 250, 1), metrics);
  traffic.note(measured(1, 250, 1), metrics);
  CHECK(round_trips(metrics) == std::pair<std::string, std::string>{"1", "0.00025"});
  traffic.note(measured(1, 500, 3), metrics); // measured again, twice
  CHECK(round_trips(metrics) == std::pair<std::string, std::string>{"2", "0.00075"});
  traffic.note(measured(1, 500, 4), metrics); // and it was the same
  CHECK(round_trips(metrics).first == "3");
  traffic.note(measured(1, 500, 1), metrics); // by links of another epoch
  CHECK(round_trips(metrics).first == "4");
  traffic.note(measured(2, 500, 1), metrics); // another worker sits there
  CHECK(round_trips(metrics).first == "5");
  traffic.note(measured(2, 0, 1), metrics); // nothing has come back for long
  CHECK(round_trips(metrics).first == "5");
}
