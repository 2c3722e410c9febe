// The sources of the CUDA row operators, run thread by thread on the CPU: the cases of the device's
// own tests.
#include "tests/emulated/launch.hpp"

#include "gpu/cuda/rows/rows.cu"

#include "tests/gpu/cuda/rows_test.cu"
