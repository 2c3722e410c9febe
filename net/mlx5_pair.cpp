#if __has_include(<infiniband/mlx5dv.h>)

#include "net/mlx5_pair.hpp"

#include "net/mlx5_library.hpp"

#include <atomic>
#include <cerrno>
#include <cstring>
#include <stdexcept>

namespace lamella::net {

namespace {

/// Writes of a queue, to whose ring the library gives some blocks each: enough for all frames there
/// is credit for between two looks of the host.
constexpr uint32_t depth = 256;
constexpr size_t line = mlx5::block_bytes;

} // namespace

mlx5_pair::mlx5_pair(std::shared_ptr<const verbs_port> port, const verbs_memory& memory,
                     std::byte* place)
    : room_{place, place, place + stream_queue_bytes}, completion_{room_.next} {
  const auto& lib = the_mlx5_library();
  if (lib.error) throw std::runtime_error{*lib.error};
  if (!lib.is_supported(port->context->device))
    throw std::runtime_error{port->device
                             + " is no mlx5 adapter: devices cannot post into its queues"};
  room_.next += line;
  std::memset(completion_, 0xff, line);
  pair_.emplace(port, memory, depth, [&](ibv_pd* domain) {
    ibv_parent_domain_init_attr of{};
    of.pd = domain;
    of.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS | IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT;
    of.alloc = take;
    of.free = leave;
    of.pd_context = &room_;
    return ibv_alloc_parent_domain(port->context.get(), &of);
  });
  mlx5dv_qp queue{};
  mlx5dv_obj both{};
  both.qp = {pair_->queue(), &queue};
  both.cq = {pair_->completions(), &completions_};
  if (const int reason = lib.look_inside(&both, MLX5DV_OBJ_QP | MLX5DV_OBJ_CQ); reason != 0)
    throw std::runtime_error{std::string{"mlx5dv_init_obj: "} + std::strerror(reason)};
  const auto is_ours = [&](const void* at) { return at >= room_.begin && at < room_.end; };
  if (!is_ours(queue.sq.buf) || !is_ours(queue.dbrec))
    throw std::runtime_error{"libmlx5 does not take memory for queues: rdma-core 27 is needed"};
  if (queue.sq.stride != line || (queue.sq.wqe_cnt & (queue.sq.wqe_cnt - 1)) != 0
      || completions_.cqe_cnt < queue.sq.wqe_cnt)
    throw std::runtime_error{"the queues of " + port->device + " are not laid out as expected"};
  q_.ring = static_cast<mlx5::wqe_block*>(queue.sq.buf);
  q_.mask = queue.sq.wqe_cnt - 1;
  q_.number = pair_->queue()->qp_num;
  q_.record = reinterpret_cast<uint32_t*>(&queue.dbrec[MLX5_SND_DBR]);
  q_.blue_flame = static_cast<uint64_t*>(queue.bf.reg);
  q_.blue_flame_bytes = queue.bf.size; // 0: one register, and no pushes
  q_.completion = reinterpret_cast<uint32_t*>(completion_ + mlx5::completion_word_at);
  sending_ = reinterpret_cast<uint64_t>(memory.sending.data());
  sending_bytes_ = memory.sending.size();
  q_.local = {sending_, mlx5::be32(pair_->sending_key())};
}

void mlx5_pair::connect(const verbs_end& peer) {
  pair_->connect(peer);
  q_.remote = {peer.landing, mlx5::be32(peer.key)};
  q_.arena_bytes = peer.landing_bytes;
}

/// What is new, oldest first; an entry is the adapter's while its owner bit is that of the round
/// before.
std::optional<std::string> mlx5_pair::fetch_completions() {
  auto* const entries = static_cast<std::byte*>(completions_.buf);
  for (;; ++fetched_) {
    const auto index = fetched_ & (completions_.cqe_cnt - 1);
    const auto* entry = entries + size_t{index} * completions_.cqe_size
                        + (completions_.cqe_size - line); // the second half of a long one
    auto* word =
        reinterpret_cast<uint32_t*>(const_cast<std::byte*>(entry + mlx5::completion_word_at));
    const auto last = std::atomic_ref{*word}.load(std::memory_order_acquire);
    const bool round = (fetched_ & completions_.cqe_cnt) != 0;
    const bool owner = (mlx5::be32(last) & 1) != 0;
    if (mlx5::completion_opcode_of(last) == mlx5::completion_never || owner != round) break;
    std::memcpy(completion_, entry, mlx5::completion_word_at);
    std::atomic_ref{*reinterpret_cast<uint32_t*>(completion_ + mlx5::completion_word_at)}.store(
        last, std::memory_order_release);
    if (mlx5::completion_opcode_of(last) != mlx5::completion_done) return {}; // poll() tells
  }
  std::atomic_ref{*reinterpret_cast<uint32_t*>(completions_.dbrec)}.store(
      mlx5::be32(fetched_ & 0xffffff), std::memory_order_release);
  return {};
}

void* mlx5_pair::take(ibv_pd*, void* of, size_t bytes, size_t alignment, uint64_t kind) {
  if (kind != MLX5DV_RES_TYPE_QP && kind != MLX5DV_RES_TYPE_DBR) return IBV_ALLOCATOR_USE_DEFAULT;
  auto& r = *static_cast<room*>(of);
  const auto at = reinterpret_cast<uintptr_t>(r.next);
  const auto step = (alignment - at % alignment) % alignment;
  if (step + bytes > static_cast<size_t>(r.end - r.next)) {
    errno = ENOMEM;
    return nullptr;
  }
  auto* result = r.next + step;
  r.next = result + bytes;
  return result;
}

void mlx5_pair::leave(ibv_pd*, void*, void*, uint64_t) {} // the place is its owner's

} // namespace lamella::net

#endif
