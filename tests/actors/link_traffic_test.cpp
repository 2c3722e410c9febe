// Bytes between workers as counters: only what is new is added.
#include "actors/link_traffic.hpp"

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

bool shows(net::metrics& numbers, const std::string& transport, const std::string& value) {
  const auto page = numbers.scrape("").body;
  return page.find("lamella_link_bytes_total{peer_role=\"attention\",transport=\"" + transport
                   + "\"} " + value + "\n")
         != std::string::npos;
}

} // namespace

TEST_CASE("bytes between workers are counted once, by transport, over restarts of a worker") {
  net::metrics numbers{{}};
  link_traffic traffic;
  traffic.note(told(1, "shm", 100), numbers);
  CHECK(shows(numbers, "shm", "101"));
  traffic.note(told(1, "shm", 100), numbers);
  CHECK(shows(numbers, "shm", "101"));
  traffic.note(told(1, "", 150), numbers); // its links are being made again
  CHECK(shows(numbers, "shm", "101"));
  traffic.note(told(1, "tcp", 154), numbers);
  CHECK(shows(numbers, "shm", "101"));
  CHECK(shows(numbers, "tcp", "54"));
  traffic.note(told(2, "shm", 17), numbers); // another worker sits there
  CHECK(shows(numbers, "shm", "119"));
}
