#if defined(LAMELLA_HAS_MLX5DV)

#include "net/rdma/mlx5_pair.hpp"

#include "base/errno_text.hpp"
#include "net/rdma/mlx5_library.hpp"

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <utility>

namespace lamella::net {

namespace {

/// Writes of a queue, to whose ring the library gives some blocks each: enough for some hundred
/// posts of streams between two looks of the host, which tells them what has completed.
constexpr uint32_t depth = 256;
constexpr size_t line = mlx5::block_bytes;

} // namespace

mlx5_pair::mlx5_pair(std::shared_ptr<const verbs_port> port, const verbs_memory& memory,
                     std::byte* place)
    : room_{place, place, place + stream_queue_bytes} {
  const auto& lib = the_mlx5_library();
  if (lib.error) throw std::runtime_error{*lib.error};
  if (!lib.is_supported(port->context->device))
    throw std::runtime_error{port->device
                             + " is not an mlx5 adapter: devices cannot post into its queues"};
  auto* const newest = std::exchange(room_.next, room_.next + line);
  std::memset(newest, 0xff, line);
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
  mlx5dv_cq completions{};
  both.cq = {pair_->completions(), &completions};
  if (const int reason = lib.look_inside(&both, MLX5DV_OBJ_QP | MLX5DV_OBJ_CQ); reason != 0)
    throw std::runtime_error{"mlx5dv_init_obj: " + errno_text(reason)};
  const auto is_ours = [&](const void* at) { return at >= room_.begin && at < room_.end; };
  if (!is_ours(queue.sq.buf) || !is_ours(queue.dbrec))
    throw std::runtime_error{"libmlx5 does not accept queue memory: install rdma-core 27 or later"};
  if (queue.sq.stride != line || (queue.sq.wqe_cnt & (queue.sq.wqe_cnt - 1)) != 0
      || completions.cqe_cnt < queue.sq.wqe_cnt)
    throw std::runtime_error{"the queues of " + port->device + " have an unexpected layout"};
  q_.ring = static_cast<mlx5::wqe_block*>(queue.sq.buf);
  q_.mask = queue.sq.wqe_cnt - 1;
  q_.number = pair_->queue()->qp_num;
  q_.record = reinterpret_cast<uint32_t*>(&queue.dbrec[MLX5_SND_DBR]);
  q_.blue_flame = static_cast<uint64_t*>(queue.bf.reg);
  q_.blue_flame_bytes = queue.bf.size; // 0: one register, and no pushes
  q_.completion = reinterpret_cast<uint32_t*>(newest + mlx5::completion_word_at);
  completions_ = {static_cast<std::byte*>(completions.buf), completions.cqe_cnt,
                  completions.cqe_size, reinterpret_cast<uint32_t*>(completions.dbrec), newest};
  sending_ = reinterpret_cast<uint64_t>(memory.sending.data());
  sending_bytes_ = memory.sending.size();
  q_.local = {sending_, mlx5::be32(pair_->sending_key())};
}

void mlx5_pair::connect(const verbs_end& peer) {
  pair_->connect(peer);
  q_.remote = {peer.landing, mlx5::be32(peer.key)};
  q_.arena_bytes = peer.landing_bytes;
}

std::optional<std::string> mlx5_pair::fetch_completions() {
  completions_.take();
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
