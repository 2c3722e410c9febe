/// Iterations: one message for a replica and each of its shards alike, all layers.
#pragma once

#include "actors/protocol/message.hpp"
#include "actors/protocol/values.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace lamella::actors {

/// Rows of one seat in an iteration: consecutive positions, one token each.
struct row_span {
  uint32_t seat = 0;
  uint32_t position = 0;
  uint32_t rows = 1;
};

/// The tokens that a sample record may sample. Records of one launch and of consecutive launches
/// share the mask within a process.
struct shared_mask {
  std::shared_ptr<const model::token_mask> tokens;
};

template <class Inspector> typename Inspector::result_type inspect(Inspector& f, shared_mask& x) {
  auto words = x.tokens ? x.tokens->words : std::vector<uint32_t>{};
  return f(caf::meta::type_name("lamella::shared_mask"), words, caf::meta::load_callback([&] {
             x.tokens =
                 std::make_shared<const model::token_mask>(model::token_mask{std::move(words)});
             return caf::error{};
           }));
}

/// One iteration of one stream, for a replica and each of its shards alike: all layers, one
/// message. Spans are grouped by attention member.
struct iteration_launch {
  stream_id stream{};
  uint64_t epoch = 0;
  uint64_t iteration = 0;
  uint32_t attempt = 0;
  uint32_t timeout_ms = 60'000; ///< timeout on a device, from the start of the work there
  uint64_t table_version = 0;
  std::vector<seat_change> changes;
  std::vector<row_span> spans;
  std::vector<token_id> tokens;   ///< one per row; gpu::take_sampled: the seat's last sampled token
  std::vector<uint32_t> selected; ///< rows that are sampled from, ascending
  std::vector<sample_record> samples; ///< record.row counts in `selected`
  std::vector<uint32_t> sample_seats; ///< the seat that keeps each sampled token
  std::vector<logit_edit> edits;
  std::vector<shared_mask> masks; ///< for the replica only
  std::vector<uint64_t> fences;   ///< prefill worker's own KV: by shard, see gpu::attention_launch
};

/// Asks for the tokens of an iteration; answered when the tail slice has sampled them.
struct sampled_of {
  stream_id stream{};
  uint64_t iteration = 0;
  uint32_t attempt = 0;
};

struct sampled {
  stream_id stream{};
  uint64_t iteration = 0;
  std::vector<sampled_token> tokens; ///< one per sample record
};

/// A shard or replica could not finish an iteration.
struct iteration_failed {
  stream_id stream{};
  uint64_t iteration = 0;
  uint32_t attempt = 0;
  bool silent = false; ///< timed out; no device reported a failure
  std::string reason;
};

} // namespace lamella::actors

// clang-format off
#define LAMELLA_ITERATIONS_MESSAGES(x) \
  x(row_span) x(iteration_launch) x(sampled_of) x(sampled) x(iteration_failed)
// clang-format on
LAMELLA_ITERATIONS_MESSAGES(LAMELLA_MADE_ELSEWHERE)
