// The source of the CUDA sampler, run thread by thread on the CPU: the cases of the device's own
// test.
#include "tests/emulated/launch.hpp"

#include "gpu/cuda/rows/sample.cu"

#include "tests/gpu/cuda/sample_test.cu"
