/// How a tensor-parallel group exchanges heads with attention: through rank 0 (L-M03).
#pragma once

#include "gpu/ring/rank_group.hpp"

#include <array>
#include <memory>
#include <span>
#include <vector>

namespace lamella::gpu {

/// Rank 0's side: gathers heads and scatters attention output. To the other ranks it acts like a
/// shard: they send the queries, keys and values of their heads and get their attention output. So
/// links, shares and parity of the attention pool do not depend on the number of ranks. Heads are
/// rounded to the wire type before they are concatenated: rounding them again changes nothing.
///
/// Costs rank 0 two copies of all heads, and the other ranks one hop.
class head_exchange {
public:
  /// Heads of one launch: `heads` KV heads of each rank, `rows` rows.
  struct shape {
    uint32_t heads = 0, rows = 0, group = 1, dim = 0;
    half_type wire = half_type::f16;
  };

  /// Allocates its memory from `room`.
  head_exchange(std::shared_ptr<const rank_group> ranks, const shape& of, const operators& ops,
                arena& room);

  /// Concatenates the heads of all ranks, this rank's from `own`: queries are one tensor, keys and
  /// values two. False: another rank's have not arrived; retry.
  bool collect(const frame_tag& tag, std::span<const float* const> own, kernel_context context);

  /// The result of collect(), and the buffer for the attention output of all heads, to be filled
  /// before distribute(): rows of all heads of all ranks.
  float* all(size_t tensor) const { return all_[tensor]; }

  /// Sends every rank its heads' attention output; this rank's goes to `own`. False: a ring is
  /// full; retry.
  bool distribute(const frame_tag& tag, float* own, kernel_context context);

private:
  uint32_t stride(bool queries) const { return of_.heads * ranks_->ranks * width(queries); }
  uint32_t width(bool queries) const { return queries ? of_.group * of_.dim : of_.dim; }
  /// Of one rank's heads of one tensor, on the wire.
  size_t bytes(bool queries) const {
    return size_t{of_.heads} * of_.rows * width(queries) * bytes_of(of_.wire);
  }

  std::shared_ptr<const rank_group> ranks_;
  shape of_;
  const operators& ops_;
  std::vector<uint32_t> rows_; ///< 0, 1, ...
  std::array<float*, 2> all_{};
  uint32_t next_ = 1; ///< the rank whose turn it is
};

} // namespace lamella::gpu
