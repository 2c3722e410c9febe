/// What the device option of a pool means: auto, host or cuda:N.
#pragma once

#include <charconv>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>

namespace lamella::config {

constexpr std::string_view cuda_prefix = "cuda:";

/// Does it mean a CUDA device?
inline bool is_cuda(std::string_view device) { return device.starts_with(cuda_prefix); }

/// Of "cuda:N".
inline unsigned cuda_index(std::string_view device) {
  unsigned index = 0;
  std::from_chars(device.data() + cuda_prefix.size(), device.data() + device.size(), index);
  return index;
}

/// The device of a rank of a tensor-parallel replica whose rank 0 is on `device`: of CUDA devices
/// those that follow it, of the host itself.
inline std::string device_of_rank(const std::string& device, uint32_t rank) {
  return is_cuda(device) ? std::string{cuda_prefix} + std::to_string(cuda_index(device) + rank)
                         : device;
}

/// Those of all its ranks, each once.
inline std::set<std::string> devices_of_ranks(const std::string& device, uint32_t ranks) {
  std::set<std::string> devices;
  for (uint32_t r = 0; r < ranks; ++r) devices.insert(device_of_rank(device, r));
  return devices;
}

} // namespace lamella::config
