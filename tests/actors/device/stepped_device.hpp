/// Devices that work only when told, a step at a time, in the test's own thread: with them the
/// whole pipeline, kernels included, runs on virtual time.
#pragma once

#include "base/team.hpp"
#include "gpu/host/host_memory_device.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <new>

namespace lamella::actors::test {

class stepped_engine {
public:
  struct job {
    std::shared_ptr<gpu::work> what;
    gpu::stream::mark on_end;
    bool aborted = false;
  };
  struct queue {
    std::deque<job> jobs;
    arena workspace;
  };

  /// One step of each stream that can go on; false when none could.
  bool step() {
    bool moved = false;
    const auto all = queues; // marks may make streams
    for (const auto& q : all) {
      if (q->jobs.empty()) continue;
      arena::scope scope{scratch};
      const auto outcome = q->jobs.front().aborted
                               ? gpu::work::progress::done
                               : q->jobs.front().what->advance({workers, scratch, &q->workspace});
      moved |= outcome != gpu::work::progress::blocked;
      if (outcome != gpu::work::progress::done) continue;
      auto finished = std::move(q->jobs.front());
      q->jobs.pop_front();
      finished.on_end(finished.aborted ? gpu::work_status::aborted : gpu::work_status::done);
    }
    steps += moved;
    return moved;
  }

  std::unique_ptr<gpu::device> make_device(std::string name);

  team workers{1};
  arena scratch;
  std::vector<std::shared_ptr<queue>> queues;
  uint64_t steps = 0;
  uint64_t memories = 0; ///< pieces of memory that devices were asked for
};

class stepped_stream final : public gpu::stream {
public:
  explicit stepped_stream(std::shared_ptr<stepped_engine::queue> q) : queue_{std::move(q)} {}
  void launch(std::shared_ptr<gpu::work> x, gpu::clock::time_point, mark on_end) override {
    queue_->jobs.push_back({std::move(x), std::move(on_end), false});
  }
  void abort() override {
    for (auto& j : queue_->jobs) j.aborted = true;
  }

private:
  std::shared_ptr<stepped_engine::queue> queue_;
};

class plain_memory final : public gpu::memory {
public:
  explicit plain_memory(size_t bytes) : size_{(bytes + 63) / 64 * 64} {
    data_ = static_cast<std::byte*>(std::aligned_alloc(64, std::max<size_t>(size_, 64)));
    if (data_ == nullptr) throw std::bad_alloc{};
    trim();
  }
  ~plain_memory() override { std::free(data_); }
  plain_memory(const plain_memory&) = delete;
  plain_memory& operator=(const plain_memory&) = delete;
  std::byte* data() override { return data_; }
  size_t size() const override { return size_; }
  void trim() override { std::memset(data_, 0, size_); }

private:
  std::byte* data_ = nullptr;
  size_t size_;
};

class stepped_device final : public gpu::host_memory_device {
public:
  stepped_device(stepped_engine& engine, std::string name)
      : engine_{engine}, name_{std::move(name)} {}
  std::string name() const override { return name_; }
  const gpu::operators& ops() const override { return gpu::reference_operators(); }
  team& workers() override { return engine_.workers; }
  std::unique_ptr<gpu::stream> make_stream(std::string) override {
    engine_.queues.push_back(std::make_shared<stepped_engine::queue>());
    return std::make_unique<stepped_stream>(engine_.queues.back());
  }
  std::unique_ptr<gpu::memory> allocate(size_t bytes) override {
    ++engine_.memories;
    return std::make_unique<plain_memory>(bytes);
  }
  std::shared_ptr<std::byte> ring_memory(size_t bytes, const gpu::device& peer) override {
    ++engine_.memories;
    return gpu::host_memory_device::ring_memory(bytes, peer);
  }

private:
  stepped_engine& engine_;
  std::string name_;
};

inline std::unique_ptr<gpu::device> stepped_engine::make_device(std::string name) {
  return std::make_unique<stepped_device>(*this, std::move(name));
}

} // namespace lamella::actors::test
