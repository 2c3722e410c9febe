// The sources of the CUDA row operators and of the unpacking, run thread by thread on the CPU: the
// cases of the device's own tests.
#include "tests/emulated/launch.hpp"

#include "gpu/cuda/rows.cu"

#include "tests/gpu/cuda/rows_test.cu"
