#include "gpu/kernels/reference.hpp"
#include "gpu/kernels/half.hpp"
#include "gpu/kernels/kv_copies.hpp"
#include "gpu/kernels/scalar_math.hpp"
#include "gpu/kernels/sets.hpp"
#include "model/quantised_block.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace lamella::gpu {

namespace {

using model::tensor_type;

size_t packed_bytes(tensor_type type, uint32_t outputs, uint32_t inputs) {
  return outputs * model::row_bytes(type, inputs);
}

void pack(tensor_type type, const std::byte* rows, uint32_t outputs, uint32_t inputs,
          std::byte* out, team&) {
  std::memcpy(out, rows, packed_bytes(type, outputs, inputs));
}

/// The elements of a block, by the formula of model/quantised_block.hpp.
template <tensor_type type> void dequantise_block(const std::byte* bytes, float* out) {
  using block = model::quantised_block<type>;
  constexpr auto step = block::scale_elements;
  const auto* b = reinterpret_cast<const uint8_t*>(bytes);
  for (uint32_t s = 0; s < model::block_elements(type) / step; ++s) {
    const auto scale = from_half(block::d(b)) * static_cast<float>(block::scale(b, s));
    for (uint32_t i = s * step; i < (s + 1) * step; ++i)
      out[i] = scale * static_cast<float>(block::level(block::code(b, i)));
    if constexpr (block::has_minimum) {
      const auto minimum = from_half(block::m(b)) * static_cast<float>(block::minimum(b, s));
      for (uint32_t i = s * step; i < (s + 1) * step; ++i) out[i] += minimum;
    }
  }
}

/// Row `n` of a matrix as fp32.
void dequantise_row(const packed_matrix& weight, uint32_t n, float* out) {
  const auto type = weight.type;
  const auto* row = weight.data + n * model::row_bytes(type, weight.inputs);
  const bool quantised = model::with_quantised(type, [&](auto known) {
    constexpr auto elements = model::block_elements(known), bytes = model::block_bytes(known);
    for (uint32_t k = 0; k < weight.inputs; k += elements, row += bytes)
      dequantise_block<decltype(known)::value>(row, out + k);
  });
  if (quantised) return;
  for (uint32_t k = 0; k < weight.inputs; ++k, row += model::block_bytes(type))
    out[k] = type == tensor_type::f32   ? load_as<float>(row)
             : type == tensor_type::f16 ? from_half(load_as<uint16_t>(row))
                                        : from_bf16(load_as<uint16_t>(row));
}

// Wider registers hold more of the lanes, and change none of the roundings. Sanitizers instrument
// the choice between clones, which is made before they are ready.
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define LAMELLA_ANY_REGISTERS [[gnu::target_clones("avx512f", "avx2", "default")]]
#else
#define LAMELLA_ANY_REGISTERS
#endif

/// Sums of products in double, in eight lanes so that they are not slower than they must be: of
/// `b` with each of `Rows` rows that lie `stride` floats apart. A row's sum does not depend on
/// the rows beside it.
using eight_floats [[gnu::vector_size(32)]] = float;
using eight_doubles [[gnu::vector_size(64)]] = double;
template <uint32_t Rows>
[[gnu::always_inline]] inline void dot_rows(const float* a, size_t stride, const float* b,
                                            uint32_t n, float* sums) {
  eight_doubles lanes[Rows] = {};
  uint32_t k = 0;
  for (; k + 8 <= n; k += 8) {
    eight_floats left, right;
    std::memcpy(&right, b + k, sizeof right);
    const auto wide = __builtin_convertvector(right, eight_doubles);
    for (uint32_t r = 0; r < Rows; ++r) {
      std::memcpy(&left, a + r * stride + k, sizeof left);
      lanes[r] += __builtin_convertvector(left, eight_doubles) * wide;
    }
  }
  for (uint32_t r = 0; r < Rows; ++r) {
    for (auto j = k; j < n; ++j) lanes[r][0] += static_cast<double>(a[r * stride + j]) * b[j];
    double sum = 0;
    for (uint32_t j = 0; j < 8; ++j) sum += lanes[r][j];
    sums[r] = static_cast<float>(sum);
  }
}

LAMELLA_ANY_REGISTERS float dot(const float* a, const float* b, uint32_t n) {
  float sum;
  dot_rows<1>(a, 0, b, n, &sum);
  return sum;
}

constexpr uint32_t rows_at_once = 4;
LAMELLA_ANY_REGISTERS void dots(const float* a, size_t stride, const float* b, uint32_t n,
                                float* sums) {
  dot_rows<rows_at_once>(a, stride, b, n, sums);
}

void embed(const embed_args& args, kernel_context) {
  for (size_t m = 0; m < args.tokens.size(); ++m)
    dequantise_row(args.table, token_of(args, m), args.out + m * args.table.inputs);
}

void matmul(const matmul_args& args, kernel_context context) {
  constexpr uint32_t outputs_per_item = 64;
  for (const auto& part : args.parts) {
    const auto& w = part.weight;
    arena::scope scope{context.scratch};
    size_t items = (w.outputs + outputs_per_item - 1) / outputs_per_item;
    auto* rows = context.scratch.allocate<float>(items * w.inputs);
    context.workers.for_each(items, [&](size_t item) {
      auto* row = rows + item * w.inputs;
      auto first = static_cast<uint32_t>(item) * outputs_per_item;
      for (auto n = first; n < std::min(first + outputs_per_item, w.outputs); ++n) {
        dequantise_row(w, n, row);
        auto* out = part.out + n;
        uint32_t m = 0;
        for (; m + rows_at_once <= args.rows; m += rows_at_once) {
          float sums[rows_at_once];
          dots(args.x + size_t{m} * w.inputs, w.inputs, row, w.inputs, sums);
          for (uint32_t r = 0; r < rows_at_once; ++r)
            out[size_t{m + r} * part.out_stride] = sums[r];
        }
        for (; m < args.rows; ++m)
          out[size_t{m} * part.out_stride] = dot(args.x + size_t{m} * w.inputs, row, w.inputs);
      }
    });
  }
}

void rms_norm(const rms_norm_args& args, kernel_context) {
  for (uint32_t m = 0; m < args.rows; ++m) {
    const float* x = args.x + size_t{m} * args.width;
    float* out = args.out + size_t{m} * args.width;
    auto mean = static_cast<double>(dot(x, x, args.width)) / args.width;
    auto factor = static_cast<float>(1.0 / std::sqrt(mean + args.epsilon));
    for (uint32_t j = 0; j < args.width; ++j) out[j] = x[j] * factor * args.weight[j];
  }
}

void rope(const rope_args& args, kernel_context) {
  auto pairs = args.frequencies.size();
  copy_for_rope(args);
  for (uint32_t m = 0; m < args.rows; ++m) {
    for (size_t i = 0; i < pairs; ++i) {
      double sine, cosine;
      sin_cos_double(args.positions[m] * args.frequencies[i], &sine, &cosine);
      sine *= args.magnitude;
      cosine *= args.magnitude;
      bool halves = args.pairing == rope_pairing::halves;
      auto first = halves ? i : 2 * i;
      auto second = halves ? i + pairs : 2 * i + 1;
      for (uint32_t h = 0; h < args.heads; ++h) {
        float* head = args.out + size_t{m} * args.stride + size_t{h} * args.dim;
        double a = head[first], b = head[second];
        head[first] = static_cast<float>(a * cosine - b * sine);
        head[second] = static_cast<float>(b * cosine + a * sine);
      }
    }
  }
}

void silu_mul(const silu_mul_args& args, kernel_context) {
  size_t count = size_t{args.rows} * args.width;
  for (size_t i = 0; i < count; ++i) {
    double g = args.gate[i];
    args.out[i] = static_cast<float>(g / (1 + exp_double(-g)) * args.up[i]);
  }
}

void add(const add_args& args, kernel_context) {
  size_t count = size_t{args.rows} * args.width;
  for (size_t i = 0; i < count; ++i) args.out[i] = args.a[i] + args.b[i];
}

void add_bias(const add_bias_args& args, kernel_context) {
  for (size_t m = 0; m < args.rows; ++m)
    for (size_t j = 0; j < args.width; ++j)
      args.out[m * args.width + j] = args.x[m * args.width + j] + args.bias[j];
}

void scale(const scale_args& args, kernel_context) {
  const size_t count = size_t{args.rows} * args.width;
  for (size_t i = 0; i < count; ++i) args.out[i] = args.x[i] * args.factor;
}

void to_wire(const to_wire_args& args, kernel_context) {
  auto* out = args.out;
  for (uint32_t h = 0; h < args.head_count; ++h)
    for (auto row : args.row_index) {
      const float* x =
          args.x + size_t{row} * args.stride + size_t{args.first_head + h} * args.width;
      for (uint32_t j = 0; j < args.width; ++j, out += bytes_of(args.wire))
        store_rounded(args.wire, x[j], out);
    }
}

void from_wire(const from_wire_args& args, kernel_context) {
  const auto* in = args.in;
  for (uint32_t h = 0; h < args.head_count; ++h)
    for (auto row : args.row_index) {
      float* out = args.out + size_t{row} * args.stride + size_t{args.first_head + h} * args.width;
      for (uint32_t j = 0; j < args.width; ++j, in += bytes_of(args.wire))
        out[j] = load_widened(args.wire, in);
    }
}

void parity_to_wire(const parity_to_wire_args& args, kernel_context) {
  auto* out = args.out;
  const auto bytes = head_bytes_of(args.cache, args.dim);
  std::vector<float> rounded(args.dim);
  std::vector<std::byte> one(bytes);
  for (uint32_t h = 0; h < args.head_count; ++h)
    for (auto row : args.row_index) {
      for (uint32_t s = 0; s < args.shards; ++s) {
        const float* x =
            args.x + size_t{row} * args.stride + size_t{s * args.head_count + h} * args.dim;
        for (uint32_t j = 0; j < args.dim; ++j) {
          store_rounded(args.wire, x[j], one.data());
          rounded[j] = load_widened(args.wire, one.data());
        }
        store_head(args.cache, rounded.data(), args.dim, one.data());
        for (size_t b = 0; b < bytes; ++b) out[b] = s == 0 ? one[b] : out[b] ^ one[b];
      }
      out += bytes;
    }
}

} // namespace

const operators& reference_operators() {
  static constexpr operators table{
      .name = "reference",
      .packed_bytes = packed_bytes,
      .pack = pack,
      .embed = embed,
      .rms_norm = rms_norm,
      .matmul = matmul,
      .rope = rope,
      .silu_mul = silu_mul,
      .add = add,
      .add_bias = add_bias,
      .scale = scale,
      .gather_rows = gather_rows_of,
      .to_wire = to_wire,
      .from_wire = from_wire,
      .parity_to_wire = parity_to_wire,
      .sample = sample_rows,
      .attention_unsupported = attention_unsupported_of,
      .attention_state_floats = attention_state_floats_of,
      .attend_previous = reference_attend_previous,
      .append_kv = reference_append_kv,
      .attend_new = reference_attend_new,
      .gather_kv = gather_kv,
      .scatter_kv = scatter_kv,
      .checksum_kv = checksum_kv_of,
  };
  return table;
}

} // namespace lamella::gpu
