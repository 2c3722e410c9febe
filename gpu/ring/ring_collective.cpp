#include "gpu/ring/ring_collective.hpp"

namespace lamella::gpu {

ring_collective::ring_collective(uint32_t rank, std::vector<rank_link> links, const operators& ops)
    : rank_{rank}, links_{std::move(links)}, ops_{ops} {}

bool ring_collective::all_reduce(const sum_args& args, kernel_context context) {
  if (args.rows == 0) return true;
  auto tag = args.tag;
  tag.kind = frame_kind::partial;
  if (!send(args, tag, context)) return false;
  const auto bytes = size_t{args.rows} * args.width * sizeof(float);
  std::vector<const float*> parts;
  for (uint32_t r = 0; r < links_.size(); ++r) {
    if (r == rank_) {
      parts.push_back(args.x);
      continue;
    }
    const auto* arrived = links_[r].from->receive(tag, bytes, 0);
    if (arrived == nullptr) return false;
    parts.push_back(reinterpret_cast<const float*>(arrived->payload.data()));
  }
  // The own part lies where the sum will be: only the last addition may write there.
  auto* between =
      parts.size() > 2 ? context.scratch.allocate<float>(size_t{args.rows} * args.width) : nullptr;
  const auto* sum = parts[0];
  for (size_t r = 1; r < parts.size(); ++r) {
    auto* out = r + 1 == parts.size() ? args.x : between;
    ops_.add({sum, parts[r], args.rows, args.width, out}, context);
    sum = out;
  }
  for (uint32_t r = 0; r < links_.size(); ++r)
    if (r != rank_) links_[r].from->release();
  return true;
}

/// Continues where a full ring stopped it.
bool ring_collective::send(const sum_args& args, const frame_tag& tag, kernel_context context) {
  if (tag != newest_) {
    newest_ = tag;
    sent_to_ = 0;
    for (auto i = static_cast<uint32_t>(rows_.size()); i < args.rows; ++i) rows_.push_back(i);
  }
  const auto bytes = size_t{args.rows} * args.width * sizeof(float);
  for (; sent_to_ < links_.size(); ++sent_to_) {
    if (sent_to_ == rank_) continue;
    auto& to = *links_[sent_to_].to;
    auto* place = reserve(to, bytes);
    if (place == nullptr) return false;
    ops_.to_wire({args.x, args.width, std::span{rows_}.first(args.rows), 0, 1, args.width,
                  half_type::f32, place},
                 context);
    to.commit(tag);
    bytes_sent_.fetch_add(bytes, std::memory_order_relaxed);
  }
  return true;
}

void ring_collective::end(channel_state why) {
  for (auto& link : links_) {
    if (link.to) link.to->end(why);
    if (link.from) link.from->end(why);
  }
}

} // namespace lamella::gpu
