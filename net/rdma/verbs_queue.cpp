#if defined(LAMELLA_HAS_VERBS)

#include "net/rdma/verbs_queue.hpp"

#include "base/errno_text.hpp"

#include <openssl/rand.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <stdexcept>

namespace lamella::net {

namespace {

constexpr uint32_t packet_number_mask = 0xffffff;
/// Of a queue, so that its memory is bounded whatever the terms of the link.
constexpr uint32_t depth_max = 8192;
constexpr uint8_t hops_max = 64;
constexpr uint32_t blocks_of_write = 8; ///< of a ring's entry for one write, at most

[[noreturn]] void fail(const std::string& what, int reason = errno) {
  throw std::runtime_error{what + ": " + errno_text(reason)};
}

uint32_t random_packet_number() {
  uint32_t x = 0;
  if (RAND_bytes(reinterpret_cast<unsigned char*>(&x), sizeof x) != 1)
    throw std::runtime_error{"cannot get random bytes for a packet number"};
  return x & packet_number_mask;
}

/// `x` of that memory, by its dma-buf, where there is one and it can be used, or by its address.
ibv_mr* register_memory(ibv_pd* domain, const verbs_memory& of, std::span<std::byte> x,
                        int access) {
  const auto& lib = the_verbs_library();
  std::string why;
  if (of.dma_buf >= 0 && lib.register_dma_buf != nullptr) {
    auto* region =
        lib.register_dma_buf(domain, static_cast<uint64_t>(x.data() - of.exported), x.size(),
                             reinterpret_cast<uint64_t>(x.data()), of.dma_buf, access);
    if (region != nullptr) return region;
    why = "dma-buf: " + errno_text() + "; by address: ";
  } else if (of.dma_buf >= 0) {
    why = "dma-buf: needs rdma-core 34; by address: ";
  }
  auto* region = lib.register_memory(domain, x.data(), x.size(), access);
  if (region != nullptr) return region;
  const auto reason = errno;
  const auto bytes = "registering " + std::to_string(x.size()) + " bytes";
  if (of.exported != nullptr)
    fail(bytes + " of a device (is the module nvidia_peermem loaded?): " + why, reason);
  fail(bytes + (reason == ENOMEM ? " (is `ulimit -l` large enough?)" : ""), reason);
}

} // namespace

queue_pair::queue_pair(std::shared_ptr<const verbs_port> port, const verbs_memory& memory,
                       uint32_t depth, const parent_domain& make_parent)
    : port_{std::move(port)}, memory_{memory}, first_packet_{random_packet_number()} {
  try {
    make(depth, make_parent);
  } catch (...) {
    destroy();
    throw;
  }
}

queue_pair::~queue_pair() { destroy(); }

void queue_pair::make(uint32_t depth, const parent_domain& make_parent) {
  const auto& lib = the_verbs_library();
  domain_ = lib.allocate_domain(port_->context.get());
  if (domain_ == nullptr) fail("protection domain");
  // Not with relaxed ordering: a seqno must not land before the payload that was written first.
  landing_ = register_memory(domain_, memory_, memory_.landing,
                             IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
  sending_ = register_memory(domain_, memory_, memory_.sending, 0);
  const auto limit = [&](int most) { return static_cast<uint32_t>(std::max(most, 1)); };
  depth_ =
      std::min({depth, depth_max, limit(port_->limits.max_qp_wr), limit(port_->limits.max_cqe)});
  // Streams ask for one with every post, and a block of the ring is the least of one.
  const auto entries =
      make_parent ? std::min(depth_ * blocks_of_write, limit(port_->limits.max_cqe)) : depth_;
  completions_ =
      lib.make_completions(port_->context.get(), static_cast<int>(entries), nullptr, nullptr, 0);
  if (completions_ == nullptr) fail("completion queue");
  ibv_qp_init_attr of{};
  of.send_cq = of.recv_cq = completions_;
  of.qp_type = IBV_QPT_RC;
  of.cap.max_send_wr = depth_;
  of.cap.max_recv_wr = 1;
  of.cap.max_send_sge = 1;
  of.cap.max_recv_sge = 1;
  of.cap.max_inline_data = verbs_inline_max;
  if (make_parent) {
    parent_ = make_parent(domain_);
    if (parent_ == nullptr) fail("parent domain");
  }
  queue_ = lib.make_queue(parent_ != nullptr ? parent_ : domain_, &of);
  if (queue_ == nullptr) fail("queue pair");
  ibv_qp_attr to{};
  to.qp_state = IBV_QPS_INIT;
  to.port_num = port_->number;
  to.qp_access_flags = IBV_ACCESS_REMOTE_WRITE; // no reads, no atomics
  if (const int reason = lib.change_queue(
          queue_, &to, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS))
    fail("queue pair to INIT", reason);
}

/// In the order of reliability A3: first nothing goes out or comes in any more, then the keys go.
void queue_pair::destroy() {
  const auto& lib = the_verbs_library();
  if (queue_ != nullptr) {
    ibv_qp_attr to{};
    to.qp_state = IBV_QPS_ERR;
    lib.change_queue(queue_, &to, IBV_QP_STATE);
    lib.free_queue(queue_);
  }
  if (completions_ != nullptr) lib.free_completions(completions_);
  if (parent_ != nullptr) lib.free_domain(parent_);
  if (landing_ != nullptr) lib.unregister(landing_);
  if (sending_ != nullptr) lib.unregister(sending_);
  if (domain_ != nullptr) lib.free_domain(domain_);
}

verbs_end queue_pair::here() const {
  verbs_end x;
  std::copy(std::begin(port_->address.raw), std::end(port_->address.raw), x.address.begin());
  x.landing = reinterpret_cast<uint64_t>(memory_.landing.data());
  x.landing_bytes = memory_.landing.size();
  x.key = landing_->rkey;
  x.queue = queue_->qp_num;
  x.first_packet = first_packet_;
  x.local_id = port_->attributes.lid;
  x.packet_code = static_cast<uint8_t>(port_->attributes.active_mtu);
  return x;
}

void queue_pair::connect(const verbs_end& peer) {
  const auto& lib = the_verbs_library();
  if (peer.packet_code < IBV_MTU_256 || peer.packet_code > IBV_MTU_4096
      || peer.queue > packet_number_mask || peer.first_packet > packet_number_mask)
    throw std::runtime_error{"the peer's queue has numbers out of range"};
  peer_ = peer;
  ibv_qp_attr to{};
  to.qp_state = IBV_QPS_RTR;
  to.path_mtu = static_cast<ibv_mtu>(
      std::min(static_cast<uint8_t>(port_->attributes.active_mtu), peer.packet_code));
  to.dest_qp_num = peer.queue;
  to.rq_psn = peer.first_packet;
  to.max_dest_rd_atomic = 0;
  to.min_rnr_timer = 12;
  to.ah_attr.is_global = 1;
  std::copy(peer.address.begin(), peer.address.end(), std::begin(to.ah_attr.grh.dgid.raw));
  to.ah_attr.grh.sgid_index = static_cast<uint8_t>(port_->address_index);
  to.ah_attr.grh.hop_limit = hops_max;
  to.ah_attr.dlid = peer.local_id;
  to.ah_attr.port_num = port_->number;
  if (const int reason =
          lib.change_queue(queue_, &to,
                           IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN
                               | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER))
    fail("queue pair to RTR", reason);
  to = {};
  to.qp_state = IBV_QPS_RTS;
  to.timeout = verbs_timeout_code;
  to.retry_cnt = verbs_retries;
  to.rnr_retry = verbs_retries;
  to.sq_psn = first_packet_;
  to.max_rd_atomic = 0;
  if (const int reason =
          lib.change_queue(queue_, &to,
                           IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY
                               | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC))
    fail("queue pair to RTS", reason);
}

void queue_pair::post(std::span<const verbs_write> writes, bool tell) {
  if (writes.empty()) return;
  if (writes.size() > room()) throw std::runtime_error{"more writes than the queue has room for"};
  requests_.assign(writes.size(), ibv_send_wr{});
  pieces_.assign(writes.size(), ibv_sge{});
  for (size_t i = 0; i < writes.size(); ++i) {
    const auto& w = writes[i];
    if (w.to > peer_.landing_bytes || w.bytes > peer_.landing_bytes - w.to)
      throw std::runtime_error{"a write beyond the peer's memory"};
    pieces_[i] = {reinterpret_cast<uint64_t>(w.from), w.bytes, w.inlined ? 0 : sending_->lkey};
    auto& r = requests_[i];
    r.next = i + 1 < writes.size() ? &requests_[i + 1] : nullptr;
    r.sg_list = &pieces_[i];
    r.num_sge = 1;
    r.opcode = IBV_WR_RDMA_WRITE;
    r.send_flags = w.inlined ? IBV_SEND_INLINE : 0;
    r.wr.rdma.remote_addr = peer_.landing + w.to;
    r.wr.rdma.rkey = peer_.key;
  }
  // One in a quarter of the queue is signalled: completions are what makes room again.
  const auto count = posted_ + writes.size();
  requests_.back().wr_id = count;
  if (tell || count - signalled_ >= depth_ / 4) requests_.back().send_flags |= IBV_SEND_SIGNALED;
  ibv_send_wr* refused = nullptr;
  if (const int reason = ibv_post_send(queue_, requests_.data(), &refused)) fail("post", reason);
  posted_ = count;
  if ((requests_.back().send_flags & IBV_SEND_SIGNALED) != 0) signalled_ = count;
  if (tell) told_ = count;
}

std::optional<std::string> queue_pair::poll() {
  std::array<ibv_wc, 16> done;
  while (true) {
    const int count = ibv_poll_cq(completions_, static_cast<int>(done.size()), done.data());
    if (count < 0) return "the completion queue has failed";
    for (int i = 0; i < count; ++i) {
      if (done[i].status != IBV_WC_SUCCESS)
        return std::string{"a write has failed: "}
               + the_verbs_library().status_text(done[i].status);
      retired_ = done[i].wr_id;
    }
    if (count < static_cast<int>(done.size())) return std::nullopt;
  }
}

} // namespace lamella::net

#endif
