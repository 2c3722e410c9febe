// The GPU part of the program on a machine that has no GPU: two emulated devices, or as
// many as LAMELLA_EMULATED_DEVICES says. It stands in for
// liblamella_cuda.so in tests of the real program.
#include "gpu/cuda_module.hpp"
#include "tests/emulated/whole_device.hpp"

#include <cstdlib>

extern "C" __attribute__((visibility("default"))) const lamella::gpu::cuda_module*
lamella_cuda_module() {
  using namespace lamella::gpu;
  static const cuda_module module{cuda_module_build(),
                                  [](std::string*) {
                                    const auto* said = std::getenv("LAMELLA_EMULATED_DEVICES");
                                    return said == nullptr ? 2u : unsigned(std::stoul(said));
                                  },
                                  [](unsigned index) -> std::unique_ptr<device> {
                                    return std::make_unique<lamella::test::emulated_device>(index);
                                  },
                                  [](unsigned, unsigned) { return std::string{}; }};
  return &module;
}
