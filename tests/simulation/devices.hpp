/// The compute of a simulated worker process: streams that take virtual time, in the one thread
/// there is.
#pragma once

#include "tests/actors/device/stepped_device.hpp"
#include "tests/simulation/timeline.hpp"

#include <memory>
#include <vector>

namespace lamella::simulation {

/// What kernels take on a device that runs one at a time, in the order in which streams could go on
/// and each until it has to wait.
struct device_pace {
  duration matmul{0}, attention{0};
};

/// All streams of one process. A stopped one does nothing until it goes on; a dead one nothing any
/// more.
class engine final : public gpu::listener, public std::enable_shared_from_this<engine> {
public:
  /// A step takes up to `slowest`.
  engine(timeline& time, duration slowest, std::optional<device_pace> pace = {})
      : time_{time}, slowest_{slowest}, pace_{pace} {}

  std::unique_ptr<gpu::device> make_device(const std::string& name);

  /// Something has changed that streams may wait for.
  void ring() override {
    for (auto& q : queues_) wake(q);
  }

  void stop() { stopped_ = true; }
  void go_on() {
    stopped_ = false;
    ring();
  }
  void die() {
    dead_ = true;
    for (auto& q : queues_) q->jobs.clear();
    queues_.clear();
  }
  /// So many works fail, as they come.
  void fail_next(uint32_t count) { fails_ = count; }
  /// All its memory is zeros.
  void wipe() {
    for (auto& weak : memories_)
      if (auto* x = weak.lock().get()) std::memset(x->data(), 0, x->size());
  }
  bool idle() const {
    for (const auto& q : queues_)
      if (!q->jobs.empty()) return false;
    return true;
  }
  bool running() const { return !stopped_ && !dead_; }
  /// Time that kernels have taken; of a device with a pace.
  duration busy() const { return busy_; }
  /// Steps take so many times longer.
  void slow_down(uint32_t times) { slowness_ = times; }

  struct job {
    std::shared_ptr<gpu::work> what;
    time_point deadline;
    gpu::stream::mark on_end;
    bool aborted = false;
  };
  struct queue {
    std::deque<job> jobs;
    arena workspace;
    bool awake = false; ///< its next step is on the timeline
    bool waits = false; ///< for the stream that has the device
  };

  std::unique_ptr<gpu::memory> allocate(size_t bytes) {
    /// The engine may look at it for as long as it lives.
    class shared final : public gpu::memory {
    public:
      explicit shared(size_t size) : inner_{std::make_shared<actors::test::plain_memory>(size)} {}
      std::byte* data() override { return inner_->data(); }
      size_t size() const override { return inner_->size(); }
      void trim() override { inner_->trim(); }
      const std::shared_ptr<gpu::memory>& inner() const { return inner_; }

    private:
      std::shared_ptr<gpu::memory> inner_;
    };
    auto made = std::make_unique<shared>(bytes);
    memories_.push_back(made->inner());
    return made;
  }

  std::shared_ptr<queue> add() { return queues_.emplace_back(std::make_shared<queue>()); }
  void remove(const std::shared_ptr<queue>& q) {
    auto rest = std::exchange(q->jobs, {});
    std::erase(queues_, q);
    if (!dead_)
      for (auto& j : rest) j.on_end(gpu::work_status::aborted);
  }
  void launch(const std::shared_ptr<queue>& q, job x) {
    if (dead_) return;
    time_.at(x.deadline, [weak = weak_from_this(), q] {
      if (auto self = weak.lock()) self->wake(q);
    });
    q->jobs.push_back(std::move(x));
    wake(q);
  }

  void wake(const std::shared_ptr<queue>& q) {
    if (q->awake || q->jobs.empty() || !running()) return;
    q->awake = true;
    time_.in(time_.between(1us, slowest_) * slowness_, [weak = weak_from_this(), q] {
      q->awake = false;
      if (auto self = weak.lock()) self->run(q);
    });
  }

  team& workers() {
    static team alone{1};
    return alone;
  }

private:
  /// Some steps of a stream, or the end of its oldest work.
  void run(const std::shared_ptr<queue>& q) {
    if (q->jobs.empty() || !running()) return;
    if (pace_ && has_device_ && has_device_ != q) {
      if (!std::exchange(q->waits, true)) waiting_.push_back(q);
      return;
    }
    auto& front = q->jobs.front();
    if (front.aborted) return end(q, gpu::work_status::aborted);
    if (fails_ > 0) {
      --fails_;
      return end(q, gpu::work_status::failed);
    }
    if (pace_) return run_paced(q);
    try {
      for (auto steps = 1 + time_.dice().below(12); steps > 0; --steps) {
        arena::scope scope{scratch_};
        const auto outcome = front.what->advance({workers(), scratch_, &q->workspace});
        if (outcome == gpu::work::progress::done) return end(q, gpu::work_status::done);
        if (outcome == gpu::work::progress::blocked) {
          if (front.deadline <= time_.now()) end(q, gpu::work_status::deadline);
          return;
        }
        ring(); // other streams of the process may wait for this one
      }
    } catch (const gpu::channel_ended&) {
      return end(q, gpu::work_status::cut);
    } catch (const std::exception&) {
      return end(q, gpu::work_status::failed);
    }
    wake(q);
  }

  /// One step. What comes of it shows at once, but the next one begins when its kernels have ended:
  /// those that send take no time.
  void run_paced(const std::shared_ptr<queue>& q) {
    has_device_ = q;
    const auto before = kernels_run();
    auto outcome = gpu::work::progress::done;
    {
      arena::scope scope{scratch_};
      outcome = q->jobs.front().what->advance({workers(), scratch_, &q->workspace});
    }
    const auto& now = kernels_run();
    const auto cost = pace_->matmul * (now.matmuls - before.matmuls)
                      + pace_->attention * (now.attentions - before.attentions);
    busy_ += cost;
    if (outcome == gpu::work::progress::blocked) return give_device();
    q->awake = true;
    time_.in(cost, [weak = weak_from_this(), q, outcome] {
      auto self = weak.lock();
      if (!self) return;
      if (outcome != gpu::work::progress::done) self->ring(); // it goes on at once
      q->awake = false;
      if (outcome == gpu::work::progress::done) {
        self->give_device();
        self->end(q, gpu::work_status::done);
      } else {
        self->run(q);
      }
    });
  }
  void give_device() {
    has_device_ = nullptr;
    for (auto& q : std::exchange(waiting_, {})) {
      q->waits = false;
      wake(q);
    }
  }

  void end(const std::shared_ptr<queue>& q, gpu::work_status status) {
    auto over = std::move(q->jobs.front());
    q->jobs.pop_front();
    time_.note(static_cast<uint64_t>(status), 77);
    over.on_end(status);
    ring();
  }

  timeline& time_;
  arena scratch_;
  std::vector<std::shared_ptr<queue>> queues_;
  std::vector<std::weak_ptr<gpu::memory>> memories_;
  bool stopped_ = false, dead_ = false;
  uint32_t fails_ = 0;
  duration slowest_;
  uint32_t slowness_ = 1;
  std::optional<device_pace> pace_;
  std::shared_ptr<queue> has_device_; ///< its step runs; of a device with a pace
  std::deque<std::shared_ptr<queue>> waiting_;
  duration busy_{0};
};

class simulated_stream final : public gpu::stream {
public:
  explicit simulated_stream(std::shared_ptr<engine> of) : engine_{std::move(of)} {}
  ~simulated_stream() override { engine_->remove(queue_); }
  void launch(std::shared_ptr<gpu::work> x, gpu::clock::time_point deadline, mark on_end) override {
    engine_->launch(queue_, {std::move(x), deadline, std::move(on_end), false});
  }
  void abort() override {
    for (auto& j : queue_->jobs) j.aborted = true;
    engine_->wake(queue_);
  }

private:
  std::shared_ptr<engine> engine_;
  std::shared_ptr<engine::queue> queue_ = engine_->add();
};

class simulated_device final : public gpu::host_memory_device {
public:
  simulated_device(std::shared_ptr<engine> of, std::string name)
      : engine_{std::move(of)}, name_{std::move(name)} {}
  std::string name() const override { return name_; }
  const gpu::operators& ops() const override { return integer_operators(); }
  team& workers() override { return engine_->workers(); }
  std::unique_ptr<gpu::stream> make_stream(std::string) override {
    return std::make_unique<simulated_stream>(engine_);
  }
  std::unique_ptr<gpu::memory> allocate(size_t bytes) override { return engine_->allocate(bytes); }

private:
  std::shared_ptr<engine> engine_;
  std::string name_;
};

inline std::unique_ptr<gpu::device> engine::make_device(const std::string& name) {
  return std::make_unique<simulated_device>(shared_from_this(), name);
}

} // namespace lamella::simulation
