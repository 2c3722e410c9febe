// Rings in a CUDA device's own memory that somebody outside writes and reads.
#include "gpu/cuda_module.hpp"
#include "tests/gpu/runners/post_runs.hpp"

using namespace lamella::gpu;

TEST_CASE("L-M07 L-M11 a CUDA device polls its own memory for what adapters write there") {
  std::string reason;
  const auto* module = find_cuda_module(&reason);
  if (module == nullptr || module->count(&reason) == 0) {
    MESSAGE("skipped: no CUDA device (" << reason << ")");
    return;
  }
  const auto one = open_cuda_device(0);
  try {
    MESSAGE(one->make_adapter_memory(1, 1).how);
  } catch (const std::runtime_error& e) {
    MESSAGE("skipped: " << e.what());
    return;
  }
  test::sum_through_adapter(*one);
}

TEST_CASE("L-M07 L-M10 a CUDA device's stream posts its frames into an adapter's queue") {
  std::string reason;
  const auto* module = find_cuda_module(&reason);
  if (module == nullptr || module->count(&reason) == 0) {
    MESSAGE("skipped: no CUDA device (" << reason << ")");
    return;
  }
  const auto one = open_cuda_device(0);
  try {
    one->make_adapter_memory(1, 1);
  } catch (const std::runtime_error& e) {
    MESSAGE("skipped: " << e.what());
    return;
  }
  for (const bool stream_rings : {true, false}) {
    CAPTURE(stream_rings);
    test::sum_by_posts(*one, stream_rings);
  }
}
