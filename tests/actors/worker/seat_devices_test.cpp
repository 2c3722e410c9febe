// Which devices the workers of pools are on.
#include "actors/worker/seat_devices.hpp"

#include <doctest/doctest.h>

namespace lamella::actors::test {

using config::placement;
using scheduler::worker_role;
using texts = std::vector<std::string>;

namespace {

unsigned eight() { return 8; }
unsigned four() { return 4; }
unsigned none() {
  FAIL_CHECK("devices were counted");
  return 0;
}

texts devices_of(const config::settings& x, worker_role role, uint32_t seats,
                 unsigned (*devices)()) {
  texts result;
  for (uint32_t i = 0; i < seats; ++i) result.push_back(device_of(x, role, i, devices));
  return result;
}

config::settings local_pools(const std::string& model, const std::string& attention) {
  config::settings x;
  x.pools.model.placement = x.pools.attention.placement = placement::local;
  x.pools.model.device = model;
  x.pools.attention.device = attention;
  return x;
}

} // namespace

TEST_CASE("Child processes take CUDA devices in turn, up to where another pool's begin") {
  auto x = local_pools("cuda:0", "cuda:4");
  CHECK(devices_of(x, worker_role::model, 3, eight) == texts{"cuda:0", "cuda:1", "cuda:2"});
  CHECK(devices_of(x, worker_role::attention, 4, eight)
        == texts{"cuda:4", "cuda:5", "cuda:6", "cuda:7"});
  // Those beyond go round, spares and the parity among them.
  CHECK(devices_of(x, worker_role::model, 6, eight)
        == texts{"cuda:0", "cuda:1", "cuda:2", "cuda:3", "cuda:0", "cuda:1"});
  // A machine with fewer: the device that is not there is told of when it is opened.
  CHECK(devices_of(x, worker_role::attention, 2, four) == texts{"cuda:4", "cuda:4"});
  x.pools.attention.device = "cuda:0"; // both pools on all of them
  CHECK(devices_of(x, worker_role::model, 2, four) == texts{"cuda:0", "cuda:1"});
  CHECK(devices_of(x, worker_role::attention, 2, four) == texts{"cuda:0", "cuda:1"});
}

TEST_CASE("L-M03 a replica of several ranks takes as many devices") {
  auto x = local_pools("cuda:0", "cuda:6");
  x.pools.model.tensor_parallel = 2;
  CHECK(devices_of(x, worker_role::model, 4, eight)
        == texts{"cuda:0", "cuda:2", "cuda:4", "cuda:0"});
  CHECK(devices_of(x, worker_role::attention, 3, eight) == texts{"cuda:6", "cuda:7", "cuda:6"});
  x.pools.model.tensor_parallel = 4; // beside the shards, as it was said
  x.pools.attention.device = "cuda:1";
  CHECK(devices_of(x, worker_role::model, 2, four) == texts{"cuda:0", "cuda:0"});
}

TEST_CASE("Who is no child process on CUDA devices has the option of its pool") {
  auto x = local_pools("host", "auto");
  CHECK(devices_of(x, worker_role::model, 2, none) == texts{"host", "host"});
  CHECK(devices_of(x, worker_role::attention, 2, none) == texts{"auto", "auto"});
  x = local_pools("cuda:0", "cuda:4");
  x.pools.model.placement = placement::in_process;
  x.pools.attention.placement = placement::remote; // of their own machines
  CHECK(devices_of(x, worker_role::model, 2, none) == texts{"cuda:0", "cuda:0"});
  CHECK(devices_of(x, worker_role::attention, 2, none) == texts{"cuda:4", "cuda:4"});
  // Prompts of this process run on what the replicas do.
  CHECK(devices_of(x, worker_role::prefill, 1, none) == texts{"cuda:0"});
}

} // namespace lamella::actors::test
