// The source of the CUDA kernel that makes checksums of slots, run thread by thread on the CPU: the
// cases of the device's own tests.
#include "tests/emulated/launch.hpp"

#include "gpu/cuda/rows/kv_checksum.cu"

#include "tests/gpu/cuda/kv_checksum_test.cu"
