/// The kernel sets of this build. Each returns null where its architecture was not compiled.
#pragma once

#include "gpu/kernels/operators.hpp"

namespace lamella::gpu {

const operators* portable_operators();
const operators* avx2_operators();
/// The same with other instructions for products: the same bytes.
const operators* avxvnni_operators();
const operators* avx512_operators();
const operators* amx_operators();

/// Whether this processor multiplies bytes by AVX-VNNI.
bool has_avx_vnni();

/// Whether this machine's tile registers multiply as their twin does: some products of each sign,
/// compared. Needs the CPU's and the kernel's leave for tiles. Cost: microseconds.
bool amx_tiles_are_exact();

/// The one sampler, shared by all sets (sample.cpp).
void sample_rows(const sample_args& args, kernel_context context);
void gather_rows_of(const gather_rows_args& args, kernel_context context);
void checksum_kv_of(const checksum_kv_args& args, kernel_context context);

// Each set's file has its own copy of these: the linker would keep one of all, and whose
// instructions it has nobody chooses.
namespace {

/// The host's sets do any shape and type.
inline const char* attention_unsupported_of(const attention_args& args) {
  const auto has_16_bits = [](half_type x) { return x == half_type::f16 || x == half_type::bf16; };
  if (has_scales(args.wire)) return "attention needs a wire of f16, bf16 or f32";
  return args.wire != args.kv.type && has_16_bits(args.wire) && has_16_bits(args.kv.type)
             ? "attention needs a wire and a cache of one type where both have 16 bits"
             : nullptr;
}

/// [M, H, G, D + 2]: running sum, maximum and weight of each query.
inline size_t attention_state_floats_of(const attention_args& args) {
  return size_t{args.rows} * args.kv.kv_heads * args.group * (args.kv.dim + 2);
}

/// The token of row m: given, or what its seat sampled last.
inline uint32_t token_of(const embed_args& args, size_t m) {
  const auto token = args.tokens[m];
  return token == take_sampled ? args.last_sampled[args.seats[m]] : token;
}

} // namespace

/// out = x, where they differ: then the rotation is in place.
void copy_for_rope(const rope_args& args);

} // namespace lamella::gpu
