/// CRC32C (Castagnoli): what frames are checked with.
#pragma once

#include <cstddef>
#include <cstdint>

namespace lamella::gpu {

/// CRC32C of `bytes` bytes, continuing `crc` (0 to begin). Uses the processor's instruction where
/// there is one; otherwise a table, one byte at a time.
uint32_t crc32c(const void* data, size_t bytes, uint32_t crc = 0);

} // namespace lamella::gpu
