/// What FHBN needs of other people's libraries, as a table of calls.
///
/// The real table comes from libibverbs, libmlx5 and libcuda by dlopen, so that one binary runs on
/// hosts without any of them; a test fills the table with what it wants to happen. Signatures are
/// those of the libraries with their structures left opaque, but for two small ones. As there, a
/// null result or -1 means failure with `errno` set.
#pragma once

#include "base/shared_library.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <sys/types.h>

namespace lamella::net {

/// struct mlx5dv_devx_uar, of which only the first two fields are read.
struct mlx5_register_page {
  void* reg_addr;  ///< the doorbell register, BlueFlame's first buffer
  void* base_addr; ///< start of the page it lies in
  uint32_t page_id;
  off_t mmap_off;
  uint64_t comp_mask;
};

/// Values of CUDA's driver interface that the probe speaks of.
enum cuda_result : int {
  cuda_ok = 0,
  cuda_already_registered = 712,
  cuda_not_permitted = 800,
  cuda_not_supported = 801,
};
constexpr int cuda_attribute_writes_ordering = 118, cuda_attribute_dma_buf = 124;
constexpr int cuda_ordering_owner = 100; ///< the GPU that owns the memory needs no flush
constexpr unsigned cuda_register_portable = 1, cuda_register_mapped = 2, cuda_register_io = 4;

/// Access of a memory region, and kinds of register pages.
constexpr int access_local_write = 1, access_remote_write = 2;
constexpr uint32_t register_page_blue_flame = 0;

struct fhbn_library {
  load_error verbs_error, mlx5_error, cuda_error;

  // libibverbs
  std::function<void**(int* count)> devices;
  std::function<void(void** list)> free_devices;
  std::function<const char*(void* device)> device_name;
  std::function<void*(void* device)> open_plain;
  std::function<int(void* context)> close;
  std::function<void*(void* context)> allocate_domain;
  std::function<int(void* domain)> free_domain;
  std::function<void*(void* domain, void* base, size_t bytes, int access)> register_memory;
  /// Empty where the library is older than dma-buf.
  std::function<void*(void* domain, uint64_t offset, size_t bytes, uint64_t address, int file,
                      int access)>
      register_dma_buf;
  std::function<int(void* region)> unregister;

  // libmlx5
  std::function<bool(void* device)> is_mlx5;
  std::function<void*(void* device)> open_devx; ///< a context that may make objects of its own
  std::function<mlx5_register_page*(void* context, uint32_t kind)> allocate_page;
  std::function<void(mlx5_register_page*)> free_page;

  // libcuda, device 0, its primary context current in the calling thread
  std::function<int(int* count)> cuda_start; ///< with cuda_stop, if there is one
  std::function<void()> cuda_stop;
  std::function<int(int* value, int attribute)> cuda_attribute;
  std::function<int(uint64_t* address, size_t bytes)> cuda_allocate;
  std::function<int(uint64_t address)> cuda_free;
  std::function<int(int* file, uint64_t address, size_t bytes)> cuda_dma_buf;
  std::function<int(void* base, size_t bytes, unsigned flags)> cuda_register;
  std::function<int(void* base)> cuda_unregister;
  std::function<int(uint64_t* address, void* host)> cuda_device_address;

  // the system
  std::function<std::optional<std::string>(const std::string& path)> read; ///< a small file
  std::function<void(int file)> close_file;
};

/// The real table. Loads the libraries, which stay loaded. Missing ones are told in `*_error`.
fhbn_library load_fhbn_library();

} // namespace lamella::net
