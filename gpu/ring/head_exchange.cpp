#include "gpu/ring/head_exchange.hpp"

#include <algorithm>
#include <numeric>

namespace lamella::gpu {

head_exchange::head_exchange(std::shared_ptr<const rank_group> ranks, const shape& of,
                             const operators& ops, arena& room)
    : ranks_{std::move(ranks)}, of_{of}, ops_{ops}, rows_(of.rows) {
  std::iota(rows_.begin(), rows_.end(), 0u);
  const auto widest = std::max(stride(true), stride(false));
  all_ = {room.allocate<float>(size_t{of.rows} * widest),
          room.allocate<float>(size_t{of.rows} * stride(false))};
}

bool head_exchange::collect(const frame_tag& tag, std::span<const float* const> own,
                            kernel_context context) {
  if (of_.rows == 0) return true;
  const bool queries = tag.kind == frame_kind::q;
  const auto part = bytes(queries);
  const auto put = [&](const std::byte* from, uint32_t rank, size_t tensor) {
    ops_.from_wire({from, rows_, rank * of_.heads, of_.heads, width(queries), of_.wire,
                    all_[tensor], stride(queries)},
                   context);
  };
  for (; next_ < ranks_->ranks; ++next_) {
    auto& from = *ranks_->links[next_].from;
    const auto* arrived = from.receive(tag, part * own.size(), 0);
    if (arrived == nullptr) return false;
    for (size_t i = 0; i < own.size(); ++i) put(arrived->payload.data() + i * part, next_, i);
    from.release();
  }
  next_ = 1;
  auto* rounded = context.scratch.allocate<std::byte>(part);
  for (size_t i = 0; i < own.size(); ++i) {
    ops_.to_wire({own[i], of_.heads * width(queries), rows_, 0, of_.heads, width(queries), of_.wire,
                  rounded},
                 context);
    put(rounded, 0, i);
  }
  return true;
}

bool head_exchange::distribute(const frame_tag& tag, float* own, kernel_context context) {
  if (of_.rows == 0) return true;
  const auto take = [&](uint32_t rank, std::byte* to) {
    ops_.to_wire(
        {all_[0], stride(true), rows_, rank * of_.heads, of_.heads, width(true), of_.wire, to},
        context);
  };
  for (; next_ < ranks_->ranks; ++next_) {
    auto& to = *ranks_->links[next_].to;
    auto* place = reserve(to, bytes(true));
    if (place == nullptr) return false;
    take(next_, place);
    to.commit(tag);
  }
  next_ = 1;
  auto* rounded = context.scratch.allocate<std::byte>(bytes(true));
  take(0, rounded);
  ops_.from_wire(
      {rounded, rows_, 0, of_.heads, width(true), of_.wire, own, of_.heads * width(true)}, context);
  return true;
}

} // namespace lamella::gpu
