#include "gpu/cuda_module.hpp"

#include "base/library_file.hpp"

#include <cstring>
#include <filesystem>
#include <mutex>
#include <stdexcept>

namespace lamella::gpu {

namespace {

constexpr const char* library_name = "liblamella_cuda.so";

/// Files that exist, and last what the system's paths may hold.
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

/// One of them; null with a reason.
const cuda_module* load(const std::string& path, std::string& reason) {
  void* library = open_library(path.c_str());
  if (library == nullptr) {
    reason = dlerror();
    return nullptr;
  }
  using entry = const cuda_module* (*)();
  const auto find = reinterpret_cast<entry>(dlsym(library, "lamella_cuda_module"));
  if (find == nullptr) {
    reason = path + " is not a GPU part of this program";
    return nullptr;
  }
  const auto* module = find();
  if (std::strcmp(module->built_as, cuda_module_build()) == 0) return module;
  reason = path + " was built as '" + module->built_as + "', this program as '"
           + cuda_module_build() + "'; build both together";
  return nullptr;
}

} // namespace

const char* cuda_module_build() { return LAMELLA_VERSION " gpu-3 " __VERSION__; }

loaded_cuda_module load_cuda_module(const std::vector<std::string>& paths) {
  loaded_cuda_module result;
  for (const auto& path : paths) {
    std::string reason;
    result.module = load(path, reason);
    if (result.module != nullptr) return {result.module, {}};
    if (result.reason.empty()) result.reason = std::move(reason);
  }
  return result;
}

const cuda_module* find_cuda_module(std::string* reason) {
  static const auto once = load_cuda_module(candidates());
  if (once.module == nullptr && reason != nullptr) *reason = once.reason;
  return once.module;
}

std::string why_apart(unsigned a, unsigned b) {
  const auto* module = find_cuda_module(nullptr);
  if (module == nullptr) return "no GPU support";
  try {
    return module->peers(a, b);
  } catch (const std::runtime_error& e) {
    return e.what();
  }
}

unsigned cuda_devices() {
  const auto* module = find_cuda_module(nullptr);
  return module == nullptr ? 0 : module->count(nullptr);
}

std::string why_no_cuda_device(unsigned index) {
  std::string reason;
  const auto* module = find_cuda_module(&reason);
  if (module == nullptr) return "no GPU support: " + reason;
  const auto count = module->count(&reason);
  if (index < count) return {};
  return "cuda:" + std::to_string(index) + " does not exist: "
         + (count == 0 ? reason
                       : "there are " + std::to_string(count) + " CUDA devices, counted from 0");
}

std::unique_ptr<device> open_cuda_device(unsigned index) {
  if (auto why = why_no_cuda_device(index); !why.empty()) throw std::runtime_error{why};
  return find_cuda_module(nullptr)->open(index);
}

} // namespace lamella::gpu
