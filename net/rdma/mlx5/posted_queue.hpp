/// Writes of a link as work requests of our own, posted by a thread of the host or by the streams
/// of a device (Lamina 4.1).
#pragma once

#include "net/rdma/mlx5/send_queue.hpp"
#include "net/rdma/verbs.hpp"

namespace lamella::net::mlx5 {

/// What queues of mlx5 adapters share, those of hardware and those of the adapter in software: how
/// writes become work requests, and when they are done. Who derives from it makes the queue, says
/// where it is (`q_`) and to whom it is connected.
class posted_queue : public stream_queue {
public:
  uint32_t room() const override;
  void post(std::span<const verbs_write> writes, bool tell) override;
  std::optional<std::string> poll() override;
  bool settled() const override;
  const send_queue& hand_over(uint64_t* published) override;
  void ring() override;
  std::span<uint64_t> bell() const override {
    return {q_.blue_flame, 2 * q_.blue_flame_bytes / sizeof(uint64_t)};
  }

protected:
  /// Brings completions to where `q_.completion` points, and posters look for room, if the adapter
  /// does not. The reason when that is over.
  virtual std::optional<std::string> fetch_completions() { return {}; }

  /// `local` is where the sending memory begins and `remote` where the peer's landing memory does,
  /// `arena_bytes` long; `seqno` means nothing. Pointers are the host's.
  send_queue q_{};
  uint64_t sending_ = 0, sending_bytes_ = 0; ///< as the spans of writes count

private:
  uint64_t told_ = 0; ///< blocks up to the last write posted with `tell`
  uint64_t rung_ = 0; ///< blocks that a doorbell has told of
  bool handed_over_ = false;
};

} // namespace lamella::net::mlx5
