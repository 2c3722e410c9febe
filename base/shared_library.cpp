#include "base/shared_library.hpp"

#include "base/library_file.hpp"

namespace lamella {

namespace {

std::string last_error(const char* name) {
  const char* text = dlerror();
  return text != nullptr ? text : std::string{name} + " cannot be loaded";
}

} // namespace

shared_library::shared_library(const char* name) : handle_{open_library(name)} {
  if (handle_ == nullptr) error_ = last_error(name);
}

void* shared_library::find(const char* name, const char* version) {
  if (error_) return nullptr;
  auto* at = version != nullptr ? dlvsym(handle_, name, version) : dlsym(handle_, name);
  if (at == nullptr) error_ = last_error(name);
  return at;
}

void* shared_library::find_optional(const char* name) const {
  return error_ ? nullptr : dlsym(handle_, name);
}

} // namespace lamella
