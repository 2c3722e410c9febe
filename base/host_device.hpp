/// LAMELLA_HOST_DEVICE marks functions that hosts and CUDA devices both call.
#pragma once

#if defined(__CUDACC__)
#define LAMELLA_HOST_DEVICE __host__ __device__
#else
#define LAMELLA_HOST_DEVICE
#endif
