/// The tile operation of gpu/kernels/tiles/unit_amx.hpp in plain C++: the same members, the same
/// arithmetic.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

namespace lamella::gpu {
namespace {

struct tile_unit {
  template <int elements> class session {
  public:
    session() {} // there is nothing to configure

    template <int slot>
    void multiply(const int8_t* rows, size_t stride, const int8_t* weights) const {
      auto* sums = sums_[slot];
      for (int m = 0; m < 16; ++m, rows += stride, sums += 16) {
        for (int n = 0; n < 16; ++n) sums[n] = 0;
        for (int k = 0; k < elements; ++k)
          for (int n = 0; n < 16; ++n)
            sums[n] += int32_t{rows[k]} * weights[k / 4 * 64 + n * 4 + k % 4];
      }
    }
    template <int slot> void store(int32_t* sums) const {
      __builtin_memcpy(sums, sums_[slot], sizeof sums_[slot]);
    }

  private:
    mutable int32_t sums_[2][256];
  };

  class halves {
  public:
    explicit halves(int rows) : rows_{rows} {}

    template <int to> void zero() const { tiles_[to] = {}; }
    template <int to> void load(const void* from, size_t stride) const {
      for (int i = 0; i < lines(to); ++i)
        __builtin_memcpy(tiles_[to].v[i], static_cast<const std::byte*>(from) + i * stride, 64);
    }
    template <int sums, int left, int right> void multiply() const {
      float low_right[16][16], high_right[16][16];
      for (int k = 0; k < 16; ++k)
        for (int n = 0; n < 16; ++n) {
          low_right[k][n] = low(tiles_[right].v[k][n]);
          high_right[k][n] = high(tiles_[right].v[k][n]);
        }
      for (int m = 0; m < rows_; ++m) {
        float first[16] = {}, second[16] = {};
        for (int k = 0; k < 16; ++k) {
          const float x = low(tiles_[left].v[m][k]), y = high(tiles_[left].v[m][k]);
          for (int n = 0; n < 16; ++n) {
            first[n] = normal(__builtin_fmaf(x, low_right[k][n], first[n]));
            second[n] = normal(__builtin_fmaf(y, high_right[k][n], second[n]));
          }
        }
        auto* sum = tiles_[sums].v[m];
        for (int n = 0; n < 16; ++n)
          sum[n] = std::bit_cast<uint32_t>(
              normal(std::bit_cast<float>(sum[n]) + normal(first[n] + second[n])));
      }
    }
    template <int from> void store(float* to, size_t stride) const {
      for (int i = 0; i < lines(from); ++i)
        __builtin_memcpy(reinterpret_cast<std::byte*>(to) + i * stride, tiles_[from].v[i], 64);
    }

  private:
    struct tile {
      uint32_t v[16][16] = {};
    };

    int lines(int number) const { return number < 6 ? rows_ : 16; }
    /// 0 for what has no exponent.
    static float normal(float x) {
      const auto bits = std::bit_cast<uint32_t>(x);
      return std::bit_cast<float>((bits & 0x7f800000u) == 0 ? bits & 0x80000000u : bits);
    }
    static float low(uint32_t pair) { return normal(std::bit_cast<float>(pair << 16)); }
    static float high(uint32_t pair) { return normal(std::bit_cast<float>(pair & 0xffff0000u)); }

    int rows_;
    mutable tile tiles_[8];
  };
};

} // namespace
} // namespace lamella::gpu
