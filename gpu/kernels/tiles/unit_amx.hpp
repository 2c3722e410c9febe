/// The tile operation in AMX. Its plain twin, with the same members and the same arithmetic, is
/// tests/gpu/kernels/tile_unit_twin.hpp.
///
/// Each operation is one asm statement over whole objects in memory. The intrinsics of GCC 12 tell
/// the compiler neither that a tile load reads memory nor that the configuration has 64 bytes, so
/// an optimised build may leave out the stores before them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace lamella::gpu {
namespace {

struct tile_unit {
  /// Tile registers of the thread while it multiplies: configured, and given back at the end, so
  /// that the kernel need not save them with the thread. Registers: 0 has sums, 1 rows, 2 weights.
  /// `elements` of K, 16 or 32, are multiplied at once.
  template <int elements> class session {
  public:
    session() {
      layout wanted;
      wanted.set(0, 16, 64);
      wanted.set(1, 16, elements);
      wanted.set(2, elements / 4, 64);
      asm volatile("ldtilecfg %0" : : "m"(wanted));
    }
    ~session() { asm volatile("tilerelease"); }
    session(const session&) = delete;
    session& operator=(const session&) = delete;
  };

  /// sums[16][16] = rows[16][elements] * weights[elements / 4][16][4], exact; rows lie `stride`
  /// bytes apart.
  template <int elements>
  static void multiply(const int8_t* rows, size_t stride, const int8_t* weights, int32_t* sums) {
    asm volatile("tilezero %%tmm0\n\t"
                 "tileloadd (%[rows],%[stride],1), %%tmm1\n\t"
                 "tileloadd (%[weights],%[line],1), %%tmm2\n\t"
                 "tdpbssd %%tmm2, %%tmm1, %%tmm0\n\t"
                 "tilestored %%tmm0, (%[sums],%[line],1)"
                 :
                 : [rows] "r"(rows), [stride] "r"(stride), [weights] "r"(weights), [sums] "r"(sums),
                   [line] "r"(size_t{64})
                 : "memory");
  }

private:
  /// What ldtilecfg reads.
  struct alignas(64) layout {
    uint8_t palette = 1, start_row = 0, reserved[14] = {};
    uint16_t row_bytes[16] = {};
    uint8_t rows[16] = {};

    void set(int tile, int count, int bytes) {
      rows[tile] = static_cast<uint8_t>(count);
      row_bytes[tile] = static_cast<uint16_t>(bytes);
    }
  };
  static_assert(sizeof(layout) == 64);
};

} // namespace
} // namespace lamella::gpu
