/// Messages of pulls: K and V that a shard takes from a prefill worker or another member of its
/// pool.
#pragma once

#include "actors/protocol/messages.hpp"

namespace lamella::actors {

/// Tells a shard to pull K and V of some rows, all layers, from the prefill worker of that stream
/// into slots of its own (decision 27), or from the member of its pool that has lent them to that
/// stream (reliability A6). Answered with kv_moved when the last layer is there.
struct kv_pull {
  stream_id stream{};
  uint64_t epoch = 0;
  uint64_t number = 0; ///< grows from pull to pull of the stream
  std::vector<slot_run> runs;
  bool add = false; ///< XOR the rows into what the slots hold
};

/// Tells the other side of the same pull which rows these are.
struct kv_offer {
  stream_id stream{};
  uint64_t epoch = 0;
  uint64_t number = 0;
  uint32_t shard = 0;
  std::vector<slot_run> runs; ///< of this side
  uint64_t iteration = 0;     ///< that writes the rows layer by layer; 0: they are there
};

/// What one side of a pull has moved; the rows are complete when both say the same.
struct kv_moved {
  uint64_t number = 0;
  uint64_t digest = 0;
  uint64_t bytes = 0;
};

/// Ends all pulls of that stream that are under way; each is then answered with an error.
struct kv_pull_cancel {
  stream_id stream{};
};

LAMELLA_INSPECT(kv_pull, x.stream, x.epoch, x.number, x.runs, x.add)
LAMELLA_INSPECT(kv_offer, x.stream, x.epoch, x.number, x.shard, x.runs, x.iteration)
LAMELLA_INSPECT(kv_moved, x.number, x.digest, x.bytes)
LAMELLA_INSPECT(kv_pull_cancel, x.stream)

} // namespace lamella::actors
