#include "gpu/cuda/operators/nccl_library.hpp"

#include "base/library_file.hpp"

namespace lamella::gpu::cuda {

namespace {

constexpr const char* library_name = "libnccl.so.2";

struct loaded {
  nccl_library library{};
  std::string reason;
};

loaded load() {
  loaded x;
  void* file = open_library(library_name);
  if (file == nullptr) {
    x.reason = dlerror();
    return x;
  }
  const auto find = [&](auto& place, const char* name) {
    place = reinterpret_cast<std::decay_t<decltype(place)>>(dlsym(file, name));
    if (place == nullptr && x.reason.empty())
      x.reason = std::string{library_name} + " has no " + name;
  };
  find(x.library.comm_init_all, "ncclCommInitAll");
  find(x.library.comm_destroy, "ncclCommDestroy");
  find(x.library.comm_abort, "ncclCommAbort");
  find(x.library.all_gather, "ncclAllGather");
  find(x.library.group_start, "ncclGroupStart");
  find(x.library.group_end, "ncclGroupEnd");
  find(x.library.error_string, "ncclGetErrorString");
  return x;
}

} // namespace

const nccl_library* find_nccl(std::string* reason) {
  static const auto x = load();
  if (x.reason.empty()) return &x.library;
  if (reason != nullptr) *reason = x.reason;
  return nullptr;
}

} // namespace lamella::gpu::cuda
