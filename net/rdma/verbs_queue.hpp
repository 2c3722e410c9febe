/// A queue pair of an adapter, as verbs_queue promises. For sources of the verbs tier.
#pragma once

#include "net/rdma/verbs.hpp"
#include "net/rdma/verbs_port.hpp"

#include <functional>
#include <vector>

namespace lamella::net {

/// A reliable connected queue pair of which only the sending half is used, with a completion queue,
/// a protection domain and two memory regions of its own.
class queue_pair final : public verbs_queue {
public:
  /// Who gives the memory that the library writes a queue's parts into; null: the library itself.
  using parent_domain = std::function<ibv_pd*(ibv_pd* domain)>;

  /// Throws std::runtime_error.
  queue_pair(std::shared_ptr<const verbs_port> port, const verbs_memory& memory, uint32_t depth,
             const parent_domain& make_parent = {});
  ~queue_pair() override;
  queue_pair(const queue_pair&) = delete;
  queue_pair& operator=(const queue_pair&) = delete;

  verbs_end here() const override;
  void connect(const verbs_end& peer) override;
  uint32_t room() const override { return depth_ - static_cast<uint32_t>(posted_ - retired_); }
  uint32_t write_bytes_max() const override { return port_->attributes.max_msg_sz; }
  void post(std::span<const verbs_write> writes, bool tell) override;
  std::optional<std::string> poll() override;
  bool settled() const override { return retired_ >= told_; }

  // For who posts in its place (net/rdma/mlx5_pair.hpp).
  ibv_qp* queue() const { return queue_; }
  ibv_cq* completions() const { return completions_; }
  uint32_t sending_key() const { return sending_->lkey; }

private:
  void make(uint32_t depth, const parent_domain& make_parent);
  void destroy();

  std::shared_ptr<const verbs_port> port_;
  verbs_memory memory_;
  ibv_pd *domain_ = nullptr, *parent_ = nullptr;
  ibv_mr *landing_ = nullptr, *sending_ = nullptr;
  ibv_cq* completions_ = nullptr;
  ibv_qp* queue_ = nullptr;
  verbs_end peer_{};
  uint32_t depth_ = 0, first_packet_;
  uint64_t posted_ = 0;    ///< writes; a signalled one carries the count up to and including itself
  uint64_t retired_ = 0;   ///< the adapter has finished so many
  uint64_t signalled_ = 0; ///< `posted_` at the last signalled one
  uint64_t told_ = 0;      ///< `posted_` at the last one posted with `tell`
  std::vector<ibv_send_wr> requests_; ///< room for one post
  std::vector<ibv_sge> pieces_;
};

} // namespace lamella::net
