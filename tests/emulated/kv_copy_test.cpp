// The sources of the CUDA kernels that move KV between caches, run thread by thread on the CPU: the
// cases of the device's own tests.
#include "tests/emulated/launch.hpp"

#include "gpu/cuda/rows/kv_copy.cu"

#include "tests/gpu/cuda/kv_copy_test.cu"
