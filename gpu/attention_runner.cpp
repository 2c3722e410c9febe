#include "gpu/attention_runner.hpp"

#include <stdexcept>

namespace lamella::gpu {

namespace {

/// The memory of the frame that `tag` names, when it has arrived and is as long as it must be.
const std::byte* payload_of(channel_receiver& from, const frame_tag& tag, size_t bytes,
                            size_t ahead) {
  const auto* next = receive(from, tag, ahead);
  if (next == nullptr) return nullptr;
  if (next->payload.size() != bytes)
    throw std::runtime_error("frame of " + std::to_string(next->payload.size())
                             + " bytes, expected " + std::to_string(bytes));
  return next->payload.data();
}

} // namespace

attention_runner::attention_runner(std::shared_ptr<const kv_cache> cache, const operators& ops,
                                   attention_launch launch, std::shared_ptr<channel_receiver> from,
                                   std::shared_ptr<channel_sender> to)
    : cache_{std::move(cache)}, ops_{ops}, launch_{std::move(launch)}, from_{std::move(from)},
      to_{std::move(to)} {}

attention_args attention_runner::args() const {
  return {cache_->layer(layer_), launch_.rows, launch_.group, launch_.scale,
          launch_.wire,          q_,           nullptr,       nullptr,
          launch_.spans,         launch_.runs, state_,        nullptr};
}

work::progress attention_runner::advance(kernel_context context) {
  const auto began = clock::now();
  const auto outcome = step(context);
  busy_ += clock::now() - began;
  return outcome;
}

work::progress attention_runner::step(kernel_context context) {
  return phase_ == phase::queries ? on_queries(context) : on_keys_values(context);
}

work::progress attention_runner::on_queries(kernel_context context) {
  if (launch_.rows == 0) return progress::done;
  const auto kv = cache_->layer(layer_);
  const size_t heads = kv.kv_heads;
  auto tag = launch_.tag;
  tag.layer = layer_;
  tag.kind = frame_kind::q;
  q_ = payload_of(*from_, tag,
                  heads * launch_.rows * launch_.group * kv.dim * bytes_of(launch_.wire), 0);
  if (q_ == nullptr) return progress::blocked;
  if (state_ == nullptr) {
    context.workspace->reset();
    state_ =
        context.workspace->allocate<float>(launch_.rows * heads * launch_.group * (kv.dim + 2));
  }
  ops_.attend_previous(args(), context);
  phase_ = phase::keys_values;
  return progress::advanced;
}

work::progress attention_runner::on_keys_values(kernel_context context) {
  const auto kv = cache_->layer(layer_);
  const size_t half = size_t{kv.kv_heads} * launch_.rows * kv.dim * bytes_of(launch_.wire);
  auto tag = launch_.tag;
  tag.layer = layer_;
  tag.kind = frame_kind::kv;
  const auto* k_and_v = payload_of(*from_, tag, 2 * half, 1);
  if (k_and_v == nullptr) return progress::blocked;
  const auto out_bytes = half * launch_.group;
  auto* out = to_->reserve(out_bytes);
  if (out == nullptr) return progress::blocked;
  auto x = args();
  x.k_new = k_and_v;
  x.v_new = k_and_v + half;
  x.out = out;
  ops_.append_kv(x, context);
  ops_.attend_new(x, context);
  tag.kind = frame_kind::attention;
  to_->commit(tag);
  bytes_sent_ += out_bytes;
  from_->release();
  from_->release();
  phase_ = phase::queries;
  return ++layer_ == cache_->layers() ? progress::done : progress::advanced;
}

} // namespace lamella::gpu
