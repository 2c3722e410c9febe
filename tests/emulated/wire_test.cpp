// The sources of the CUDA kernels around the wire, run thread by thread on the CPU: the cases of
// the device's own tests.
#include "tests/emulated/launch.hpp"

#include "gpu/cuda/rows/wire.cu"

#include "tests/gpu/cuda/wire_test.cu"
