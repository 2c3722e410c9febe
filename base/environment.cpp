#include "base/environment.hpp"

#include <random>

namespace lamella {

std::chrono::system_clock::time_point date_of_machine() { return std::chrono::system_clock::now(); }

uint64_t chance_of_machine() {
  std::random_device device;
  return uint64_t{device()} << 32 | device();
}

int64_t environment::seconds_since_1970() const {
  return std::chrono::duration_cast<std::chrono::seconds>(date().time_since_epoch()).count();
}

} // namespace lamella
