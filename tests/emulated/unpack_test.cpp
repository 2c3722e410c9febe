// The source of the unpacking of weights (Q4_0, Q4_1, Q8_0, F32), run thread by thread on the CPU:
// the cases of the device's own tests, against the reference.
#include "tests/emulated/launch.hpp"

#include "gpu/cuda/unpack.cu"

#include "tests/gpu/cuda/unpack_test.cu"
