#include "gpu/runners/kv_pages.hpp"

#include <algorithm>

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace lamella::gpu {

namespace {

/// Since Linux 5.14; the headers of this system may be older.
constexpr int populate_write = 23;

constexpr size_t huge_page = 2 << 20;
/// Faster than it takes to tell another thread.
constexpr size_t small = huge_page;
/// Behind whoever decodes, but never starved.
constexpr int nice = 10;

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

kv_pages::ready_flag kv_pages::begin(std::vector<window> wanted) {
  auto done = std::make_shared<std::atomic<bool>>(false);
  std::lock_guard lock{mutex_};
  std::ranges::sort(wanted);
  wanted.erase(std::ranges::unique(wanted).begin(), wanted.end());
  std::erase_if(wanted, [&](window x) { return x < resident_.size() && resident_[x]; });
  const auto bytes = std::min(layer_bytes_, wanted.size() * huge_page) * layers_;
  // Behind what is under way: it may have some of these windows.
  if (tasks_.empty() && (wanted.empty() || bytes <= small)) {
    done->store(true);
    return done;
  }
  for (const auto x : wanted) {
    if (x >= resident_.size()) resident_.resize(x + 1);
    resident_[x] = true;
  }
  tasks_.push_back({std::move(wanted), done});
  if (!thread_.joinable()) thread_ = std::thread{[this] { run(); }};
  changed_.notify_all();
  return done;
}

void kv_pages::forget() {
  std::lock_guard lock{mutex_};
  resident_.clear();
}

void kv_pages::run() {
  setpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid)), nice);
  std::unique_lock lock{mutex_};
  while (true) {
    changed_.wait(lock, [&] { return ending_ || !tasks_.empty(); });
    if (ending_) return;
    const auto next = tasks_.front();
    lock.unlock();
    for (const auto x : next.windows) touch(x);
    lock.lock();
    tasks_.pop_front();
    next.done->store(true);
  }
}

/// Page by page: the kernel holds the map of the process meanwhile. Contents stay as they are; a
/// kernel that does not know this leaves the pages to whoever uses them first.
void kv_pages::touch(window x) const {
  static const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  for (uint32_t layer = 0; layer < layers_ && !ending_; ++layer) {
    const auto base = reinterpret_cast<uintptr_t>(data_ + layer * layer_bytes_);
    const auto from = (base + x * huge_page) & ~(page - 1);
    const auto to = base + std::min(layer_bytes_, (size_t{x} + 1) * huge_page);
    madvise(reinterpret_cast<void*>(from), to - from, populate_write);
  }
}

} // namespace lamella::gpu
