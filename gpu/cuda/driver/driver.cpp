#include "gpu/cuda/driver/driver.hpp"

#include "gpu/cuda/driver/driver_line.hpp"

#include <algorithm>
#include <atomic>
#include <iterator>
#include <stdexcept>
#include <utility>

namespace lamella::gpu::cuda {

namespace {

/// Lines made ready when the device is opened, while nothing runs: making one pins memory, which
/// may wait for kernels that wait for each other. Lines that were closed are used again.
constexpr size_t spare_lines = 8;

/// Threads that read weights from their file.
constexpr unsigned loading_threads = 8;

/// Turns without news in which the driver spins; then it naps, so that an idle core stays idle.
constexpr uint32_t spinning_turns = 20'000;
constexpr std::chrono::microseconds nap{50};

/// Turns between two looks for an error that no word tells.
constexpr uint32_t turns_between_checks = 4'096;

uint32_t load(uint32_t& word) { return std::atomic_ref{word}.load(std::memory_order_acquire); }

work_status status_of(uint32_t word) {
  switch (static_cast<channel_status>(word)) {
  case channel_status::ok:
    return work_status::done;
  case channel_status::timeout:
    return work_status::deadline;
  case channel_status::aborted:
    return work_status::aborted;
  default:
    return work_status::cut;
  }
}

} // namespace

driver::driver(int device)
    : device_{device}, workers_{
                           std::clamp(std::thread::hardware_concurrency(), 1u, loading_threads)} {
  while (spare_.size() < spare_lines) spare_.push_back(std::make_shared<line>(device_));
  thread_ = std::thread{[this] { run(); }};
}

driver::~driver() {
  {
    std::lock_guard lock{mutex_};
    stopping_ = true;
    for (auto& x : lines_) x->end_all();
  }
  wake_.notify_one();
  thread_.join();
}

std::shared_ptr<driver::line> driver::open() {
  std::shared_ptr<line> x;
  {
    std::lock_guard lock{mutex_};
    if (lines_.size() >= lines_max)
      throw std::runtime_error{
          "a CUDA device has no more than " + std::to_string(lines_max)
          + " streams here: beyond its 32 queues one could wait for another behind it; lower "
            "batching.batches, or give pools a device of their own"};
    if (!spare_.empty()) {
      // One that need not grow, if there is one: others may be running, and growing pins memory.
      auto ready = std::find_if(spare_.begin(), spare_.end(), [this](const auto& spare) {
        return spare->has_room(argument_bytes_);
      });
      if (ready == spare_.end()) --ready;
      x = std::move(*ready);
      spare_.erase(ready);
    }
  }
  check(cudaSetDevice(device_), "cudaSetDevice");
  if (!x) x = std::make_shared<line>(device_);
  x->reserve(argument_bytes_);
  std::lock_guard lock{mutex_};
  lines_.push_back(x);
  return x;
}

void driver::reserve(size_t argument_bytes) {
  check(cudaSetDevice(device_), "cudaSetDevice");
  std::lock_guard lock{mutex_};
  if (argument_bytes <= argument_bytes_) return;
  argument_bytes_ = argument_bytes;
  for (auto& x : spare_) x->reserve(argument_bytes);
}

bool driver::prepare(size_t lines) {
  check(cudaSetDevice(device_), "cudaSetDevice");
  std::lock_guard lock{mutex_};
  for (auto& x : spare_) x->reserve(argument_bytes_); // a work may have lacked room since
  while (lines_.size() + spare_.size() < std::min(lines, lines_max)) {
    auto x = std::make_shared<line>(device_);
    x->reserve(argument_bytes_);
    spare_.push_back(std::move(x));
  }
  return lines <= lines_max;
}

void driver::close(const std::shared_ptr<line>& x) {
  std::unique_lock lock{mutex_};
  x->end_all();
  x->closing = true;
  wake_.notify_one();
  if (std::this_thread::get_id() == thread_.get_id())
    return; // in a mark: it cannot wait for itself
  left_.wait(lock, [&] { return std::find(lines_.begin(), lines_.end(), x) == lines_.end(); });
}

void driver::launch(const std::shared_ptr<line>& x, job j) {
  {
    std::lock_guard lock{mutex_};
    x->waiting.push_back(std::move(j));
  }
  wake_.notify_one();
}

void driver::abort(const std::shared_ptr<line>& x) {
  {
    std::lock_guard lock{mutex_};
    x->end_all();
  }
  wake_.notify_one();
}

void driver::run() {
  cudaSetDevice(device_);
  while (true) {
    std::vector<std::shared_ptr<line>> lines;
    bool stop = false;
    {
      std::lock_guard lock{mutex_};
      lines = lines_;
      stop = stopping_;
    }
    bool news = false, busy = false;
    for (auto& x : lines) {
      news = turn(*x) || news;
      busy = busy || !x->on_device.empty();
    }
    if (news) {
      idle_turns_ = 0;
      continue;
    }
    if (stop && !busy) return;
    if (busy) {
      watch();
      continue;
    }
    std::unique_lock lock{mutex_};
    wake_.wait(lock, [this] {
      return stopping_ || std::any_of(lines_.begin(), lines_.end(), [](const auto& x) {
               return x->abort_wanted || x->closing || !x->waiting.empty();
             });
    });
  }
}

/// The device works: spin a while, then look now and then.
void driver::watch() {
  if (++idle_turns_ < spinning_turns) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
    return;
  }
  std::unique_lock lock{mutex_};
  wake_.wait_for(lock, nap);
}

/// Whatever can be done for one stream without waiting; false when there is nothing.
bool driver::turn(line& x) {
  bool news = obey(x);
  if ((x.aborting || x.draining) && !x.on_device.empty() && !x.on_device.back()->complete)
    complete(x, work_status::aborted);
  news = x.kernels.tell_sleepers() || news;
  news = collect(x) || news;
  news = expire(x) || news;
  if (x.on_device.empty() && (x.aborting || x.draining) && !lost_) {
    recover(x);
    x.aborting = x.draining = false;
  }
  if (!x.aborting && !x.draining) news = put(x) || start(x) || news;
  return news;
}

/// The stream is empty after a work that failed, and is made ready for the next one; if that one
/// lacked room, there is more now. What pins memory may wait for kernels that wait for this stream:
/// their deadlines end that, and the work they are of is not whole without the one that failed.
void driver::recover(line& x) {
  try {
    x.kernels.recover();
    x.reserve(argument_bytes_);
  } catch (const cuda_error&) {
    lost_ = true;
  } catch (const std::bad_alloc&) { // then the next one fails as well
  }
}

/// What was asked of the stream since the last turn: abort, close. On a lost device nothing waits.
bool driver::obey(line& x) {
  std::deque<job> refused;
  bool abort = false;
  {
    std::lock_guard lock{mutex_};
    abort = std::exchange(x.abort_wanted, false);
    refused.swap(x.aborted);
    if (lost_) std::ranges::move(std::exchange(x.waiting, {}), std::back_inserter(refused));
    if (x.closing && x.on_device.empty() && refused.empty()) {
      const auto at =
          std::find_if(lines_.begin(), lines_.end(), [&](const auto& l) { return l.get() == &x; });
      x.closing = false;
      x.kernels.forget_sleepers();
      x.ended_before = false;
      spare_.push_back(std::move(*at));
      lines_.erase(at);
      left_.notify_all();
    }
  }
  if (abort && !x.on_device.empty()) {
    end_waits(x);
    for (auto& r : x.on_device) r->verdict = work_status::aborted;
  }
  for (auto& j : refused) j.on_end(lost_ ? work_status::lost : work_status::aborted);
  return abort || !refused.empty();
}

/// All waits of the stream end, those of works behind the first one too.
void driver::end_waits(line& x) {
  std::atomic_ref{x.kernels.control().abort}.store(1, std::memory_order_release);
  x.kernels.end_collectives();
  x.aborting = true;
}

/// A wait on the device starts its clock when it is reached, with the time that was left when it
/// was put into the stream: several would stretch the deadline of their work.
bool driver::expire(line& x) {
  if (x.aborting || x.on_device.empty()) return false;
  auto& r = *x.on_device.front();
  if (!r.complete || clock::now() < r.job.deadline) return false;
  if (r.verdict == work_status::done) r.verdict = work_status::deadline;
  end_waits(x);
  return true;
}

/// Tells the marks of works the device has finished.
bool driver::collect(line& x) {
  bool news = false;
  while (!x.on_device.empty()) {
    auto& r = *x.on_device.front();
    const bool look = idle_turns_ % turns_between_checks == 1;
    const bool failed = lost_ || (look && device_failed(x));
    if (!failed && !(r.complete && load(*r.way->arguments.ended_word()) != 0)) return news;
    auto status = failed ? work_status::lost : r.verdict;
    if (status == work_status::done) status = status_of(load(x.kernels.control().status));
    end_front(x, status);
    news = true;
  }
  return news;
}

/// An error that no kernel could tell, such as a bad address.
bool driver::device_failed(line& x) {
  const auto code = cudaStreamQuery(x.kernels.handle());
  if (code != cudaSuccess && code != cudaErrorNotReady) lost_ = true;
  return lost_;
}

void driver::end_front(line& x, work_status status) {
  auto r = std::move(x.on_device.front());
  x.on_device.pop_front();
  if (!lost_) {
    if (const auto busy = between(r->way->first, r->way->last)) r->job.what->add_busy(*busy);
    if (x.ended_before)
      if (const auto gap = between(x.before, r->way->first)) r->job.what->set_gap(*gap);
    std::swap(x.before.handle, r->way->last.handle);
    x.ended_before = true;
  }
  if (status == work_status::done)
    for (auto& f : r->at_end) f();
  else
    x.draining = true;
  r->job.on_end(status);
  r->job.what.reset();
  r->way->arguments.reset();
  x.free_passages.push_back(std::move(r->way));
}

} // namespace lamella::gpu::cuda
