/// A model of hashes instead of arithmetic: every lane of every activation is a hash of all that it
/// was made from, so K or V that is wrong, stale, missing or of another position changes the next
/// token at once and for certain.
///
/// It is a kernel set: programs, runners, caches and channels are those of the product. Lanes are
/// whole numbers below 2^24, which fp32 carries exactly.
#pragma once

#include "gpu/runners/weights.hpp"
#include "model/program/load.hpp"
#include "tests/scratch_folder.hpp"
#include "tests/tiny_model.hpp"

#include <cstring>
#include <memory>
#include <vector>

namespace lamella::simulation {

/// One hash of two numbers.
constexpr uint64_t mix(uint64_t a, uint64_t b) {
  auto z = (a ^ (b * 0x9E3779B97F4A7C15u + 0x632BE59BD9B4E019u)) * 0xBF58476D1CE4E5B9u;
  z ^= z >> 29;
  z *= 0x94D049BB133111EBu;
  return z ^ z >> 32;
}

/// The 24 bits of a hash that a lane carries.
inline float lane(uint64_t hash) { return static_cast<float>(hash >> 40); }

inline uint64_t number(float lane) { return static_cast<uint64_t>(lane); }

/// A hash of lanes in order.
inline uint64_t fold(const float* lanes, size_t count) {
  uint64_t h = count;
  for (size_t i = 0; i < count; ++i) h = mix(h, number(lanes[i]));
  return h;
}

/// Kernels that have run so far: what a device with a pace takes its time for.
struct kernel_counts {
  uint64_t matmuls = 0;    ///< matrices
  uint64_t attentions = 0; ///< of a layer and a launch
};
kernel_counts& kernels_run();

/// Which matrix this is: its first weights are random and differ.
inline uint64_t name_of(const gpu::packed_matrix& x) {
  uint64_t first = 0;
  std::memcpy(&first, x.data, sizeof first);
  return first;
}

/// What one row reads of one earlier position: sums of these do not depend on their order.
constexpr uint64_t attended(uint64_t query, uint32_t position, uint64_t keys_and_values) {
  return mix(mix(query, position), keys_and_values);
}

/// The ends of an answer, and printable bytes: text and tokens are the same thing.
constexpr uint32_t end_token = 2, first_byte = 3;

/// What a token is drawn by: the logits' hash and all that the sampler may depend on.
constexpr uint64_t lot(uint64_t logits, uint64_t seed, uint32_t choice, uint32_t draw,
                       uint64_t edits) {
  return mix(mix(mix(logits, mix(seed, choice)), draw), edits);
}

/// Answers with such a seed and above end at their greatest length alone, for what must happen
/// while streams run.
constexpr uint64_t endless_seed = uint64_t{1} << 32;

/// One in 64 ends the answer.
constexpr uint32_t drawn(uint64_t h, uint64_t seed) {
  return h % 64 == 63 && seed < endless_seed
             ? end_token
             : first_byte + 'a' + static_cast<uint32_t>((h >> 8) % 26);
}

/// The token where only these may be drawn, ascending.
inline uint32_t drawn_of(uint64_t h, const std::vector<uint32_t>& allowed) {
  return allowed.empty() ? 0 : allowed[(h >> 8) % allowed.size()];
}

/// How likely a given token is.
constexpr float score_of(uint64_t logits, uint32_t token) {
  return -static_cast<float>(mix(logits, token) % 4096) / 16;
}

/// A part of `edits`: their sum.
inline uint64_t edited(uint32_t token, float scale, float add) {
  uint32_t bits[2];
  std::memcpy(bits, &scale, 4);
  std::memcpy(bits + 1, &add, 4);
  return mix(mix(token, bits[0]), bits[1]);
}

/// The kernel set. Copies (wire, rows, pulls) are those of the reference set in fp32.
const gpu::operators& integer_operators();

/// The program, its weights and its tokenizer, made once.
struct integer_model {
  model::loaded_model loaded;
  std::shared_ptr<const gpu::packed_weights> weights;
};
const integer_model& the_model();

} // namespace lamella::simulation
