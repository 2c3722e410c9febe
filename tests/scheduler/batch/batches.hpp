/// Batches of sequences for tests.
#pragma once

#include "scheduler/batch/decode_batch.hpp"

#include <utility>
#include <vector>

namespace lamella::scheduler::test {

constexpr std::chrono::nanoseconds start{0};

inline sequence_id seq(uint64_t n) { return sequence_id{n}; }

/// A sequence with `slots` slots of which 10 are written.
inline decode_join joining(uint64_t n, uint32_t slots = 100, uint32_t member = 0) {
  return {.sequence = seq(n),
          .member = member,
          .runs = {{static_cast<uint32_t>(1000 * n), slots}},
          .position = 10,
          .last = 77,
          .max_tokens = 1000};
}

/// Launches the next iteration; its rows.
inline std::vector<uint32_t> launch(decode_batch& batch) {
  const auto rows = batch.next().rows;
  for (const auto seat : rows) batch.launched(seat);
  return rows;
}

inline void commit(decode_batch& batch, const std::vector<uint32_t>& rows,
                   model::token_id token = 5) {
  for (const auto seat : rows) batch.commit(seat, token);
}

inline decode_batch seated(std::vector<decode_join> sequences,
                           decode_batch_settings settings = {}) {
  decode_batch batch{settings};
  for (auto& x : sequences) batch.join(std::move(x), start);
  batch.seat_joined();
  return batch;
}

} // namespace lamella::scheduler::test
