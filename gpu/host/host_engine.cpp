#include "gpu/host/host_engine.hpp"

#include "gpu/host/host_memory_device.hpp"

#include "base/float_mode.hpp"
#include "gpu/ring/channel.hpp"
#include "gpu/ring/poll_timeout.hpp"
#include "gpu/trace/step_trace.hpp"
#include "gpu/urgent_work.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <new>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include <malloc.h>
#include <sys/mman.h>

namespace lamella::gpu {

std::string_view to_string(work_status status) {
  constexpr std::array<std::string_view, 6> names{"done", "aborted", "deadline",
                                                  "cut",  "failed",  "lost"};
  return names[static_cast<size_t>(status)];
}

namespace {

/// An engine that has had nothing to do for so long gives its scratch memory back.
constexpr std::chrono::seconds idle_before_release{2};

/// Somebody outside could take the bell's flag away without ringing: no job waits longer than this
/// without another look.
constexpr std::chrono::milliseconds longest_sleep{100};
/// Nor does an engine without jobs: what is launched next rings by that flag, too.
constexpr std::chrono::seconds longest_idle_sleep{1};

/// Anonymous pages: resident only once touched, huge where the system likes.
class host_memory final : public memory {
public:
  explicit host_memory(size_t bytes) : size_{bytes} {
    if (bytes == 0) return;
    auto* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) throw std::bad_alloc{};
    data_ = static_cast<std::byte*>(p);
    madvise(data_, size_, MADV_HUGEPAGE);
  }
  ~host_memory() override {
    if (data_ != nullptr) munmap(data_, size_);
  }
  host_memory(const host_memory&) = delete;
  host_memory& operator=(const host_memory&) = delete;

  std::byte* data() override { return data_; }
  size_t size() const override { return size_; }
  void trim() override {
    if (data_ != nullptr) madvise(data_, size_, MADV_DONTNEED);
  }

private:
  std::byte* data_ = nullptr;
  size_t size_;
};

struct job {
  std::shared_ptr<work> what;
  clock::time_point deadline;
  stream::mark on_end;
  bool aborted = false;
  const urgent_work* urgent = nullptr; ///< `what`, if it is one
};

/// The engine's side of a stream. Jobs are guarded by the engine's mutex; `used` by the driver
/// alone.
struct stream_state {
  std::shared_ptr<step_lane> lane; ///< what it does, while that is recorded
  arena workspace;                 ///< of the driver alone
  std::deque<job> jobs;
  clock::duration used{0};
  bool blocked = false;
  bool urgent = false; ///< the next step of its oldest job
  bool gone = false;   ///< destroyed by its own step or mark
};

/// The step that a work takes next, while steps are recorded.
std::optional<step_label> traced_step(const work& x) {
  if (!traces().on()) return std::nullopt;
  const auto* traced = dynamic_cast<const traced_work*>(&x);
  return traced != nullptr ? traced->next_step() : step_label{};
}

} // namespace

struct host_engine::impl {
  impl(unsigned threads, const operators& table) : workers{threads}, ops{table} {
    bell->attend();
    driver = std::thread{[this] { drive(); }};
  }

  ~impl() {
    {
      std::lock_guard lock{mutex};
      stopping = true;
      for (auto& s : streams)
        for (auto& j : s->jobs) j.aborted = true;
    }
    bell->ring();
    driver.join();
  }

  void drive() {
    const plain_floats floats;
    std::unique_lock lock{mutex};
    while (true) {
      const auto next = pick();
      if (next == nullptr) {
        if (stopping) return;
        wait(lock);
        continue;
      }
      run_step(*next, lock);
    }
  }

  /// The runnable stream that has used the least time, those with an urgent step first; null when
  /// all are idle or blocked.
  std::shared_ptr<stream_state> pick() {
    std::shared_ptr<stream_state> best;
    const auto goes_before = [](const stream_state& a, const stream_state& b) {
      return a.urgent != b.urgent ? a.urgent : a.used < b.used;
    };
    for (auto& s : streams)
      if (!s->jobs.empty() && (!s->blocked || s->jobs.front().aborted)
          && (best == nullptr || goes_before(*s, *best)))
        best = s;
    if (best != nullptr) level = std::max(level, best->used);
    return best;
  }

  /// Nothing can advance: polls for a while if a channel from outside may speak, then sleeps until
  /// the bell rings or the first deadline has passed. The mutex is free meanwhile.
  void wait(std::unique_lock<std::mutex>& lock) {
    auto until = clock::time_point::max();
    bool idle = true;
    for (auto& s : streams)
      if (!s->jobs.empty()) {
        until = std::min(until, s->jobs.front().deadline);
        idle = false;
      }
    const bool outside = bell->outside.load(std::memory_order_relaxed) != 0;
    if (!idle && outside && timeout.poll()) {
      lock.unlock();
      timeout.pause();
      bell->look();
      lock.lock();
    } else if (!armed) {
      seen = bell->arm();
      armed = true; // and look once more: what came before this may not have rung
    } else {
      if (idle && holds_memory)
        until = clock::now() + idle_before_release;
      else if (outside)
        until = std::min<clock::time_point>(
            until, clock::now() + (idle ? longest_idle_sleep : longest_sleep));
      if (!idle && bell->silent.load(std::memory_order_relaxed) != 0)
        until = std::min(until, clock::now() + doorbell::nap);
      lock.unlock();
      bell->wait(seen, until);
      lock.lock();
      armed = false;
      if (clock::now() >= until) idle ? release_memory() : expire(lock);
    }
    unblock();
  }

  /// An idle engine keeps nothing: the next launch allocates again.
  void release_memory() {
    if (!holds_memory) return;
    for (auto& s : streams)
      if (!s->jobs.empty()) return; // launched in the last moment
    scratch.release();
    for (auto& s : streams) s->workspace.release();
    malloc_trim(0); // the allocator keeps large blocks otherwise
    holds_memory = false;
  }

  void expire(std::unique_lock<std::mutex>& lock) {
    const auto now = clock::now();
    const auto waiting = streams; // a mark may destroy a stream
    for (const auto& s : waiting)
      if (!s->jobs.empty() && s->jobs.front().deadline <= now)
        end_front(*s, work_status::deadline, lock);
  }

  void unblock() {
    for (auto& s : streams) s->blocked = false;
  }

  void run_step(stream_state& s, std::unique_lock<std::mutex>& lock) {
    if (s.jobs.front().aborted) {
      end_front(s, work_status::aborted, lock);
      unblock();
      return;
    }
    auto what = s.jobs.front().what;
    const auto* urgent = s.jobs.front().urgent;
    busy = &s;
    lock.unlock();
    const auto label = traced_step(*what);
    const auto began = clock::now();
    auto outcome = work::progress::done;
    auto ended_badly = work_status::done;
    try {
      arena::scope scratch_scope{scratch};
      holds_memory = true;
      outcome = what->advance({workers, scratch, &s.workspace});
    } catch (const channel_ended&) {
      ended_badly = work_status::cut;
    } catch (...) {
      ended_badly = work_status::failed; // the executor treats the device as lost
    }
    if (const auto delay = extra_us.load(std::memory_order_relaxed); delay != 0)
      std::this_thread::sleep_for(std::chrono::microseconds{delay});
    const auto ended = clock::now();
    what->add_step(ended - began);
    const bool is_urgent = urgent != nullptr && outcome != work::progress::done
                           && ended_badly == work_status::done && urgent->is_urgent();
    if (label) s.lane->add(*label, began, ended, outcome == work::progress::blocked);
    what.reset(); // if this was the last owner, its destructor must not find the mutex taken
    bell->look(); // other streams may have work for as long as anybody waits for a socket
    step_count.fetch_add(1, std::memory_order_relaxed);
    lock.lock();
    busy = nullptr;
    if (s.gone) return;
    s.used += ended - began;
    s.urgent = is_urgent;
    if (ended_badly != work_status::done) {
      end_front(s, ended_badly, lock);
    } else if (outcome == work::progress::blocked) {
      s.blocked = true;
      // The engine may never come to wait() while other streams have something to do.
      if (s.jobs.front().deadline <= ended) end_front(s, work_status::deadline, lock);
      return;
    } else if (outcome == work::progress::done) {
      end_front(s, work_status::done, lock);
    }
    timeout.rewarded();
    unblock(); // what this step sent may be what another stream waits for
  }

  void end_front(stream_state& s, work_status status, std::unique_lock<std::mutex>& lock) {
    auto finished = std::move(s.jobs.front());
    s.jobs.pop_front();
    s.blocked = s.urgent = false;
    busy = &s;
    lock.unlock();
    if (traces().on()) s.lane->end_work(clock::now());
    finished.on_end(status);
    finished.what.reset();
    lock.lock();
    busy = nullptr;
    left.notify_all();
  }

  team workers;
  const operators& ops;
  arena scratch;
  bool holds_memory = false; ///< used by the driver alone
  std::mutex mutex;
  std::condition_variable left;
  std::shared_ptr<doorbell> bell = std::make_shared<doorbell>();
  std::vector<std::shared_ptr<stream_state>> streams;
  /// The highest use a stream has been picked with. A stream that was idle starts here, not with a
  /// credit of idle time that would let it starve the others, even those between two launches.
  clock::duration level{0};
  poll_timeout timeout; ///< this and the next two are used by the driver alone
  bool armed = false;
  uint32_t seen = 0;
  stream_state* busy = nullptr; ///< the stream whose step or mark runs right now
  bool stopping = false;
  std::atomic<uint64_t> step_count{0};
  std::atomic<int64_t> extra_us{0};
  std::thread driver;
};

namespace {

class host_stream final : public stream {
public:
  host_stream(host_engine::impl& engine, const std::string& device, std::string name)
      : engine_{engine}, state_{std::make_shared<stream_state>()} {
    state_->lane = traces().make_lane(device, std::move(name));
    std::lock_guard lock{engine_.mutex};
    engine_.streams.push_back(state_);
  }

  /// Waits for the step that is running, if it is ours; all other work ends with `aborted`.
  ~host_stream() override {
    std::unique_lock lock{engine_.mutex};
    std::deque<job> rest; // ends when the mutex is free
    if (std::this_thread::get_id() == engine_.driver.get_id()) {
      // In a step or a mark: the driver cannot wait for itself.
      rest = std::exchange(state_->jobs, {});
      state_->gone = true;
    } else {
      for (auto& j : state_->jobs) j.aborted = true;
      engine_.bell->ring();
      engine_.left.wait(lock,
                        [this] { return state_->jobs.empty() && engine_.busy != state_.get(); });
    }
    std::erase(engine_.streams, state_);
    lock.unlock();
    for (auto& j : rest) j.on_end(work_status::aborted);
  }

  void launch(std::shared_ptr<work> x, clock::time_point deadline, mark on_end) override {
    {
      std::lock_guard lock{engine_.mutex};
      if (state_->jobs.empty()) state_->used = std::max(state_->used, engine_.level);
      const auto* urgent = dynamic_cast<const urgent_work*>(x.get());
      state_->jobs.push_back({std::move(x), deadline, std::move(on_end), false, urgent});
    }
    engine_.bell->ring();
  }

  void abort() override {
    {
      std::lock_guard lock{engine_.mutex};
      for (auto& j : state_->jobs) j.aborted = true;
    }
    engine_.bell->ring();
  }

private:
  host_engine::impl& engine_;
  std::shared_ptr<stream_state> state_;
};

class host_device final : public host_memory_device {
public:
  host_device(host_engine::impl& engine, std::string name)
      : engine_{engine}, name_{std::move(name)} {}

  std::string name() const override { return name_; }
  const operators& ops() const override { return engine_.ops; }
  team& workers() override { return engine_.workers; }
  std::unique_ptr<stream> make_stream(std::string name) override {
    return std::make_unique<host_stream>(engine_, name_, std::move(name));
  }
  std::unique_ptr<memory> allocate(size_t bytes) override {
    return std::make_unique<host_memory>(bytes);
  }
  std::shared_ptr<doorbell> bell() override { return engine_.bell; }

private:
  host_engine::impl& engine_;
  std::string name_;
};

} // namespace

host_engine::host_engine(unsigned threads, const operators& ops)
    : impl_{std::make_unique<impl>(threads, ops)} {}

host_engine::~host_engine() = default;

std::unique_ptr<device> host_engine::make_device(std::string name) {
  return std::make_unique<host_device>(*impl_, std::move(name));
}

std::shared_ptr<doorbell> host_engine::bell() const { return impl_->bell; }

unsigned host_engine::threads() const { return impl_->workers.size(); }

const operators& host_engine::ops() const { return impl_->ops; }

void host_engine::slow_down(std::chrono::microseconds per_step) {
  impl_->extra_us.store(per_step.count(), std::memory_order_relaxed);
}

uint64_t host_engine::steps() const { return impl_->step_count.load(std::memory_order_relaxed); }

} // namespace lamella::gpu
