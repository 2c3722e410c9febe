// Pulls of KV from and to a CUDA device.
#include "gpu/cuda_module.hpp"
#include "gpu/host/host_engine.hpp"
#include "tests/gpu/runners/pull_runs.hpp"

using namespace lamella::gpu;

TEST_CASE("L-M27 a CUDA device and the host pull KV from each other") {
  std::string reason;
  const auto* module = find_cuda_module(&reason);
  if (module == nullptr || module->count(&reason) == 0) {
    MESSAGE("skipped: no CUDA device (" << reason << ")");
    return;
  }
  host_engine engine{2, reference_operators()};
  const auto host = engine.make_device("host"), one = open_cuda_device(0);
  SUBCASE("from the device to itself") { test::pull_between(*one, *one); }
  SUBCASE("from the device to the host") { test::pull_between(*one, *host); }
  SUBCASE("from the host to the device") { test::pull_between(*host, *one); }
}
