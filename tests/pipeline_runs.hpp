/// Running sequences through a whole tiny model: what the pipeline tests share.
#pragma once

#include "tests/pipeline.hpp"
#include "tests/random.hpp"
#include "tests/scratch_folder.hpp"
#include "tests/tiny_model.hpp"

#include <cmath>
#include <cstring>

namespace lamella::test {

using logits = std::vector<std::vector<float>>;

struct models {
  tests::scratch_folder folder;
  model::loaded_model load(const tests::tiny_model_options& options = {}) {
    tests::write_tiny_model(folder / "tiny.gguf", options);
    return model::load_program(folder / "tiny.gguf");
  }
};

inline std::vector<uint32_t> random_tokens(size_t count, uint64_t seed) {
  tests::splitmix random{seed};
  std::vector<uint32_t> tokens(count);
  for (auto& t : tokens) t = static_cast<uint32_t>(random.below(270));
  return tokens;
}

inline std::vector<uint32_t> part(const std::vector<uint32_t>& tokens, size_t first, size_t count) {
  const auto begin = tokens.begin() + static_cast<ptrdiff_t>(first);
  return {begin, begin + static_cast<ptrdiff_t>(count)};
}

/// Runs for positions [0, length), cut into pieces of `piece` slots that lie apart and out of
/// order.
inline std::vector<gpu::slot_run> scattered(uint32_t base, uint32_t length, uint32_t piece) {
  std::vector<gpu::slot_run> runs;
  const auto pieces = (length + piece - 1) / piece;
  for (uint32_t i = 0; i < pieces; ++i)
    runs.push_back({base + (pieces - 1 - i) * (piece + 1), std::min(piece, length - i * piece)});
  return runs;
}

/// The logits of every position, prefilled in chunks of `chunk` tokens; `chunk` = 1 is decoding.
inline logits run_chunked(pipeline& p, const std::vector<uint32_t>& tokens, uint32_t chunk,
                          const std::vector<gpu::slot_run>& runs) {
  logits result;
  for (uint32_t at = 0; at < tokens.size(); at += chunk) {
    const auto count = std::min<size_t>(chunk, tokens.size() - at);
    for (auto& row : p.run({pipeline_rows{part(tokens, at, count), at, runs, true}}))
      result.push_back(std::move(row));
  }
  return result;
}

inline bool same_bytes(const logits& a, const logits& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i)
    if (a[i].size() != b[i].size()
        || std::memcmp(a[i].data(), b[i].data(), a[i].size() * sizeof(float)) != 0)
      return false;
  return true;
}

/// max |a - b| / max |b|
inline double difference(const logits& a, const logits& b) {
  double largest = 0, scale = 0;
  REQUIRE(a.size() == b.size());
  for (size_t i = 0; i < a.size(); ++i)
    for (size_t j = 0; j < a[i].size(); ++j) {
      largest = std::max(largest, std::abs(double{a[i][j]} - b[i][j]));
      scale = std::max(scale, std::abs(double{b[i][j]}));
    }
  return largest / scale;
}

inline std::vector<gpu::slot_run> whole(uint32_t length, uint32_t first = 0) {
  return {{first, length}};
}

} // namespace lamella::test
