#include "gpu/runners/parity_runner.hpp"

#include "gpu/runners/parity_frames.hpp"

namespace lamella::gpu {

parity_runner::parity_runner(std::shared_ptr<const kv_cache> cache, const operators& ops,
                             attention_launch launch, size_t frame_bytes,
                             std::vector<runner_link> links)
    : cache_{std::move(cache)}, ops_{ops}, launch_{std::move(launch)},
      frame_bytes_{frame_bytes}, links_{std::move(links)} {}

/// One frame, or the word that all is stored.
work::progress parity_runner::advance(kernel_context context) {
  if (launch_.rows == 0) return progress::done;
  if (layer_ == 0) context.workspace->reset();
  auto tag = launch_.tag;
  if (layer_ == cache_->layers()) {
    auto& to = *links_[launch_.turns.of(layer_)].to;
    if (reserve(to, 0) == nullptr) return progress::blocked;
    tag.layer = layer_ - 1;
    tag.kind = frame_kind::stored;
    to.commit(tag);
    return progress::done;
  }
  const auto row = cache_->layer(0);
  const parity_frames frames{frame_bytes_, cache_->layers(), launch_.rows * row.row_bytes() / 2,
                             launch_.turns};
  const auto last = frames.last_of(layer_);
  tag.layer = last;
  tag.kind = frame_kind::parity;
  auto& from = *links_[launch_.turns.of(layer_)].from;
  const auto* arrived = from.receive(tag, frames.bytes_of_frame(layer_));
  if (arrived == nullptr) return progress::blocked;
  for (; layer_ <= last; ++layer_) {
    const auto* k = arrived->payload.data() + frames.place(layer_);
    ops_.append_kv({cache_->layer(layer_), launch_.rows, launch_.group, launch_.scale, row.type,
                    nullptr, k, k + frames.half(), launch_.spans, launch_.runs, nullptr, nullptr},
                   context);
  }
  from.release();
  return progress::advanced;
}

} // namespace lamella::gpu
