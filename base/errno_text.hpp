/// What an error number of the C library means.
#pragma once

#include <cerrno>
#include <string>
#include <system_error>

namespace lamella {

/// Unlike strerror(), from any number of threads at once.
inline std::string errno_text(int number = errno) {
  return std::generic_category().message(number);
}

} // namespace lamella
