#include "gpu/runners/attention_runner.hpp"

#include "gpu/runners/mini_batches.hpp"

#include <algorithm>

namespace lamella::gpu {

attention_runner::attention_runner(std::shared_ptr<const kv_cache> cache, const operators& ops,
                                   attention_launch launch, std::vector<runner_link> links)
    : cache_{std::move(cache)}, ops_{ops}, launch_{std::move(launch)}, links_{std::move(links)},
      presence_{launch_.watch, links_} {
  make_parts();
}

void attention_runner::make_parts() {
  const auto& spans = launch_.spans;
  const bool one_each = spans.size() == launch_.rows;
  for (const auto& range : mini_batches(launch_.rows, launch_.mini_batches, one_each)) {
    auto& x = parts_.emplace_back();
    x.rows = range.count;
    if (range.count == launch_.rows) {
      x.spans = spans;
      continue;
    }
    x.spans.assign(spans.begin() + range.first, spans.begin() + range.first + range.count);
    for (auto& span : x.spans) span.first_row -= range.first;
  }
}

void attention_runner::allocate_states(arena& room) {
  room.reset();
  for (auto& x : parts_) x.state = room.allocate<float>(ops_.attention_state_floats(args(x)));
}

/// Of K, of V, or of Q and of the output by one query head of each group.
size_t attention_runner::elements(const part& x) const {
  const auto kv = cache_->layer(layer_);
  return size_t{kv.kv_heads} * x.rows * kv.dim;
}

attention_args attention_runner::args(const part& x) const {
  return {cache_->layer(layer_),
          x.rows,
          launch_.group,
          launch_.scale,
          launch_.wire,
          x.q,
          nullptr,
          nullptr,
          x.spans,
          launch_.runs,
          x.state,
          nullptr};
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
  if (parts_.empty()) return progress::done;
  auto& x = parts_[part_];
  auto tag = launch_.tag;
  tag.layer = layer_;
  tag.kind = frame_kind::q;
  const auto bytes = elements(x) * launch_.group * bytes_of(launch_.wire);
  const auto* queries = from().receive(tag, bytes, part_);
  if (queries == nullptr) return progress::blocked;
  if (parts_.front().state == nullptr) allocate_states(*context.workspace);
  x.q = queries->payload.data();
  ops_.attend_previous(args(x), context);
  if (++part_ == parts_.size()) part_ = 0, phase_ = phase::keys_values;
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

/// Q of the parts before is released: K and V of this one follow Q of the others.
work::progress attention_runner::on_keys_values(kernel_context context) {
  const auto& mine = parts_[part_];
  const auto half = elements(mine) * bytes_of(launch_.wire);
  auto tag = launch_.tag;
  tag.layer = layer_;
  tag.kind = frame_kind::kv;
  const auto* k_and_v = from().receive(tag, 2 * half, parts_.size());
  if (k_and_v == nullptr) return progress::blocked;
  if (!may_write()) return progress::blocked;
  const auto out_bytes = half * launch_.group;
  auto& to = *links_[launch_.turns.of(layer_ + 1)].to;
  auto* out = reserve(to, out_bytes);
  if (out == nullptr) return progress::blocked;
  auto x = args(mine);
  x.k_new = k_and_v->payload.data();
  x.v_new = x.k_new + half;
  x.out = out;
  ops_.append_kv(x, context);
  const bool last = part_ + 1 == parts_.size();
  if (last && launch_.hand_over) launch_.hand_over->write(tag.iteration, layer_);
  ops_.attend_new(x, context);
  tag.kind = frame_kind::attention;
  to.commit(tag);
  bytes_sent_ += out_bytes;
  from().release(); // its Q
  ++part_;
  if (!last) return progress::advanced;
  end_layer();
  if (layer_ < cache_->layers()) return progress::advanced;
  presence_.leave();
  return progress::done;
}

/// All that is left of a layer are K and V of its parts.
void attention_runner::end_layer() {
  for (size_t i = 0; i < parts_.size(); ++i) from().release();
  presence_.received();
  part_ = 0;
  phase_ = phase::queries;
  ++layer_;
}

} // namespace lamella::gpu
