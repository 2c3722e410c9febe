/// NCCL as it is found on the machine: neither its headers nor its library are needed to build.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <stdexcept>
#include <string>

namespace lamella::gpu::cuda {

/// One rank's end of an NCCL communicator; opaque.
struct nccl_communicator;

constexpr int nccl_success = 0;
constexpr int nccl_float32 = 7; ///< ncclDataType_t

/// What is used of it, as nccl.h 2 declares it.
struct nccl_library {
  int (*comm_init_all)(nccl_communicator** comms, int count, const int* devices);
  int (*comm_destroy)(nccl_communicator* comm);
  int (*comm_abort)(nccl_communicator* comm);
  int (*all_gather)(const void* send, void* receive, size_t count, int type,
                    nccl_communicator* comm, cudaStream_t stream);
  int (*group_start)();
  int (*group_end)();
  const char* (*error_string)(int code);
};

/// A call failed.
class nccl_error : public std::runtime_error {
public:
  nccl_error(const nccl_library& library, int code, const char* what)
      : std::runtime_error{std::string{what} + ": NCCL: " + library.error_string(code)} {}
};

/// Loaded at the first call; or null with what stands in the way. Thread-safe.
const nccl_library* find_nccl(std::string* reason);

} // namespace lamella::gpu::cuda
