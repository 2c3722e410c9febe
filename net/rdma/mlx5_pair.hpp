/// A queue pair of an mlx5 adapter that streams of a device post into. For sources of the verbs
/// tier.
#pragma once

#include "net/rdma/mlx5/completion_ring.hpp"
#include "net/rdma/mlx5/posted_queue.hpp"
#include "net/rdma/verbs_queue.hpp"

#include <infiniband/mlx5dv.h>

namespace lamella::net {

/// An ordinary queue pair, made by libibverbs in memory of ours, so that a device can map it; what
/// libmlx5 tells of it is enough to go on without the libraries. Completions are read by the host,
/// which leaves the newest where streams look for room. Neither this nor what it asks of libmlx5
/// has been run on hardware.
class mlx5_pair final : public mlx5::posted_queue {
public:
  /// As verbs_device::make_stream_queue. Throws std::runtime_error with the reason.
  mlx5_pair(std::shared_ptr<const verbs_port> port, const verbs_memory& memory, std::byte* place);

  verbs_end here() const override { return pair_->here(); }
  void connect(const verbs_end& peer) override;
  uint32_t write_bytes_max() const override { return pair_->write_bytes_max(); }

protected:
  std::optional<std::string> fetch_completions() override;

private:
  /// Hands out the place, from the beginning; for the library.
  struct room {
    std::byte *begin, *next, *end;
  };
  static void* take(ibv_pd* domain, void* of, size_t bytes, size_t alignment, uint64_t kind);
  static void leave(ibv_pd* domain, void* of, void* at, uint64_t kind);

  room room_;
  std::optional<queue_pair> pair_;
  mlx5::completion_ring completions_;
};

} // namespace lamella::net
