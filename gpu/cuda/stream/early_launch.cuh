/// Kernels that are made ready while the one before them still runs (programmatic dependent launch,
/// sm_90): saves what lies between two kernels of a stream.
///
/// A kernel launched so calls await_previous_kernel() before it touches anything; since every one
/// does, the end of a kernel is also the end of all before it. Blocks that are ready hold their
/// place on the device while they wait. So a kernel that waits for another stream admits the next
/// one only when it has what it waits for: else the other stream might find no room.
#pragma once

#include <cuda_runtime_api.h>

namespace lamella::gpu::cuda {

/// Whether streams of models are launched so: every device of this process can (sm_90), toolkit and
/// driver are of CUDA 12.3 or newer, and LAMELLA_EARLY_LAUNCH is not 0. Read once.
bool early_launches();

#ifndef LAMELLA_EMULATED_DEVICE

/// Lets the next kernel of the stream, if it was launched so, be made ready.
__device__ __forceinline__ void admit_next_kernel() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

/// Returns when the kernels before this one have ended and their writes are visible.
__device__ __forceinline__ void await_previous_kernel() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/// The beginning of every kernel that waits for no other stream.
__device__ __forceinline__ void begin_kernel() {
  await_previous_kernel();
  admit_next_kernel();
}

/// Launches a kernel so.
template <class... Parameters, class... Arguments>
cudaError_t launch_early(cudaStream_t stream, dim3 blocks, dim3 threads, size_t shared,
                         void (*kernel)(Parameters...), Arguments... arguments) {
  cudaLaunchAttribute early{};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = blocks;
  config.blockDim = threads;
  config.dynamicSmemBytes = shared;
  config.stream = stream;
  config.attrs = &early;
  config.numAttrs = 1;
  return cudaLaunchKernelEx(&config, kernel, Parameters(arguments)...);
}

#endif

} // namespace lamella::gpu::cuda
