/// Error numbers of the C library: what they mean, and as exceptions.
#pragma once

#include <cerrno>
#include <string>
#include <system_error>

namespace lamella {

/// Unlike strerror(), from any number of threads at once.
inline std::string errno_text(int number = errno) {
  return std::generic_category().message(number);
}

/// Throws std::system_error with errno.
[[noreturn]] inline void throw_errno(const char* what) {
  throw std::system_error{errno, std::generic_category(), what};
}

} // namespace lamella
