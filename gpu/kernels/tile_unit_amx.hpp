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
  /// that the kernel need not save them with the thread. Registers: 0 and 1 have sums, 2 and 3
  /// rows, 4 and 5 weights. `elements` of K, 16 or 32, are multiplied at once.
  template <int elements> class session {
  public:
    session() {
      layout wanted;
      for (int i : {0, 1}) wanted.set(i, 16, 64);
      for (int i : {2, 3}) wanted.set(i, 16, elements);
      for (int i : {4, 5}) wanted.set(i, elements / 4, 64);
      asm volatile("ldtilecfg %0" : : "m"(wanted));
    }
    ~session() { asm volatile("tilerelease"); }
    session(const session&) = delete;
    session& operator=(const session&) = delete;
  };

  /// sums[16][16] = rows[16][elements] * weights[elements / 4][16][4], exact; rows lie `stride`
  /// bytes apart. Calls with the other `registers`, 0 or 1, may overlap in time.
  template <int elements, int registers>
  static void multiply(const int8_t* rows, size_t stride, const int8_t* weights, int32_t* sums) {
    asm volatile(
        "tilezero %%tmm%c[c]\n\t"
        "tileloadd (%[rows],%[stride],1), %%tmm%c[a]\n\t"
        "tileloadd (%[weights],%[line],1), %%tmm%c[b]\n\t"
        "tdpbssd %%tmm%c[b], %%tmm%c[a], %%tmm%c[c]\n\t"
        "tilestored %%tmm%c[c], (%[sums],%[line],1)"
        :
        : [rows] "r"(rows), [stride] "r"(stride), [weights] "r"(weights), [sums] "r"(sums),
          [line] "r"(size_t{64}), [a] "i"(2 + registers), [b] "i"(4 + registers), [c] "i"(registers)
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
