/// Loading a shared library while the process runs.
#pragma once

#include "base/float_mode.hpp"

#include <dlfcn.h>

namespace lamella {

/// As dlopen, with all symbols resolved and kept to the library; null where it cannot be loaded
/// (dlerror says why). What the library does to this thread's floating-point mode is undone.
inline void* open_library(const char* path) {
  const plain_floats guard;
  return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

} // namespace lamella
