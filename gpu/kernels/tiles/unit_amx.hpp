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
  /// that the kernel need not save them with the thread. Of the two products at once, `slot` 0 and
  /// 1, registers 0 and 1 have the sums, 2 and 3 rows, 4 and 5 weights. `elements` of K, 16 or 32,
  /// are multiplied at once.
  template <int elements> class session {
  public:
    session() {
      layout wanted;
      for (int slot = 0; slot < 2; ++slot) {
        wanted.set(slot, 16, 64);
        wanted.set(2 + slot, 16, elements);
        wanted.set(4 + slot, elements / 4, 64);
      }
      asm volatile("ldtilecfg %0" : : "m"(wanted));
    }
    ~session() { asm volatile("tilerelease"); }
    session(const session&) = delete;
    session& operator=(const session&) = delete;

    /// Begins sums[16][16] = rows[16][elements] * weights[elements / 4][16][4], exact; rows lie
    /// `stride` bytes apart.
    template <int slot>
    void multiply(const int8_t* rows, size_t stride, const int8_t* weights) const {
      asm volatile(
          "tilezero %%tmm%c[sums]\n\t"
          "tileloadd (%[rows],%[stride],1), %%tmm%c[left]\n\t"
          "tileloadd (%[weights],%[line],1), %%tmm%c[right]\n\t"
          "tdpbssd %%tmm%c[right], %%tmm%c[left], %%tmm%c[sums]"
          :
          : [rows] "r"(rows), [stride] "r"(stride), [weights] "r"(weights), [line] "r"(size_t{64}),
            [sums] "i"(slot), [left] "i"(2 + slot), [right] "i"(4 + slot)
          : "memory");
    }
    /// Waits for the sums of a slot.
    template <int slot> void store(int32_t* sums) const {
      asm volatile("tilestored %%tmm%c2, (%0,%1,1)"
                   :
                   : "r"(sums), "r"(size_t{64}), "i"(slot)
                   : "memory");
    }
  };

  /// Tile registers of the thread while it multiplies bf16. Registers: 0 to 3 have sums, 4 and 5
  /// what is left of a product, of `rows` rows; 6 and 7 what is right of it. A line of a register
  /// has 64 bytes: 16 sums, or 16 pairs.
  class halves {
  public:
    explicit halves(int rows) {
      layout wanted;
      for (int i = 0; i < 6; ++i) wanted.set(i, rows, 64);
      for (int i = 6; i < 8; ++i) wanted.set(i, 16, 64);
      asm volatile("ldtilecfg %0" : : "m"(wanted));
    }
    ~halves() { asm volatile("tilerelease"); }
    halves(const halves&) = delete;
    halves& operator=(const halves&) = delete;

    template <int to> void zero() const { asm volatile("tilezero %%tmm%c0" : : "i"(to)); }
    /// Lines lie `stride` bytes apart.
    template <int to> void load(const void* from, size_t stride) const {
      asm volatile("tileloadd (%0,%1,1), %%tmm%c2" : : "r"(from), "r"(stride), "i"(to) : "memory");
    }
    /// sums[m][n] += left[m] x right[.][n]: all first elements of pairs in turn, each fused, beside
    /// all second ones; then both, then the sums before. What is too small for fp32 is 0.
    template <int sums, int left, int right> void multiply() const {
      asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(sums), "i"(left), "i"(right));
    }
    template <int from> void store(float* to, size_t stride) const {
      asm volatile("tilestored %%tmm%c2, (%0,%1,1)" : : "r"(to), "r"(stride), "i"(from) : "memory");
    }
  };

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
