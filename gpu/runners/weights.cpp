#include "gpu/runners/weights.hpp"

#include <cstring>
#include <stdexcept>

namespace lamella::gpu {

namespace {

size_t padded(size_t bytes) { return (bytes + 63) / 64 * 64; }

float from_f16(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16;
  const uint32_t magnitude = bits & 0x7fff;
  uint32_t wide = 0;
  if (magnitude >= 0x7c00) {
    wide = 0x7f800000 | ((magnitude & 0x3ff) << 13);
  } else if (magnitude >= 0x400) {
    wide = (magnitude << 13) + 0x38000000;
  } else {
    const float tiny = static_cast<float>(magnitude) * 0x1p-24f;
    std::memcpy(&wide, &tiny, sizeof wide);
  }
  wide |= sign;
  float value = 0;
  std::memcpy(&value, &wide, sizeof value);
  return value;
}

/// Of a vector, one rank's share.
std::vector<float> as_floats(const model::tensor_view& view, const model::weight_use& use,
                             uint32_t ranks, uint32_t rank) {
  std::vector<float> out(use.inputs_of_rank(ranks));
  const auto first = use.split == model::weight_split::whole ? 0 : rank * out.size();
  for (size_t i = 0; i < out.size(); ++i) {
    const auto place = view.place_of(first + i);
    if (view.type == model::tensor_type::f32) {
      std::memcpy(&out[i], view.data.data() + 4 * place, 4);
      continue;
    }
    uint16_t bits = 0;
    std::memcpy(&bits, view.data.data() + 2 * place, 2);
    if (view.type == model::tensor_type::f16) {
      out[i] = from_f16(bits);
    } else if (view.type == model::tensor_type::bf16) {
      const auto wide = static_cast<uint32_t>(bits) << 16;
      std::memcpy(&out[i], &wide, 4);
    } else {
      throw std::runtime_error(view.name + ": a vector of type "
                               + std::string{model::to_string(view.type)}
                               + " is not supported; use f32, f16 or bf16");
    }
  }
  return out;
}

/// The rows of one rank's share as they would lie in a file of their own; `copied` holds them where
/// they do not lie so in this one.
const std::byte* share_of(const model::tensor_view& view, const model::weight_use& use,
                          uint32_t ranks, uint32_t rank, std::vector<std::byte>& copied) {
  const auto whole = model::row_bytes(view.type, use.inputs);
  const auto part = model::row_bytes(view.type, use.inputs_of_rank(ranks));
  const size_t rows = use.outputs_of_rank(ranks);
  const auto first = use.first_row + (use.split == model::weight_split::outputs ? rank * rows : 0);
  if (part == whole && view.halved_heads == 0) return view.data.data() + first * whole;
  const auto before = use.split == model::weight_split::inputs ? rank * part : 0; // in each row
  copied.resize(rows * part);
  for (size_t n = 0; n < rows; ++n)
    std::memcpy(copied.data() + n * part,
                view.data.data() + view.place_of(first + n) * whole + before, part);
  return copied.data();
}

} // namespace

packed_weights::packed_weights(const model::model_program& program, const weight_source& source,
                               device& where,
                               const std::function<void(uint64_t, uint64_t)>& progress,
                               uint32_t rank) {
  const auto& uses = program.graph.weights;
  const auto ranks = program.ranks();
  const auto& ops = where.ops();
  matrices_.resize(uses.size());
  vectors_.resize(uses.size());
  // A matrix may have a single row, so the shape does not tell the two apart.
  std::vector<bool> is_vector(uses.size(), false);
  for (const auto& node : program.graph.nodes)
    if (takes_vector(node.kind)) is_vector[node.weight] = true;
  const auto bytes_of_weight = [&](model::weight_id id) {
    const auto& use = uses[id];
    return padded(is_vector[id] ? use.inputs_of_rank(ranks) * sizeof(float)
                                : ops.packed_bytes(source(use).type, use.outputs_of_rank(ranks),
                                                   use.inputs_of_rank(ranks)));
  };
  size_t total = 0;
  for (model::weight_id id = 0; id < uses.size(); ++id) total += bytes_of_weight(id);
  memory_ = where.allocate(total);
  size_t offset = 0;
  for (model::weight_id id = 0; id < uses.size(); ++id) {
    const auto& use = uses[id];
    const auto& view = source(use);
    auto* to = memory_->data() + offset;
    if (is_vector[id]) {
      const auto values = as_floats(view, use, ranks, rank);
      where.write(to, std::as_bytes(std::span{values}));
      vectors_[id] = reinterpret_cast<const float*>(to);
    } else {
      const auto outputs = use.outputs_of_rank(ranks), inputs = use.inputs_of_rank(ranks);
      std::vector<std::byte> copied;
      ops.pack(view.type, share_of(view, use, ranks, rank, copied), outputs, inputs, to,
               where.workers());
      matrices_[id] = {view.type, outputs, inputs, to};
    }
    offset += bytes_of_weight(id);
    progress(offset, total);
  }
}

} // namespace lamella::gpu
