/// All operators of a device: shapes, layout, bounds. A kernel set is one table of them.
///
/// Letters: M rows of the call, N outputs, K inputs, H kv heads of a shard, G query heads per kv
/// head, D elements per head. All activations are fp32, row-major.
///
/// **Row-invariant.** What an operator computes for one row depends on that row alone: not on M, on
/// the other rows, on the order of rows, on how slots are cut into runs, or on the number of
/// threads. K is never split over threads. Results are bit-identical within one kernel set; tests
/// compare bytes. Nothing here uses libm for exp, sin, cos: each kernel set has its own.
///
/// **Where arguments live.** Pointers are memory of the device. Spans are host memory and must stay
/// unchanged until the work ends: a device with queues copies each of them once per work.
#pragma once

#include "base/arena.hpp"
#include "base/team.hpp"
#include "model/sampling.hpp"
#include "model/spec.hpp"
#include "model/tensor.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lamella::gpu {

/// Elements of K, V, Q and attention output between devices (f32, f16, bf16), and of the KV cache
/// (q8 and q4, too: gpu/kernels/q8.hpp, q4.hpp).
enum class half_type : uint8_t { f32, f16, bf16, q8, q4 };

/// Whether heads of that type have scales: only caches hold such.
constexpr bool has_scales(half_type type) { return type == half_type::q8 || type == half_type::q4; }

/// Of one element of a type without scales.
constexpr size_t bytes_of(half_type type) { return type == half_type::f32 ? 4 : 2; }

/// Of what a cache holds of one kv head of one token: its K, or its V. In q8 D values of a byte,
/// zeros up to the last four bytes of a multiple of 16, and there the scale. In q4 16 bytes for
/// each group of 32 values, then four bytes of factors for each group, and zeros up to a multiple
/// of 16.
constexpr size_t head_bytes_of(half_type type, uint32_t dim) {
  if (type == half_type::q8) return (dim + sizeof(float) + 15) / 16 * 16;
  if (type == half_type::q4) return (size_t{dim} + 31) / 32 * 16 + (size_t{dim} + 127) / 128 * 16;
  return dim * bytes_of(type);
}

/// Resources of a kernel while it runs: threads, and memory that is freed when it returns. A device
/// with queues of its own (CUDA) runs nothing here: its operators enqueue kernels on the stream,
/// and the arenas provide device memory.
struct kernel_context {
  team& workers;
  arena& scratch;
  arena* workspace = nullptr; ///< the stream's own: memory of a launch between its steps
};

/// A weight matrix [N outputs, K inputs] in the private layout of one kernel set. Not owning.
struct packed_matrix {
  model::tensor_type type = model::tensor_type::f32;
  uint32_t outputs = 0;            ///< N, any number
  uint32_t inputs = 0;             ///< K, a multiple of block_elements(type)
  const std::byte* data = nullptr; ///< 64-byte aligned, packed_bytes(...) long
};

// --- model side --------------------------------------------------------------------------------

/// A token id that stands for "what this seat sampled last", which is still in device memory.
constexpr uint32_t take_sampled = ~uint32_t{0};

/// Maximum seats of a stream whose sampled tokens are kept: of a batch (batching.max_batch) and of
/// the prompts that have begun beside it (scheduler/limits.hpp).
constexpr uint32_t seats_max = 8192;

/// out[m] = row tokens[m] of the table, as fp32. Reads M rows of the table.
struct embed_args {
  packed_matrix table;
  std::span<const uint32_t> tokens; ///< [M], each < table.outputs, or take_sampled
  std::span<const uint32_t> seats;  ///< [M], each < seats_max: whose token take_sampled means
  const uint32_t* last_sampled;     ///< [seats_max]; may be null where nothing is taken
  float* out;                       ///< [M, K]
};

/// out = x / sqrt(mean(x^2) + epsilon) * weight, row by row.
struct rms_norm_args {
  const float* x;      ///< [M, width]
  const float* weight; ///< [width]
  float epsilon;
  uint32_t rows, width;
  float* out; ///< [M, width]; may be x
};

/// One matmul: out = x * weight^T.
struct matmul_part {
  packed_matrix weight;
  float* out;          ///< [M, out_stride], the first N of each row are written
  uint32_t out_stride; ///< >= weight.outputs
};

/// Several matmuls of one input (gate and up; K and V), which is quantised once. Quantised weights:
/// activations become int8 per 32 inputs with one scale (d = max|x| / 127), exact integer sums over
/// the 32 or 16 weights that share a scale, fp32 across them in ascending order. Plain weights:
/// fp32 FMA over ascending k, activations not rounded. Reads every weight once per tile of rows:
/// memory-bound for M < 8, then bound by int8 (fp32) arithmetic. 2 * M * N * K operations.
struct matmul_args {
  const float* x; ///< [M, K]
  uint32_t rows;
  std::span<const matmul_part> parts; ///< all with the same K
};

using model::rope_pairing;

/// Rotates each head of each row by position * frequency(i). The angle is computed in
/// double precision and reduced before the kernel's own sin and cos, so that long contexts stay
/// exact.
struct rope_args {
  const float* x; ///< [M, heads, D], row stride `stride`
  float* out;     ///< like x; may be x
  uint32_t rows, heads, dim, stride;
  rope_pairing pairing;
  std::span<const uint32_t> positions; ///< [M]
  std::span<const double> frequencies; ///< [rotated / 2], radians per position; rotated <= D
  float magnitude = 1;                 ///< scale of the rotated elements
};

/// out = gate / (1 + exp(-gate)) * up
struct silu_mul_args {
  const float *gate, *up; ///< [M, width]
  uint32_t rows, width;
  float* out;               ///< [M, width]; may be gate or up
  bool ends_inputs = false; ///< nothing reads gate and up afterwards: they need not be written
};

/// out = a + b
struct add_args {
  const float *a, *b; ///< [M, width]
  uint32_t rows, width;
  float* out; ///< [M, width]; may be a or b
};

/// out = x + bias, the same vector to each row
struct add_bias_args {
  const float* x;    ///< [M, width]
  const float* bias; ///< [width]
  uint32_t rows, width;
  float* out; ///< [M, width]; may be x
};

/// out = x * factor
struct scale_args {
  const float* x; ///< [M, width]
  float factor;
  uint32_t rows, width;
  float* out; ///< [M, width]; may be x
};

/// out[i] = x[row_index[i]]
struct gather_rows_args {
  const float* x; ///< [.., width]
  std::span<const uint32_t> row_index;
  uint32_t width;
  float* out; ///< [row_index.size(), width]
};

/// Rounds rows of heads to the wire and lays them out kv-head-major, for the kv heads
/// [first_head, first_head + head_count): out[h][m][j] = x[row_index[m]][(first_head + h) * width +
/// j]. `width` is G * D for queries and D for keys and values. Finite values beyond 65504 become
/// infinite in f16, on all devices alike; bf16 has the range of fp32.
struct to_wire_args {
  const float* x; ///< [.., stride]
  uint32_t stride;
  std::span<const uint32_t> row_index; ///< [M], rows of x to take, in order
  uint32_t first_head, head_count, width;
  half_type wire;
  std::byte* out; ///< [head_count, M, width] of wire
};

/// What a parity shard keeps of several shards' heads (reliability A6): out[h][m] is the XOR over
/// the shards s of what their caches hold of x[row_index[m]][(s * head_count + h) * D ...], which
/// comes to them over the wire.
struct parity_to_wire_args {
  const float* x; ///< [.., stride]
  uint32_t stride;
  std::span<const uint32_t> row_index; ///< [M], rows of x to take, in order
  uint32_t shards, head_count, dim;    ///< heads of each shard; D
  half_type wire, cache;
  std::byte* out; ///< [head_count, M, head_bytes_of(cache, D)]
};

/// The inverse of to_wire: out[row_index[m]][(first_head + h) * width + j] = in[h][m][j].
struct from_wire_args {
  const std::byte* in; ///< [head_count, M, width] of wire
  std::span<const uint32_t> row_index;
  uint32_t first_head, head_count, width;
  half_type wire;
  float* out; ///< [.., stride]
  uint32_t stride;
};

using model::logit_edit;

/// A record without a mask: every token may be sampled.
constexpr uint32_t no_mask = ~uint32_t{0};

/// A record that samples a token, and is given none.
constexpr uint32_t no_token = ~uint32_t{0};

/// Words of a mask: bit t % 32 of word t / 32 is 1 if token t may be sampled.
constexpr uint32_t mask_words(uint32_t vocabulary) { return (vocabulary + 31) / 32; }

/// How to sample one token from one row of logits.
struct sample_record {
  uint32_t row;                    ///< row of logits
  uint64_t seed;                   ///< of the request
  uint32_t choice;                 ///< k
  uint32_t draw;                   ///< i: index of the generated token within the choice
  float temperature;               ///< 0: the highest logit, lowest id on ties
  uint32_t top_k;                  ///< 0: off
  float top_p;                     ///< 1: off; 0 keeps the top token
  float min_p;                     ///< 0: off
  uint32_t logprobs;               ///< 0: none; else 1 + number of top tokens wanted (<= 21)
  uint32_t first_edit, edit_count; ///< into sample_args::edits
  uint32_t mask = no_mask;         ///< which of sample_args::masks
  /// If set, nothing is sampled: this token is reported with its log probability and rank.
  uint32_t given = no_token;
};

struct token_logprob {
  uint32_t token;
  float logprob;
};

struct sampled_token {
  uint32_t token;
  float logprob = 0; ///< natural log of the distribution before edits, temperature and truncation
  /// False: the row has NaN or infinity, or no token may be sampled; `token` is 0 and must not be
  /// used.
  bool finite = true;
  std::vector<token_logprob> top; ///< highest first
  /// Of a given token: 1 + the number of tokens with a higher logit. 0: it was sampled.
  uint32_t rank = 0;
};

/// Samples one token per record: mask, edits, temperature, top_k, top_p, min_p (each on the result
/// of the previous one), then the sample. It is a pure function of (seed, choice, draw):
/// counter-based, 53 bits. The token is also stored in last_sampled[seats[i]], for the next launch
/// of the stream. A given token is not stored; its log probability has the same bytes as that of
/// the same token when it is sampled from the same row.
struct sample_args {
  const float* logits; ///< [rows, vocabulary]
  uint32_t rows, vocabulary;
  std::span<const sample_record> records;
  std::span<const logit_edit> edits;
  std::span<const uint32_t> masks; ///< [masks, mask_words(vocabulary)]
  std::span<const uint32_t> seats; ///< [records], each < seats_max; empty: not kept
  uint32_t* last_sampled;          ///< [seats_max]; null where seats is empty
  std::span<sampled_token> out;    ///< one per record; valid when the work has ended
};

// --- attention side ----------------------------------------------------------------------------

/// Consecutive slots holding consecutive positions of one sequence.
struct slot_run {
  uint32_t first;
  uint32_t length;
  friend bool operator==(const slot_run&, const slot_run&) = default;
};

/// The cache of one layer: one contiguous row per slot, K of all H heads, then V of all H heads.
struct kv_layer {
  std::byte* rows = nullptr; ///< [slots, 2, H, head_bytes]: D elements of `type` each
  half_type type = half_type::f16;
  uint32_t kv_heads = 0, dim = 0;
  size_t head_bytes() const { return head_bytes_of(type, dim); }
  size_t row_bytes() const { return 2 * kv_heads * head_bytes(); }
  /// Where K and V of a head lie in a row.
  size_t k_offset(uint32_t head) const { return head * head_bytes(); }
  size_t v_offset(uint32_t head) const { return (size_t{kv_heads} + head) * head_bytes(); }
};

/// Consecutive query rows of one sequence. Row i is at position first_position + i and attends to
/// positions [0, first_position + i], its own included.
struct attention_span {
  uint32_t first_row, rows;
  uint32_t first_position;
  uint32_t first_run, run_count; ///< into attention_args::runs; they cover positions
                                 ///< [0, first_position + rows) in order
};

/// Attention of a batch at one layer of one shard, in three steps on one stream, so that work
/// starts when Q arrives (L-M14, L-M15; Lamina 4.2.2):
///   attend_previous   when Q is there: spans of one row attend to all earlier positions
///   append_kv         when K and V are there: rows of the cache are written at their slots
///   attend_new        spans of several rows attend to their earlier positions; then every row's
///   own
///                     position is merged last, and the output is rounded to the wire
///
/// The arithmetic of a row is fixed: positions in chunks of 256 aligned to position 0, each chunk
/// in tiles of 16 positions aligned to position 0 with a running maximum, chunks merged in
/// ascending order, the own position merged last as a part of its own. Both kinds of span give the
/// same bytes. (Sets with tiles of matrices: tiles/attention.hpp.) The own K and V enter as rounded
/// to the wire and then to the cache type. Where wire and cache are of one type, append_kv copies:
/// a parity shard is sent what its cache is to hold.
///
/// That holds for finite K and V. A device that multiplies whole tiles takes a later position of
/// the same span with weight 0, and 0 times an infinite V is NaN: rows of one sequence that share a
/// call with such a row may then be NaN too. No other sequence's rows are in its spans.
///
/// Memory-bound for spans of one row: reads (position) * row_bytes per row, once, whatever G is.
struct attention_args {
  kv_layer kv;
  uint32_t rows;  ///< M
  uint32_t group; ///< G
  float scale;    ///< of the scores, usually 1 / sqrt(D); applied to q in fp32
  half_type wire;
  const std::byte* q;                    ///< [H, M, G, D] of wire
  const std::byte* k_new;                ///< [H, M, D] of wire; null in attend_previous
  const std::byte* v_new;                ///< [H, M, D] of wire; null in attend_previous
  std::span<const attention_span> spans; ///< cover rows [0, M) in order
  std::span<const slot_run> runs;
  float* state;   ///< attention_state_floats of them: state from one step to the next
  std::byte* out; ///< [H, M, G, D] of wire; written by attend_new
};

/// Rows of a cache, of some of its heads, on their way to or from another cache: gather_kv packs
/// them, scatter_kv writes them to their slots. Both count what they moved in a digest, so that the
/// two sides of a pull can compare: the sum over the moved 32-bit words w, in the order of
/// `packed`, of w * ((index * digest_factor) | 1), modulo 2^64. Any change of one word changes it.
/// Memory-bound: reads and writes every byte once.
struct copy_kv_args {
  kv_layer kv;
  uint32_t first_head, head_count; ///< of the heads in `kv`
  std::span<const slot_run> runs;  ///< the rows, in order
  std::byte* packed;   ///< [rows, 2, head_count, kv.head_bytes()]: K, then V; 4-byte aligned
  uint64_t first_word; ///< index of the first word of `packed` in the digest
  uint64_t* digest;    ///< host memory; added to by the time the work ends
  bool add = false;    ///< scatter_kv: XOR them into the slots (reliability A6)
  size_t packed_row_bytes() const { return 2 * head_count * kv.head_bytes(); }
};

constexpr uint64_t digest_factor = 0x9e3779b97f4a7c15;

/// Continues the CRC32C of what some slots hold over one more layer (reliability A6: scrubbing).
/// Reads every row once.
struct checksum_kv_args {
  kv_layer kv;
  std::span<const uint32_t> slots;
  std::span<uint32_t> sums; ///< one per slot; at first 0. Valid when the work has ended
};

// --- the table ---------------------------------------------------------------------------------

/// One kernel set.
struct operators {
  std::string_view name; ///< reference, portable, avx2, avx512, amx

  /// Bytes of a packed matrix, and the packing itself. `rows` are N rows as they lie in the file.
  size_t (*packed_bytes)(model::tensor_type type, uint32_t outputs, uint32_t inputs);
  void (*pack)(model::tensor_type type, const std::byte* rows, uint32_t outputs, uint32_t inputs,
               std::byte* out, team& workers);

  void (*embed)(const embed_args&, kernel_context);
  void (*rms_norm)(const rms_norm_args&, kernel_context);
  void (*matmul)(const matmul_args&, kernel_context);
  void (*rope)(const rope_args&, kernel_context);
  void (*silu_mul)(const silu_mul_args&, kernel_context);
  void (*add)(const add_args&, kernel_context);
  void (*add_bias)(const add_bias_args&, kernel_context);
  void (*scale)(const scale_args&, kernel_context);
  void (*gather_rows)(const gather_rows_args&, kernel_context);
  void (*to_wire)(const to_wire_args&, kernel_context);
  void (*from_wire)(const from_wire_args&, kernel_context);
  void (*parity_to_wire)(const parity_to_wire_args&, kernel_context);
  void (*sample)(const sample_args&, kernel_context);

  /// Why the set does not support attention of these types and shapes (kv, group, wire); null when
  /// it does.
  const char* (*attention_unsupported)(const attention_args&);
  /// Room the three steps share for a call with these shapes, spans and runs.
  size_t (*attention_state_floats)(const attention_args&);
  void (*attend_previous)(const attention_args&, kernel_context);
  void (*append_kv)(const attention_args&, kernel_context);
  void (*attend_new)(const attention_args&, kernel_context);

  void (*gather_kv)(const copy_kv_args&, kernel_context);
  void (*scatter_kv)(const copy_kv_args&, kernel_context);
  void (*checksum_kv)(const checksum_kv_args&, kernel_context);
};

/// Plain loops in fp32 over dequantised weights: the oracle. Slow.
const operators& reference_operators();

/// The fastest set this machine can run, or the named one: auto, reference, portable, avx2, avx512,
/// amx. Null when the name is unknown or the machine lacks what it needs; `reason` says why.
const operators* find_operators(std::string_view name, std::string* reason);

} // namespace lamella::gpu
