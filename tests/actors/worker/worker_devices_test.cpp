// Workers on devices of their own: who may join, and what their kernels are to the service.
#include "actors/protocol/prefills.hpp"
#include "actors/protocol/status.hpp"
#include "actors/protocol/traces.hpp"
#include "tests/actors/membership/membership_world.hpp"

#include <doctest/doctest.h>

namespace lamella::actors::test {

namespace {

void on_devices(membership_config& x) { x.on_devices = {worker_role::model, worker_role::prefill}; }

struct devices_world : membership_world {
  devices_world() : membership_world{on_devices} {}
};

} // namespace

TEST_CASE_FIXTURE(devices_world, "L-M02 the first worker on a device says which kernels its pool "
                                 "has, and prefill workers have those of replicas") {
  CHECK(says(*join("model").result, "the pool uses CUDA devices, the worker uses host"));
  next_kernels = "cuda-sm90";
  const auto first = join("model");
  CHECK(*first.result == "in");
  next_kernels = "cuda-sm80";
  const std::string differs = "kernel set: the service has cuda-sm90, the worker cuda-sm80";
  CHECK(says(*join("prefill").result, differs));
  next_kernels = "cuda-sm90";
  CHECK(*join("prefill").result == "in");
  CHECK(says(*join("attention").result, "kernel set: the service has avx512, the worker cuda"));
  next_kernels = "avx512";
  CHECK(*join("attention").result == "in");
  CHECK(*join("attention").result == "in");
  want_epoch();
  REQUIRE(opened.size() == 1);
  CHECK(opened[0].compute.kernels == "cuda-sm90");
  CHECK(opened[0].compute.sizes == "sizes");
  CHECK(opened[0].attention.kernels.empty()); // the service knows them itself
  // They stay, whoever goes: what was told of the service's bits holds until it ends.
  end(first.worker);
  next_kernels = "cuda-sm80";
  CHECK(says(*join("model").result, differs));
}

TEST_CASE_FIXTURE(membership_world,
                  "a worker that cannot do its part is sent away with its own words, made plain") {
  next_refusal = "no GPU support: no library\nat all";
  const auto told = *join("model").result;
  CHECK(says(told, "no GPU support: no library"));
  CHECK(says(told, "x0Aat all"));
  next_refusal = std::string(600, 'x');
  CHECK(says(*join("model").result, "(600 bytes)"));
  next_refusal.clear();
  CHECK(*join("model").result == "in");
}

} // namespace lamella::actors::test
