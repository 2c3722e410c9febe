#include "gpu/runners/kv_transfer.hpp"

namespace lamella::gpu {

kv_transfer::kv_transfer(std::shared_ptr<const kv_cache> cache, const operators& ops,
                         transfer_launch launch)
    : cache_{std::move(cache)}, ops_{ops}, launch_{std::move(launch)} {}

frame_tag kv_transfer::tag_of(frame_kind kind, uint64_t piece) const {
  return {launch_.epoch, launch_.pull, 0, static_cast<uint32_t>(piece), kind, 0};
}

copy_kv_args kv_transfer::next_with(std::byte* packed) {
  const auto& piece = launch_.pieces[next_ % launch_.pieces.size()];
  return {cache_->layer(layer_of_next()),
          launch_.first_head,
          launch_.head_count,
          std::span{launch_.runs}.subspan(piece.first_run, piece.run_count),
          packed,
          words_,
          &digest_,
          launch_.add};
}

size_t kv_transfer::bytes_of_next() const {
  return size_t{launch_.pieces[next_ % launch_.pieces.size()].rows} * 2 * launch_.head_count
         * cache_->layer(0).head_bytes();
}

work::progress kv_transfer::done_with_next() {
  words_ += bytes_of_next() / 4;
  return ++next_ == pieces() ? progress::done : progress::advanced;
}

pull_runner::pull_runner(std::shared_ptr<const kv_cache> cache, const operators& ops,
                         transfer_launch launch, std::shared_ptr<channel_receiver> from,
                         std::shared_ptr<channel_sender> to, pull_policy policy,
                         std::shared_ptr<const qkv_watch> watch)
    : kv_transfer{std::move(cache), ops, std::move(launch)}, from_{std::move(from)},
      to_{std::move(to)}, policy_{std::move(policy)}, watch_{std::move(watch)} {}

work::progress pull_runner::advance(kernel_context context) {
  if (pieces() == 0) return progress::done;
  if (watch_ && !policy_.may_step(watch_->waits(), watch_->receives())) return progress::blocked;
  const auto before = granted_;
  const auto due = policy_.grants(pieces(), next_);
  for (; granted_ < due && reserve(*to_, 0) != nullptr; ++granted_)
    to_->commit(tag_of(frame_kind::pull, granted_));
  const auto* rows = from_->receive(tag_of(frame_kind::rows, next_), bytes_of_next());
  if (rows == nullptr) return granted_ > before ? progress::advanced : progress::blocked;
  // scatter_kv reads what gather_kv writes: one record serves both.
  ops_.scatter_kv(next_with(const_cast<std::byte*>(rows->payload.data())), context);
  from_->release();
  return done_with_next();
}

offer_runner::offer_runner(std::shared_ptr<const kv_cache> cache, const operators& ops,
                           transfer_launch launch, std::shared_ptr<channel_receiver> from,
                           std::shared_ptr<channel_sender> to, offer_terms terms)
    : kv_transfer{std::move(cache), ops, std::move(launch)}, from_{std::move(from)},
      to_{std::move(to)}, terms_{std::move(terms)} {}

work::progress offer_runner::advance(kernel_context context) {
  if (pieces() == 0) return progress::done;
  if (terms_.may_step && !terms_.may_step()) return progress::blocked;
  const auto layer = layer_of_next();
  if (terms_.iteration != 0 && next_begins_layer()
      && !terms_.hand_over->is_written(terms_.iteration, layer))
    return progress::blocked;
  if (from_->receive(tag_of(frame_kind::pull, next_), 0) == nullptr) return progress::blocked;
  auto* to = reserve(*to_, bytes_of_next());
  if (to == nullptr) return progress::blocked;
  ops_.gather_kv(next_with(to), context);
  to_->commit(tag_of(frame_kind::rows, next_));
  from_->release();
  const auto outcome = done_with_next();
  if (terms_.hand_over && next_begins_layer())
    terms_.hand_over->take(terms_.shard, launch_.pull, layer);
  return outcome;
}

} // namespace lamella::gpu
