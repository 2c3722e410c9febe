/// An RDMA adapter in software, for links within one process: sanitizers see all it does, and it
/// can be told to fail.
#pragma once

#include "net/rdma/verbs.hpp"

#include <atomic>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <stdexcept>
#include <thread>

namespace lamella::tests {

/// A thread carries out the writes of each queue in order, some time after they were posted, like
/// hardware: memory that is written over too early or given back too early shows.
class soft_adapter final : public net::verbs_device {
public:
  explicit soft_adapter(uint32_t depth_max = 256, uint32_t write_bytes_max = 1 << 20)
      : depth_max_{depth_max}, write_bytes_max_{write_bytes_max}, thread_{[this] { run(); }} {}
  ~soft_adapter() override {
    {
      const std::lock_guard lock{mutex_};
      stopping_ = true;
    }
    news_.notify_all();
    thread_.join();
  }

  const std::string& name() const override { return name_; }
  std::unique_ptr<net::verbs_queue> make_queue(const net::verbs_memory& memory,
                                               uint32_t depth) override;

  /// From now on nothing reaches anybody.
  void cut() { cut_ = true; }

private:
  class queue;
  struct job {
    std::vector<std::byte> copy; ///< of inlined bytes
    net::verbs_write write;
    uint64_t signal = 0; ///< 0, or the count to tell
  };
  /// A queue's side of the adapter; all under the mutex.
  struct port {
    net::verbs_memory memory;
    uint32_t key = 0;
    net::verbs_end peer;
    std::deque<job> jobs;
    uint64_t told = 0;
    std::string failed;
  };

  void run() {
    std::unique_lock lock{mutex_};
    while (!stopping_) {
      bool idle = true;
      for (auto& [number, from] : ports_) {
        if (from.jobs.empty()) continue;
        idle = false;
        carry_out(from, from.jobs.front());
        if (from.failed.empty())
          from.jobs.pop_front();
        else
          from.jobs.clear();
      }
      if (idle) news_.wait(lock);
    }
  }

  void carry_out(port& from, const job& x) {
    const auto to = ports_.find(from.peer.queue);
    if (cut_ || to == ports_.end()) {
      from.failed = "a write has failed: nobody answers";
      return;
    }
    const auto landing = to->second.memory.landing;
    const auto* data = x.write.inlined ? x.copy.data() : x.write.from;
    if (to->second.key != from.peer.key || x.write.to + x.write.bytes > landing.size()) {
      from.failed = "a write has failed: remote access error";
      return;
    }
    auto* place = landing.data() + x.write.to;
    if (x.write.bytes == sizeof(uint64_t)) { // a word, which others poll
      uint64_t word = 0;
      std::memcpy(&word, data, sizeof word);
      std::atomic_ref{*reinterpret_cast<uint64_t*>(place)}.store(word, std::memory_order_release);
    } else {
      std::memcpy(place, data, x.write.bytes);
    }
    if (x.signal != 0) from.told = x.signal;
  }

  const std::string name_ = "an adapter in software";
  const uint32_t depth_max_, write_bytes_max_;
  std::atomic<bool> cut_{false};
  std::mutex mutex_;
  std::condition_variable news_;
  std::map<uint32_t, port> ports_;
  uint32_t numbers_ = 0;
  bool stopping_ = false;
  std::thread thread_;
};

class soft_adapter::queue final : public net::verbs_queue {
public:
  queue(soft_adapter& adapter, const net::verbs_memory& memory, uint32_t depth)
      : adapter_{adapter}, depth_{depth} {
    const std::lock_guard lock{adapter_.mutex_};
    number_ = ++adapter_.numbers_;
    auto& p = adapter_.ports_[number_];
    p.memory = memory;
    p.key = number_ * 7919;
    here_.landing_bytes = memory.landing.size();
    here_.key = p.key;
    here_.queue = number_;
    here_.packet_code = 1;
  }
  ~queue() override {
    const std::lock_guard lock{adapter_.mutex_};
    adapter_.ports_.erase(number_);
  }

  net::verbs_end here() const override { return here_; }
  void connect(const net::verbs_end& peer) override {
    const std::lock_guard lock{adapter_.mutex_};
    adapter_.ports_.at(number_).peer = peer;
  }
  uint32_t room() const override { return depth_ - static_cast<uint32_t>(posted_ - retired_); }
  uint32_t write_bytes_max() const override { return adapter_.write_bytes_max_; }
  void post(std::span<const net::verbs_write> writes, bool tell) override {
    if (writes.size() > room()) throw std::runtime_error{"posted more than there is room for"};
    const std::lock_guard lock{adapter_.mutex_};
    auto& p = adapter_.ports_.at(number_);
    for (size_t i = 0; i < writes.size(); ++i) {
      const auto& w = writes[i];
      ++posted_;
      const bool signals = tell || posted_ - signalled_ >= depth_ / 4;
      const bool last = i + 1 == writes.size();
      if (last && signals) signalled_ = posted_;
      p.jobs.push_back({{}, w, last && signals ? posted_ : 0});
      if (w.inlined) p.jobs.back().copy.assign(w.from, w.from + w.bytes);
    }
    if (tell) told_ = posted_;
    adapter_.news_.notify_all();
  }
  std::optional<std::string> poll() override {
    const std::lock_guard lock{adapter_.mutex_};
    const auto& p = adapter_.ports_.at(number_);
    retired_ = p.told;
    if (p.failed.empty()) return std::nullopt;
    return p.failed;
  }
  bool settled() const override { return retired_ >= told_; }

private:
  soft_adapter& adapter_;
  uint32_t depth_, number_ = 0;
  net::verbs_end here_;
  uint64_t posted_ = 0, retired_ = 0, signalled_ = 0, told_ = 0;
};

inline std::unique_ptr<net::verbs_queue> soft_adapter::make_queue(const net::verbs_memory& memory,
                                                                  uint32_t depth) {
  return std::make_unique<queue>(*this, memory, std::min(depth, depth_max_));
}

} // namespace lamella::tests
