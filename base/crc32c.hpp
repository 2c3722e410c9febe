/// CRC32C (Castagnoli), the checksum of frames.
#pragma once

#include "base/host_device.hpp"

#include <cstddef>
#include <cstdint>

namespace lamella {

/// What eight zero bits make of a CRC32C (Castagnoli, reflected 0x82f63b78).
LAMELLA_HOST_DEVICE constexpr uint32_t crc32c_byte(uint32_t crc) {
  for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (0x82f63b78u & (0u - (crc & 1u)));
  return crc;
}

/// CRC32C without tables or special instructions: about 2000 operations for a header. Device code
/// that sends the same frames again and again keeps finished headers instead; hosts use
/// crc32c(), which gives the same numbers.
LAMELLA_HOST_DEVICE inline uint32_t crc32c_portable(const void* data, size_t bytes,
                                                    uint32_t crc = 0) {
  const auto* p = static_cast<const unsigned char*>(data);
  crc = ~crc;
  for (size_t i = 0; i < bytes; ++i) crc = crc32c_byte(crc ^ p[i]);
  return ~crc;
}

/// CRC32C of `bytes` bytes, continuing `crc` (0 to begin). Uses the processor's instruction where
/// there is one; otherwise a table, one byte at a time.
uint32_t crc32c(const void* data, size_t bytes, uint32_t crc = 0);

} // namespace lamella
