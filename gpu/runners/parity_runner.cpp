#include "gpu/runners/parity_runner.hpp"

#include "gpu/runners/parity_frames.hpp"

namespace lamella::gpu {

parity_runner::parity_runner(std::shared_ptr<const kv_cache> cache, const operators& ops,
                             attention_launch launch, size_t frame_bytes,
                             std::shared_ptr<channel_receiver> from,
                             std::shared_ptr<channel_sender> to)
    : cache_{std::move(cache)}, ops_{ops}, launch_{std::move(launch)},
      frame_bytes_{frame_bytes}, from_{std::move(from)}, to_{std::move(to)} {}

/// One frame, or the word that all is stored.
work::progress parity_runner::advance(kernel_context context) {
  if (launch_.rows == 0) return progress::done;
  if (layer_ == 0) context.workspace->reset();
  auto tag = launch_.tag;
  if (layer_ == cache_->layers()) {
    if (reserve(*to_, 0) == nullptr) return progress::blocked;
    tag.layer = layer_ - 1;
    tag.kind = frame_kind::stored;
    to_->commit(tag);
    return progress::done;
  }
  const auto row = cache_->layer(0);
  const parity_frames frames{frame_bytes_, cache_->layers(), launch_.rows * row.row_bytes() / 2};
  const auto last = frames.last_of(layer_);
  tag.layer = last;
  tag.kind = frame_kind::parity;
  const auto* arrived = from_->receive(tag, frames.bytes_of_frame(layer_));
  if (arrived == nullptr) return progress::blocked;
  for (; layer_ <= last; ++layer_) {
    const auto* k = arrived->payload.data() + frames.place(layer_);
    ops_.append_kv({cache_->layer(layer_), launch_.rows, launch_.group, launch_.scale, row.type,
                    nullptr, k, k + frames.half(), launch_.spans, launch_.runs, nullptr, nullptr},
                   context);
  }
  from_->release();
  return progress::advanced;
}

} // namespace lamella::gpu
