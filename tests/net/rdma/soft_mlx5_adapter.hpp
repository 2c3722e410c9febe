/// An mlx5 adapter in software (net/rdma/mlx5/software_hca.hpp), for links within one process.
#pragma once

#include "net/rdma/mlx5/posted_queue.hpp"
#include "net/rdma/mlx5/software_hca.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <deque>
#include <mutex>
#include <thread>

namespace lamella::tests {

/// A thread is the adapter, and does what a queue's ring, record and register say. What it does
/// wrong on purpose, `faults` tells.
class soft_mlx5_adapter final : public net::verbs_device {
public:
  explicit soft_mlx5_adapter(net::mlx5::hca_faults faults = {})
      : hca_{faults}, thread_{[this](const std::stop_token& over) {
          for (uint32_t idle = 0; !over.stop_requested();)
            if (hca_.step())
              idle = 0;
            else if (++idle < timeout)
              std::this_thread::yield();
            else // nobody needs a processor for this
              std::this_thread::sleep_for(std::chrono::microseconds{50});
        }} {}

  const std::string& name() const override { return name_; }
  std::unique_ptr<net::verbs_queue> make_queue(const net::verbs_memory& memory, uint32_t) override;
  std::unique_ptr<net::stream_queue> make_stream_queue(const net::verbs_memory& memory,
                                                       std::byte* place) override;

  /// Queues made for streams so far.
  uint32_t streams() const { return streams_; }

private:
  class queue;
  static constexpr uint32_t timeout = 2'000; ///< turns without anything to do
  using register_page = std::array<uint64_t, 64>;

  /// Outlives its queue, as a page of a device does: streams may ring too late.
  uint64_t* make_register() {
    const std::lock_guard lock{mutex_};
    return registers_.emplace_back().data();
  }

  const std::string name_ = "an mlx5 adapter in software";
  net::mlx5::software_hca hca_;
  std::mutex mutex_;
  std::deque<register_page> registers_;
  std::atomic<uint32_t> numbers_{0}, streams_{0};
  std::jthread thread_;
};

class soft_mlx5_adapter::queue final : public net::mlx5::posted_queue {
public:
  /// `place`: for what the poster writes; null: memory of its own.
  queue(soft_mlx5_adapter& adapter, const net::verbs_memory& memory, std::byte* place)
      : hca_{adapter.hca_}, own_{place == nullptr ? std::make_unique<std::byte[]>(parts_bytes)
                                                  : nullptr} {
    auto* at = place != nullptr ? place : own_.get();
    at += (block - reinterpret_cast<uintptr_t>(at) % block) % block;
    const auto take = [&](size_t bytes) { return std::exchange(at, at + bytes); };
    q_.ring = reinterpret_cast<net::mlx5::wqe_block*>(take(blocks * block));
    q_.mask = blocks - 1;
    q_.number = ++adapter.numbers_;
    q_.record = reinterpret_cast<uint32_t*>(take(block)) + 1;
    auto* line = reinterpret_cast<unsigned char*>(take(block));
    q_.completion = reinterpret_cast<uint32_t*>(line + net::mlx5::completion_word_at);
    q_.blue_flame = adapter.make_register();
    q_.blue_flame_bytes = sizeof(register_page) / 2;
    sending_ = reinterpret_cast<uint64_t>(memory.sending.data());
    sending_bytes_ = memory.sending.size();
    using net::mlx5::be32, net::mlx5::remote_rights;
    landing_key_ =
        hca_.register_memory(memory.landing.data(), memory.landing.size(), remote_rights::write);
    sending_key_ =
        hca_.register_memory(memory.sending.data(), memory.sending.size(), remote_rights::none);
    q_.local = {sending_, be32(sending_key_)};
    here_.landing = reinterpret_cast<uint64_t>(memory.landing.data());
    here_.landing_bytes = memory.landing.size();
    here_.key = landing_key_;
    here_.queue = q_.number;
    here_.packet_code = 1;
    place_ = hca_.attach(q_, line);
  }
  ~queue() override {
    hca_.detach(place_);
    hca_.revoke(landing_key_);
    hca_.revoke(sending_key_);
  }

  net::verbs_end here() const override { return here_; }
  void connect(const net::verbs_end& peer) override {
    q_.remote = {peer.landing, net::mlx5::be32(peer.key)};
    q_.arena_bytes = peer.landing_bytes;
  }
  uint32_t write_bytes_max() const override { return 8 << 20; }

private:
  static constexpr uint32_t block = net::mlx5::block_bytes, blocks = 256;
  static constexpr size_t parts_bytes = (blocks + 3) * size_t{block};
  static_assert(parts_bytes <= net::stream_queue_bytes);

  net::mlx5::software_hca& hca_;
  std::unique_ptr<std::byte[]> own_;
  uint32_t landing_key_ = 0, sending_key_ = 0;
  size_t place_ = 0;
  net::verbs_end here_;
};

inline std::unique_ptr<net::verbs_queue>
soft_mlx5_adapter::make_queue(const net::verbs_memory& memory, uint32_t) {
  return std::make_unique<queue>(*this, memory, nullptr);
}

inline std::unique_ptr<net::stream_queue>
soft_mlx5_adapter::make_stream_queue(const net::verbs_memory& memory, std::byte* place) {
  ++streams_;
  return std::make_unique<queue>(*this, memory, place);
}

} // namespace lamella::tests
