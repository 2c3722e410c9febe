// The context of a batch on its way to the replica of the next slice (L-M21).
#include "gpu/runners/slice_runner.hpp"

namespace lamella::gpu {

size_t slice_runner::context_bytes(const std::vector<model::buffer_id>& buffers) const {
  size_t width = 0;
  for (auto b : buffers) width += program_->buffer_width[b];
  return rows_.size() * width * sizeof(float);
}

/// In fp32, never rounded: the next replica computes the same bytes as this one would.
void slice_runner::write_context(const std::vector<model::buffer_id>& buffers, std::byte* to,
                                 kernel_context context) {
  for (auto b : buffers) {
    const auto width = program_->buffer_width[b];
    ops_.to_wire({buffers_[b], width, rows_, 0, 1, width, half_type::f32, to}, context);
    to += rows_.size() * width * sizeof(float);
  }
}

/// All ranks have the same context: rank 0 hands it on.
work::progress slice_runner::send_context(const model::instruction& x, kernel_context context) {
  if (launch_.ranks && launch_.ranks->rank > 0) return progress::advanced;
  const auto bytes = context_bytes(x.inputs);
  auto* to = reserve(*launch_.context.to, bytes);
  if (to == nullptr) return progress::blocked;
  write_context(x.inputs, to, context);
  auto tag = launch_.tag;
  tag.layer = x.layer;
  tag.kind = frame_kind::context;
  launch_.context.to->commit(tag);
  bytes_sent_ += bytes;
  return progress::advanced;
}

work::progress slice_runner::receive_context(const model::instruction& x, kernel_context context) {
  auto tag = launch_.tag;
  tag.layer = x.layer;
  tag.kind = frame_kind::context;
  const bool leads = !launch_.ranks || launch_.ranks->rank == 0;
  auto& from = leads ? *launch_.context.from : *launch_.ranks->links[0].from;
  if (!collected_) {
    const auto* arrived = from.receive(tag, context_bytes(x.outputs), 0);
    if (arrived == nullptr) return progress::blocked;
    const auto* place = arrived->payload.data();
    for (auto b : x.outputs) {
      const auto width = program_->buffer_width[b];
      ops_.from_wire({place, rows_, 0, 1, width, half_type::f32, buffers_[b], width}, context);
      place += rows_.size() * width * sizeof(float);
    }
    from.release();
    collected_ = true;
  }
  return leads && launch_.ranks ? pass_context(x, context) : progress::advanced;
}

/// Gives the other ranks of this replica the context that has arrived; continues where a full ring
/// stopped it.
work::progress slice_runner::pass_context(const model::instruction& x, kernel_context context) {
  auto tag = launch_.tag;
  tag.layer = x.layer;
  tag.kind = frame_kind::context;
  for (; piece_ + 1 < launch_.ranks->ranks; ++piece_) {
    auto& link = *launch_.ranks->links[piece_ + 1].to;
    auto* to = reserve(link, context_bytes(x.outputs));
    if (to == nullptr) return progress::blocked;
    write_context(x.outputs, to, context);
    link.commit(tag);
  }
  return progress::advanced;
}

} // namespace lamella::gpu
