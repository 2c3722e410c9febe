#include "gpu/cuda_module.hpp"

#include <cstring>
#include <filesystem>
#include <mutex>
#include <stdexcept>
#include <vector>

#include <dlfcn.h>

namespace lamella::gpu {

namespace {

constexpr const char* library_name = "liblamella_cuda.so";

std::vector<std::string> candidates() {
  std::error_code ignored;
  const auto here = std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path();
  std::vector<std::string> paths;
  if (!here.empty())
    for (const auto& folder : {here, here.parent_path(), here.parent_path() / "lib"})
      if (std::filesystem::exists(folder / library_name, ignored))
        paths.push_back((folder / library_name).string());
  paths.emplace_back(library_name);
  return paths;
}

struct loaded {
  const cuda_module* module = nullptr;
  std::string reason;
};

loaded load() {
  loaded result;
  for (const auto& path : candidates()) {
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      result.reason = dlerror();
      continue;
    }
    using entry = const cuda_module* (*)();
    const auto find = reinterpret_cast<entry>(dlsym(library, "lamella_cuda_module"));
    if (find == nullptr) {
      result.reason = path + " is not a GPU part of this program";
      continue;
    }
    const auto* module = find();
    if (std::strcmp(module->built_as, cuda_module_build()) == 0) return {module, {}};
    result.reason = path + " was built as '" + module->built_as + "', this program as '"
                    + cuda_module_build() + "'; build both together";
  }
  return result;
}

} // namespace

const char* cuda_module_build() { return LAMELLA_VERSION " gpu-1 " __VERSION__; }

const cuda_module* find_cuda_module(std::string* reason) {
  static const loaded once = load();
  if (once.module == nullptr && reason != nullptr) *reason = once.reason;
  return once.module;
}

std::unique_ptr<device> open_cuda_device(unsigned index) {
  std::string reason;
  const auto* module = find_cuda_module(&reason);
  if (module == nullptr) throw std::runtime_error{"no GPU support: " + reason};
  const auto count = module->count(&reason);
  if (index >= count)
    throw std::runtime_error{
        "cuda:" + std::to_string(index) + " does not exist: "
        + (count == 0 ? reason
                      : "there are " + std::to_string(count) + " CUDA devices, counted from 0")};
  return module->open(index);
}

} // namespace lamella::gpu
