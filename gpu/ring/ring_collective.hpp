/// All-reduce over the ranks of a group through rings between all pairs, on devices of any kind.
#pragma once

#include "gpu/ring/collective.hpp"
#include "gpu/ring/rank_link.hpp"

#include <atomic>
#include <vector>

namespace lamella::gpu {

/// Every rank sends its partial sum to every other rank and adds all of them itself: (n - 1) * rows
/// * width * 4 bytes per rank and sum, one hop. A ring all-reduce would send 2 (n - 1) / n of a
/// partial sum over 2 (n - 1) hops; for the few ranks of a machine and the few rows of decoding,
/// hops cost more.
class ring_collective final : public collective {
public:
  /// `ops` of the rank's device; `links` by rank, its own is empty.
  ring_collective(uint32_t rank, std::vector<rank_link> links, const operators& ops);

  bool all_reduce(const sum_args& args, kernel_context context) override;
  uint64_t bytes_sent() const override { return bytes_sent_.load(std::memory_order_relaxed); }
  void end(channel_state why) override;

private:
  bool send(const sum_args& args, const frame_tag& tag, kernel_context context);

  uint32_t rank_;
  std::vector<rank_link> links_;
  const operators& ops_;
  std::vector<uint32_t> rows_; ///< 0, 1, ...
  frame_tag newest_{};         ///< of the sum that is being sent
  uint32_t sent_to_ = 0;       ///< ranks below this one have received the partial sum
  std::atomic<uint64_t> bytes_sent_{0};
};

} // namespace lamella::gpu
