#include "gpu/runners/kv_pages.hpp"

#include "base/patience.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>

#include <sys/utsname.h>
#include <unistd.h>

namespace lamella::gpu {

namespace {

constexpr size_t huge_page = kv_pages::page_bytes;
/// Faster than it takes to tell another thread.
constexpr size_t small = huge_page;
/// A page is taken for no slower. Rests are for what else runs, and on kernels that hold the map of
/// the process while they zero a page for whoever maps memory, who waits for this thread there.
constexpr std::chrono::milliseconds slowest{10};

/// Whether whoever maps memory waits for pages that are zeroed elsewhere: not since Linux 6.4.
bool zeroing_holds_the_map() {
  utsname about{};
  int major = 0, minor = 0;
  if (uname(&about) != 0 || std::sscanf(about.release, "%d.%d", &major, &minor) != 2) return true;
  return major < 6 || (major == 6 && minor < 4);
}

std::byte* next_page(std::byte* at, size_t page) {
  return at + (page - reinterpret_cast<uintptr_t>(at) % page);
}

} // namespace

kv_pages::~kv_pages() {
  {
    std::lock_guard lock{mutex_};
    ending_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void kv_pages::add_windows(std::vector<window>& to, uint32_t first, uint32_t length) const {
  if (length == 0) return;
  const auto end = std::min(layer_bytes_, (size_t{first} + length) * row_bytes_);
  for (auto x = size_t{first} * row_bytes_ / huge_page; x * huge_page < end; ++x)
    to.push_back(static_cast<window>(x));
}

void kv_pages::add_missing(std::vector<window>& to, uint32_t first, uint32_t length) const {
  const auto end = std::min(layer_bytes_, (size_t{first} + length) * row_bytes_ + huge_page);
  for (auto x = size_t{first} * row_bytes_ / huge_page; x * huge_page < end; ++x)
    if (state_of(static_cast<window>(x)) == state::missing) to.push_back(static_cast<window>(x));
}

void kv_pages::mark(window x, state now) {
  if (x >= states_.size()) states_.resize(x + 1, state::missing);
  states_[x] = now;
}

void kv_pages::wake() {
  if (!thread_.joinable()) thread_ = std::thread{[this] { run(); }};
  changed_.notify_all();
}

kv_pages::ready_flag kv_pages::begin(std::vector<window> wanted) {
  auto done = std::make_shared<std::atomic<bool>>(data_ == nullptr);
  if (data_ == nullptr) return done;
  std::lock_guard lock{mutex_};
  std::ranges::sort(wanted);
  wanted.erase(std::ranges::unique(wanted).begin(), wanted.end());
  std::erase_if(wanted, [&](window x) { return state_of(x) == state::resident; });
  const auto bytes = std::min(layer_bytes_, wanted.size() * huge_page) * layers_;
  // What others have asked for is behind what is under way.
  if (bytes <= small && (wanted.empty() || tasks_.empty())) {
    done->store(true);
    return done;
  }
  std::erase_if(wanted, [&](window x) { return state_of(x) == state::awaited; });
  for (const auto x : wanted) mark(x, state::awaited);
  tasks_.push_back({std::move(wanted), done, given_back_});
  wake();
  return done;
}

void kv_pages::begin_ahead(const std::vector<window>& wanted) {
  for (const auto x : wanted) {
    if (state_of(x) != state::missing) continue; // named twice
    mark(x, state::ahead);
    ahead_.push_back(x);
  }
  wake();
}

void kv_pages::forget() {
  std::lock_guard lock{mutex_};
  states_.clear();
  ahead_.clear();
  ++given_back_;
}

bool kv_pages::make(std::unique_lock<std::mutex>& lock, window x, pace how) {
  const auto break_off = [&, before = given_back_] {
    return ending_ || given_back_ != before || (how.yields && !tasks_.empty());
  };
  for (uint32_t layer = 0; layer < layers_; ++layer) {
    lock.unlock();
    const auto began = std::chrono::steady_clock::now();
    touch(x, layer);
    const auto took = std::chrono::steady_clock::now() - began;
    lock.lock();
    if (how.rest > 0)
      changed_.wait_for(lock, std::min<decltype(took)>(took, slowest) * how.rest, break_off);
    if (break_off()) return false;
  }
  return true;
}

void kv_pages::run() {
  constexpr pace ahead{.rest = 9, .yields = true};
  const pace awaited{.rest = zeroing_holds_the_map() ? 1 : 0, .yields = false};
  if (awaited.rest == 0) be_patient(); // preempted meanwhile, it is in nobody's way
  std::unique_lock lock{mutex_};
  while (true) {
    changed_.wait(lock, [&] { return ending_ || !tasks_.empty() || !ahead_.empty(); });
    if (ending_) return;
    if (!tasks_.empty()) {
      const auto next = tasks_.front();
      for (const auto x : next.windows) {
        if (next.given_back != given_back_) break; // nobody will write there
        if (make(lock, x, awaited)) mark(x, state::resident);
      }
      tasks_.pop_front();
      next.done->store(true);
      if (waiter_) waiter_->ring();
      continue;
    }
    const auto x = ahead_.front();
    ahead_.pop_front();
    if (state_of(x) != state::ahead) continue; // something waited for it meanwhile
    if (make(lock, x, ahead))
      mark(x, state::resident);
    else if (state_of(x) == state::ahead)
      ahead_.push_front(x);
  }
}

/// By a write that changes nothing, whoever writes there meanwhile. MADV_POPULATE_WRITE would hold
/// the map of the process, for all pages of its range.
void kv_pages::touch(window x, uint32_t layer) const {
  static const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  auto* const of_layer = data_ + layer * layer_bytes_;
  auto* const end = of_layer + std::min(layer_bytes_, (size_t{x} + 1) * huge_page);
  for (auto* at = of_layer + x * huge_page; at < end; at = next_page(at, page)) {
    std::atomic_ref<std::byte> first{*at};
    auto now = first.load(std::memory_order_relaxed);
    first.compare_exchange_strong(now, now, std::memory_order_relaxed);
  }
}

} // namespace lamella::gpu
