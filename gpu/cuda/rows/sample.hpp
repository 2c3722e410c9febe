/// Drawing tokens on a CUDA device, so that the sampled id never leaves it before the next
/// iteration reads it.
#pragma once

#include "gpu/kernels/operators.hpp"

#include <cuda_runtime_api.h>

#include <span>

namespace lamella::gpu::cuda {

constexpr uint32_t top_logprobs_max = 20;
constexpr uint32_t vocabulary_max = 1u << 18;

/// For how many draws of a work, and edits of a row's logits, there is room from the start: a
/// penalty changes those of all tokens of a text.
constexpr uint32_t usual_draws = 256, usual_edits = 1024;

/// Bytes of arguments of a work that samples so many tokens, each with a mask of its own.
constexpr size_t draw_argument_bytes(uint32_t draws, uint32_t vocabulary) {
  constexpr size_t other = 64; ///< token, position, seat
  return draws
         * (sizeof(sample_record) + other + mask_words(vocabulary) * sizeof(uint32_t)
            + usual_edits * sizeof(logit_edit));
}

/// A record with this row samples and writes nothing: launches may have spare records.
constexpr uint32_t no_row = ~uint32_t{0};

/// What one record drew; plain, so that it can be written to mapped host memory.
struct sampled_row {
  uint32_t token;
  float logprob;      ///< natural log of the raw distribution; 0 when not asked for
  uint32_t finite;    ///< 0: the row held NaN or infinity; `token` is 0 and must not be used
  uint32_t top_count; ///< of `top`, highest first
  uint32_t rank;      ///< of a given token, from 1 on; 0: it was sampled
  token_logprob top[top_logprobs_max];
};

/// sample_args with device memory.
struct sample_rows {
  const float* logits; ///< [rows, vocabulary]
  uint32_t rows, vocabulary;
  const sample_record* records; ///< [count]
  uint32_t count;
  const logit_edit* edits;
  const uint32_t* masks;  ///< [masks, mask_words(vocabulary)]
  const uint32_t* seats;  ///< [count]: the seat that keeps the token; null: none does
  uint32_t* last_sampled; ///< by seat
  float* scratch;         ///< sample_scratch_bytes(edited_records(records), vocabulary)
  sampled_row* out;       ///< [count]
};

/// The records up to the last one that changes logits: each of them has room for a row.
inline uint32_t edited_records(std::span<const sample_record> records) {
  auto count = records.size();
  while (count > 0 && records[count - 1].edit_count == 0 && records[count - 1].mask == no_mask)
    --count;
  return static_cast<uint32_t>(count);
}

/// Room for the edited logits.
constexpr size_t sample_scratch_bytes(uint32_t count, uint32_t vocabulary) {
  return size_t{count} * vocabulary * sizeof(float);
}

/// Draws one token per record, as sample_rows of the CPU kernels does: the same weights, the same
/// order of tokens, the same random number. Weights are summed as integers of 2^-44, so that sums
/// do not depend on their order; where a border or the draw falls within 1e-6 of a token's edge the
/// two may differ. One block per record, at most some ten passes over a row, which stays in the L2.
cudaError_t launch_sample(const sample_rows& args, cudaStream_t stream);

} // namespace lamella::gpu::cuda
