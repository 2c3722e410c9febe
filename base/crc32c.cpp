#include "base/crc32c.hpp"

#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace lamella {

namespace {

constexpr auto table = [] {
  std::array<uint32_t, 256> t{};
  for (uint32_t i = 0; i < 256; ++i) t[i] = crc32c_byte(i);
  return t;
}();

uint32_t by_table(const unsigned char* p, size_t bytes, uint32_t crc) {
  for (size_t i = 0; i < bytes; ++i) crc = (crc >> 8) ^ table[(crc ^ p[i]) & 255u];
  return crc;
}

#if defined(__x86_64__)
/// Bytes of each of the three streams that run side by side: the instruction takes three cycles but
/// can begin every cycle.
constexpr size_t lane_bytes = 1024;

/// How a CRC changes when `lane_bytes` zeros follow, a table per byte of it.
const auto& shift_tables() {
  static const auto tables = [] {
    std::array<std::array<uint32_t, 256>, 4> t{};
    const std::array<unsigned char, lane_bytes> zeros{};
    for (size_t byte = 0; byte < 4; ++byte)
      for (uint32_t i = 0; i < 256; ++i)
        t[byte][i] = by_table(zeros.data(), lane_bytes, i << 8 * byte);
    return t;
  }();
  return tables;
}

uint32_t shift(uint32_t crc) {
  const auto& t = shift_tables();
  return t[0][crc & 255u] ^ t[1][crc >> 8 & 255u] ^ t[2][crc >> 16 & 255u] ^ t[3][crc >> 24];
}

uint64_t word_at(const unsigned char* p) {
  uint64_t word = 0;
  std::memcpy(&word, p, sizeof word);
  return word;
}

__attribute__((target("sse4.2"))) uint32_t by_instruction(const unsigned char* p, size_t bytes,
                                                          uint32_t crc) {
  for (; bytes >= 3 * lane_bytes; p += 3 * lane_bytes, bytes -= 3 * lane_bytes) {
    uint64_t a = crc, b = 0, c = 0;
    for (size_t i = 0; i < lane_bytes; i += 8) {
      a = _mm_crc32_u64(a, word_at(p + i));
      b = _mm_crc32_u64(b, word_at(p + lane_bytes + i));
      c = _mm_crc32_u64(c, word_at(p + 2 * lane_bytes + i));
    }
    crc = shift(shift(static_cast<uint32_t>(a)) ^ static_cast<uint32_t>(b))
          ^ static_cast<uint32_t>(c);
  }
  uint64_t rest = crc;
  for (; bytes >= 8; p += 8, bytes -= 8) rest = _mm_crc32_u64(rest, word_at(p));
  crc = static_cast<uint32_t>(rest);
  for (; bytes > 0; ++p, --bytes) crc = _mm_crc32_u8(crc, *p);
  return crc;
}
#endif

} // namespace

uint32_t crc32c(const void* data, size_t bytes, uint32_t crc) {
  const auto* p = static_cast<const unsigned char*>(data);
#if defined(__x86_64__)
  static const bool has_instruction = __builtin_cpu_supports("sse4.2") != 0;
  if (has_instruction) return ~by_instruction(p, bytes, ~crc);
#endif
  return ~by_table(p, bytes, ~crc);
}

} // namespace lamella
