// The source of the unpacking of weights of all types, run thread by thread on the CPU: the cases
// of the device's own tests, against the reference.
#include "tests/emulated/launch.hpp"

#include "gpu/cuda/gemm/unpack.cu"

#include "tests/gpu/cuda/unpack_test.cu"
