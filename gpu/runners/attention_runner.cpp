#include "gpu/runners/attention_runner.hpp"

namespace lamella::gpu {

attention_runner::attention_runner(std::shared_ptr<const kv_cache> cache, const operators& ops,
                                   attention_launch launch, std::vector<runner_link> links)
    : cache_{std::move(cache)}, ops_{ops}, launch_{std::move(launch)}, links_{std::move(links)},
      presence_{launch_.watch, links_} {}

attention_args attention_runner::args() const {
  return {cache_->layer(layer_), launch_.rows, launch_.group, launch_.scale,
          launch_.wire,          q_,           nullptr,       nullptr,
          launch_.spans,         launch_.runs, state_,        nullptr};
}

work::progress attention_runner::advance(kernel_context context) {
  step_aside(phase_ == phase::keys_values); // it combines
  return phase_ == phase::queries ? on_queries(context) : on_keys_values(context);
}

step_label attention_runner::next_step() const {
  auto x = whole();
  x.number = layer_;
  x.name = phase_ == phase::queries ? "attend_previous" : "attend_new";
  x.waits = phase_ == phase::queries ? "wait_q" : "wait_kv";
  return x;
}

step_label attention_runner::whole() const {
  return {"iteration", "wait", step_kind::compute, 0, launch_.rows, launch_.tag.iteration};
}

work::progress attention_runner::on_queries(kernel_context context) {
  if (launch_.rows == 0) return progress::done;
  const auto kv = cache_->layer(layer_);
  const size_t heads = kv.kv_heads;
  auto tag = launch_.tag;
  tag.layer = layer_;
  tag.kind = frame_kind::q;
  const auto bytes = heads * launch_.rows * launch_.group * kv.dim * bytes_of(launch_.wire);
  const auto* queries = from().receive(tag, bytes, 0);
  if (queries == nullptr) return progress::blocked;
  q_ = queries->payload.data();
  if (state_ == nullptr) {
    context.workspace->reset();
    state_ = context.workspace->allocate<float>(ops_.attention_state_floats(args()));
  }
  ops_.attend_previous(args(), context);
  phase_ = phase::keys_values;
  return progress::advanced;
}

/// Whether the slots of this layer have been read by all who were to.
bool attention_runner::may_write() const {
  for (uint32_t shard = 0; shard < launch_.fences.size(); ++shard)
    if (const auto pull = launch_.fences[shard];
        pull != 0 && !launch_.hand_over->is_taken(shard, pull, layer_))
      return false;
  return true;
}

work::progress attention_runner::on_keys_values(kernel_context context) {
  const auto kv = cache_->layer(layer_);
  const size_t half = size_t{kv.kv_heads} * launch_.rows * kv.dim * bytes_of(launch_.wire);
  auto tag = launch_.tag;
  tag.layer = layer_;
  tag.kind = frame_kind::kv;
  const auto* k_and_v = from().receive(tag, 2 * half, 1);
  if (k_and_v == nullptr) return progress::blocked;
  if (!may_write()) return progress::blocked;
  const auto out_bytes = half * launch_.group;
  auto& to = *links_[launch_.turns.of(layer_ + 1)].to;
  auto* out = reserve(to, out_bytes);
  if (out == nullptr) return progress::blocked;
  auto x = args();
  x.k_new = k_and_v->payload.data();
  x.v_new = x.k_new + half;
  x.out = out;
  ops_.append_kv(x, context);
  if (launch_.hand_over) launch_.hand_over->write(tag.iteration, layer_);
  ops_.attend_new(x, context);
  tag.kind = frame_kind::attention;
  to.commit(tag);
  bytes_sent_ += out_bytes;
  from().release();
  from().release();
  presence_.received();
  phase_ = phase::queries;
  if (++layer_ < cache_->layers()) return progress::advanced;
  presence_.leave();
  return progress::done;
}

} // namespace lamella::gpu
