#include "net/rdma/fhbn_library.hpp"

#include <fstream>
#include <sstream>
#include <unistd.h>

namespace lamella::net {

namespace {

void load_verbs(fhbn_library& table) {
  shared_library verbs{"libibverbs.so.1"};
  constexpr auto v = "IBVERBS_1.1";
  table.devices = verbs.symbol<void**(int*)>("ibv_get_device_list", v);
  table.free_devices = verbs.symbol<void(void**)>("ibv_free_device_list", v);
  table.device_name = verbs.symbol<const char*(void*)>("ibv_get_device_name", v);
  table.open_plain = verbs.symbol<void*(void*)>("ibv_open_device", v);
  table.close = verbs.symbol<int(void*)>("ibv_close_device", v);
  table.allocate_domain = verbs.symbol<void*(void*)>("ibv_alloc_pd", v);
  table.free_domain = verbs.symbol<int(void*)>("ibv_dealloc_pd", v);
  table.register_memory = verbs.symbol<void*(void*, void*, size_t, int)>("ibv_reg_mr", v);
  table.unregister = verbs.symbol<int(void*)>("ibv_dereg_mr", v);
  table.register_dma_buf =
      verbs.optional_symbol<void*(void*, uint64_t, size_t, uint64_t, int, int)>(
          "ibv_reg_dmabuf_mr");
  table.verbs_error = verbs.error();
}

void load_mlx5(fhbn_library& table) {
  struct open_attributes { // struct mlx5dv_context_attr
    uint32_t flags;
    uint64_t comp_mask;
  };
  shared_library mlx5{"libmlx5.so.1"};
  table.is_mlx5 = mlx5.symbol<bool(void*)>("mlx5dv_is_supported");
  table.allocate_page = mlx5.symbol<mlx5_register_page*(void*, uint32_t)>("mlx5dv_devx_alloc_uar");
  table.free_page = mlx5.symbol<void(mlx5_register_page*)>("mlx5dv_devx_free_uar");
  if (auto* open = mlx5.symbol<void*(void*, open_attributes*)>("mlx5dv_open_device"))
    table.open_devx = [open](void* device) {
      open_attributes devx{1, 0};
      return open(device, &devx);
    };
  table.mlx5_error = mlx5.error();
}

/// The driver's own interface: it is there wherever a GPU can be used, the runtime need not be.
void load_cuda(fhbn_library& table) {
  shared_library cuda{"libcuda.so.1"};
  auto* init = cuda.symbol<int(unsigned)>("cuInit");
  auto* count_of = cuda.symbol<int(int*)>("cuDeviceGetCount");
  auto* retain = cuda.symbol<int(void**, int)>("cuDevicePrimaryCtxRetain");
  auto* release = cuda.symbol<int(int)>("cuDevicePrimaryCtxRelease_v2");
  auto* push = cuda.symbol<int(void*)>("cuCtxPushCurrent_v2");
  auto* pop = cuda.symbol<int(void**)>("cuCtxPopCurrent_v2");
  auto* attribute = cuda.symbol<int(int*, int, int)>("cuDeviceGetAttribute");
  auto* handle = cuda.symbol<int(void*, uint64_t, size_t, int, unsigned long long)>(
      "cuMemGetHandleForAddressRange");
  auto* address_of = cuda.symbol<int(uint64_t*, void*, unsigned)>("cuMemHostGetDevicePointer_v2");
  table.cuda_allocate = cuda.symbol<int(uint64_t*, size_t)>("cuMemAlloc_v2");
  table.cuda_free = cuda.symbol<int(uint64_t)>("cuMemFree_v2");
  table.cuda_register = cuda.symbol<int(void*, size_t, unsigned)>("cuMemHostRegister_v2");
  table.cuda_unregister = cuda.symbol<int(void*)>("cuMemHostUnregister");
  table.cuda_error = cuda.error();
  if (table.cuda_error) return;
  table.cuda_start = [=](int* count) {
    *count = 0;
    if (const int failed = init(0)) return failed;
    if (const int failed = count_of(count)) return failed;
    void* context = nullptr;
    if (*count == 0) return 0;
    if (const int failed = retain(&context, 0)) return failed;
    const int failed = push(context);
    if (failed) release(0);
    return failed;
  };
  table.cuda_stop = [=] {
    void* ours = nullptr;
    pop(&ours);
    release(0);
  };
  table.cuda_attribute = [=](int* value, int which) { return attribute(value, which, 0); };
  table.cuda_dma_buf = [=](int* file, uint64_t address, size_t bytes) {
    constexpr int dma_buf_file = 1; // CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD
    return handle(file, address, bytes, dma_buf_file, 0);
  };
  table.cuda_device_address = [=](uint64_t* address, void* host) {
    return address_of(address, host, 0);
  };
}

std::optional<std::string> read_file(const std::string& path) {
  std::ifstream in{path};
  if (!in) return std::nullopt;
  std::ostringstream text;
  text << in.rdbuf();
  if (in.bad()) return std::nullopt;
  auto s = text.str();
  while (!s.empty() && s.back() == '\n') s.pop_back();
  return s;
}

} // namespace

fhbn_library load_fhbn_library() {
  fhbn_library table;
  load_verbs(table);
  load_mlx5(table);
  load_cuda(table);
  table.read = read_file;
  table.close_file = [](int file) { ::close(file); };
  return table;
}

} // namespace lamella::net
