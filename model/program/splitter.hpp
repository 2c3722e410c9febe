/// Cuts a model into slices at its attention operators (L-M12, L-M13; Lamina 4.2.1).
#pragma once

#include "model/program/graph.hpp"

#include <cstdint>
#include <vector>

namespace lamella::model {

/// Where the operators of a model run, and what must be kept between slices.
struct model_slices {
  /// The slice of each node; attention operators belong to the slice whose K and V they take.
  std::vector<uint32_t> slice_of;

  /// Per cut (slice k to slice k + 1): the tensors that are needed on both sides, without the
  /// attention operator's own inputs and output. They are the context that migrates with a batch.
  std::vector<std::vector<tensor_id>> context;

  /// Bytes per row of each cut: the weight of the minimum cut.
  std::vector<uint64_t> context_bytes;

  uint32_t count() const { return static_cast<uint32_t>(context.size() + 1); }
};

/// L attention operators give L + 1 slices. For each attention operator, in order: take it out of
/// the graph and part what it needs from what needs it, where the fewest bytes flow. A tensor with
/// several readers is paid for once. Throws std::logic_error when a path around an attention
/// operator leads back into its past, which no decoder has.
model_slices split(const operator_graph& graph);

} // namespace lamella::model
