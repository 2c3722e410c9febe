/// Operators that treat each row by itself: norm, rotation, activation, sums, the wire.
/// Included after `lanes`.
#pragma once

#include "gpu/kernels/cached.hpp"
#include "gpu/kernels/half.hpp"
#include "gpu/kernels/operators.hpp"
#include "gpu/kernels/scalar_math.hpp"
#include "gpu/kernels/sets.hpp"
#include "gpu/kernels/vector_math.hpp"

#include <cmath>

namespace lamella::gpu {
namespace {

using vec = lanes::vec;

constexpr uint32_t row_lanes = 16;

/// Deals out [0, count) in pieces of `size`; f(first, last).
template <class F> void for_pieces(kernel_context context, size_t count, size_t size, F&& f) {
  context.workers.for_each((count + size - 1) / size, [&](size_t piece) {
    auto first = piece * size;
    f(first, count - first < size ? count : first + size);
  });
}

void rms_norm_row(const float* x, const float* weight, float epsilon, uint32_t width, float* out) {
  // Two sums, so that additions of one need not wait for the other.
  vec even = lanes::zero(), odd = lanes::zero();
  uint32_t j = 0;
  for (; j + 2 * row_lanes <= width; j += 2 * row_lanes) {
    auto a = lanes::load(x + j), b = lanes::load(x + j + row_lanes);
    even = lanes::fma(a, a, even);
    odd = lanes::fma(b, b, odd);
  }
  for (; j < width; j += row_lanes) {
    auto a = lanes::load_first(x + j, width - j < row_lanes ? width - j : row_lanes);
    even = lanes::fma(a, a, even);
  }
  float mean = lanes::sum(lanes::add(even, odd)) / static_cast<float>(width);
  auto factor = lanes::set(1.0f / std::sqrt(mean + epsilon));
  for (j = 0; j + row_lanes <= width; j += row_lanes)
    lanes::store(out + j,
                 lanes::mul(lanes::mul(lanes::load(x + j), factor), lanes::load(weight + j)));
  if (j < width) {
    auto n = width - j;
    auto v = lanes::mul(lanes::load_first(x + j, n), factor);
    lanes::store_first(out + j, lanes::mul(v, lanes::load_first(weight + j, n)), n);
  }
}

inline void rms_norm(const rms_norm_args& args, kernel_context context) {
  for_pieces(context, args.rows, 16, [&](size_t first, size_t last) {
    for (auto m = first; m < last; ++m)
      rms_norm_row(args.x + m * args.width, args.weight, args.epsilon, args.width,
                   args.out + m * args.width);
  });
}

/// Rotates `heads` heads by the angles whose sines and cosines are given.
void rotate(float* __restrict x, uint32_t heads, uint32_t dim, rope_pairing pairing, size_t pairs,
            const float* __restrict sine, const float* __restrict cosine) {
  for (uint32_t h = 0; h < heads; ++h, x += dim) {
    if (pairing == rope_pairing::interleaved) {
      for (size_t i = 0; i < pairs; ++i) {
        float a = x[2 * i], b = x[2 * i + 1];
        x[2 * i] = a * cosine[i] - b * sine[i];
        x[2 * i + 1] = b * cosine[i] + a * sine[i];
      }
    } else {
      float* __restrict high = x + pairs;
      for (size_t i = 0; i < pairs; ++i) {
        float a = x[i], b = high[i];
        x[i] = a * cosine[i] - b * sine[i];
        high[i] = b * cosine[i] + a * sine[i];
      }
    }
  }
}

inline void rope(const rope_args& args, kernel_context context) {
  arena::scope scope{context.scratch};
  copy_for_rope(args);
  auto pairs = args.frequencies.size();
  const double* frequencies = args.frequencies.data();
  auto* tables = context.scratch.allocate<float>(args.rows * pairs * 2);
  for_pieces(context, args.rows, 8, [&](size_t first, size_t last) {
    for (auto m = first; m < last; ++m) {
      float* sine = tables + m * pairs * 2;
      float* cosine = sine + pairs;
      double position = args.positions[m];
      for (size_t i = 0; i < pairs; ++i) {
        double s, c;
        sin_cos_double(position * frequencies[i], &s, &c);
        sine[i] = static_cast<float>(s * args.magnitude);
        cosine[i] = static_cast<float>(c * args.magnitude);
      }
      rotate(args.out + m * args.stride, args.heads, args.dim, args.pairing, pairs, sine, cosine);
    }
  });
}

/// Sixteen elements, or the first n of them, through f.
template <class F>
void by_lanes(size_t first, size_t last, const float* a, const float* b, float* out, F&& f) {
  auto i = first;
  for (; i + row_lanes <= last; i += row_lanes)
    lanes::store(out + i, f(lanes::load(a + i), lanes::load(b + i)));
  if (i < last) {
    auto n = static_cast<uint32_t>(last - i);
    lanes::store_first(out + i, f(lanes::load_first(a + i, n), lanes::load_first(b + i, n)), n);
  }
}

constexpr size_t elements_per_piece = 8192;

inline void silu_mul(const silu_mul_args& args, kernel_context context) {
  for_pieces(context, size_t{args.rows} * args.width, elements_per_piece,
             [&](size_t first, size_t last) {
               by_lanes(first, last, args.gate, args.up, args.out, [](vec gate, vec up) {
                 auto e = exp_lanes(lanes::sub(lanes::zero(), gate));
                 return lanes::mul(lanes::div(gate, lanes::add(lanes::set(1.0f), e)), up);
               });
             });
}

inline void add(const add_args& args, kernel_context context) {
  for_pieces(context, size_t{args.rows} * args.width, elements_per_piece,
             [&](size_t first, size_t last) {
               by_lanes(first, last, args.a, args.b, args.out,
                        [](vec a, vec b) { return lanes::add(a, b); });
             });
}

inline void add_bias(const add_bias_args& args, kernel_context context) {
  for_pieces(context, args.rows, 16, [&](size_t first, size_t last) {
    for (auto m = first; m < last; ++m)
      by_lanes(0, args.width, args.x + m * args.width, args.bias, args.out + m * args.width,
               [](vec x, vec bias) { return lanes::add(x, bias); });
  });
}

inline void scale(const scale_args& args, kernel_context context) {
  for_pieces(context, size_t{args.rows} * args.width, elements_per_piece,
             [&](size_t first, size_t last) {
               const auto factor = lanes::set(args.factor);
               by_lanes(first, last, args.x, args.x, args.out,
                        [&](vec x, vec) { return lanes::mul(x, factor); });
             });
}

/// Rounds fp32 to `type`, nearest and ties to even; in q8 and q4 they are a head.
inline void narrow(const float* x, uint32_t count, half_type type, std::byte* out) {
  if (type == half_type::f32) {
    __builtin_memcpy(out, x, size_t{count} * 4);
    return;
  }
  if (type == half_type::q8) return quantise_head(x, count, out);
  if (type == half_type::q4) return quantise_head_to_4_bits(x, count, out);
  uint32_t j = 0;
  if (type == half_type::bf16) {
    for (; j < count; ++j) {
      const auto h = to_bf16(x[j]);
      __builtin_memcpy(out + size_t{j} * 2, &h, sizeof h);
    }
    return;
  }
  for (; j + row_lanes <= count; j += row_lanes) lanes::store_f16(out + j * 2, lanes::load(x + j));
  for (; j < count; ++j) {
    auto h = to_half(x[j]);
    __builtin_memcpy(out + j * 2, &h, sizeof h);
  }
}

/// To fp32; a head in q4 stays rotated (q4.hpp).
inline void widen(const std::byte* x, uint32_t count, half_type type, float* out) {
  if (type == half_type::f32) {
    __builtin_memcpy(out, x, size_t{count} * 4);
    return;
  }
  uint32_t j = 0;
  if (type == half_type::q4) {
    const auto scales = q4_scales_at(count);
    for (; j + row_lanes <= count; j += row_lanes)
      lanes::store(out + j, load_cached<half_type::q4>(x, j / row_lanes, scales));
    for (; j < count; ++j) {
      const auto [scale, least] = q4_factors_of(x + scales, j / q4_group);
      out[j] = scale * q4_code(x, j) + least;
    }
    return;
  }
  if (type == half_type::q8) {
    const auto scale_at = q8_scale_at(count);
    for (; j + row_lanes <= count; j += row_lanes)
      lanes::store(out + j, load_cached<half_type::q8>(x, j / row_lanes, scale_at));
    const auto scale = q8_scale_of(x, scale_at);
    for (; j < count; ++j) out[j] = scale * static_cast<float>(static_cast<int8_t>(x[j]));
    return;
  }
  if (type == half_type::bf16) {
    for (; j < count; ++j) out[j] = from_bf16(load_as<uint16_t>(x + size_t{j} * 2));
    return;
  }
  for (; j + row_lanes <= count; j += row_lanes) lanes::store(out + j, lanes::load_f16(x + j * 2));
  for (; j < count; ++j) out[j] = from_half(load_as<uint16_t>(x + j * 2));
}

constexpr size_t heads_per_piece = 32; ///< of one row each

inline void to_wire(const to_wire_args& args, kernel_context context) {
  auto rows = args.row_index.size();
  const uint32_t* row_index = args.row_index.data();
  auto bytes = args.width * bytes_of(args.wire);
  for_pieces(context, rows * args.head_count, heads_per_piece, [&](size_t first, size_t last) {
    for (auto i = first; i < last; ++i) {
      auto head = args.first_head + i / rows;
      narrow(args.x + size_t{row_index[i % rows]} * args.stride + head * args.width, args.width,
             args.wire, args.out + i * bytes);
    }
  });
}

/// What a cache of type `to` holds of a head that came over a wire of type `from`. `room`: D
/// floats.
inline void to_cache(half_type from, const std::byte* x, half_type to, std::byte* out, uint32_t dim,
                     float* room) {
  if (from == to) {
    __builtin_memcpy(out, x, head_bytes_of(to, dim));
  } else {
    widen(x, dim, from, room);
    narrow(room, dim, to, out);
  }
}

inline void parity_to_wire(const parity_to_wire_args& args, kernel_context context) {
  arena::scope scope{context.scratch};
  const auto rows = args.row_index.size();
  const auto bytes = head_bytes_of(args.cache, args.dim);
  const auto pieces = (rows * args.head_count + heads_per_piece - 1) / heads_per_piece;
  auto* wired = context.scratch.allocate<float>(pieces * args.dim);
  auto* widened = context.scratch.allocate<float>(pieces * args.dim);
  auto* stored = context.scratch.allocate<std::byte>(pieces * bytes);
  for_pieces(context, rows * args.head_count, heads_per_piece, [&](size_t first, size_t last) {
    const auto piece = first / heads_per_piece;
    auto* wire = reinterpret_cast<std::byte*>(wired + piece * args.dim);
    auto* one = stored + piece * bytes;
    for (auto i = first; i < last; ++i) {
      const auto* x = args.x + size_t{args.row_index[i % rows]} * args.stride + i / rows * args.dim;
      auto* out = args.out + i * bytes;
      for (uint32_t s = 0; s < args.shards; ++s, x += size_t{args.head_count} * args.dim) {
        narrow(x, args.dim, args.wire, wire);
        to_cache(args.wire, wire, args.cache, s == 0 ? out : one, args.dim,
                 widened + piece * args.dim);
        if (s == 0) continue;
        for (size_t b = 0; b < bytes; ++b) out[b] ^= one[b];
      }
    }
  });
}

inline void from_wire(const from_wire_args& args, kernel_context context) {
  auto rows = args.row_index.size();
  const uint32_t* row_index = args.row_index.data();
  auto bytes = args.width * bytes_of(args.wire);
  for_pieces(context, rows * args.head_count, heads_per_piece, [&](size_t first, size_t last) {
    for (auto i = first; i < last; ++i) {
      auto head = args.first_head + i / rows;
      widen(args.in + i * bytes, args.width, args.wire,
            args.out + size_t{row_index[i % rows]} * args.stride + head * args.width);
    }
  });
}

} // namespace
} // namespace lamella::gpu
