#include "gpu/doorbell.hpp"

#include <cerrno>
#include <climits>
#include <ctime>
#include <stdexcept>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace lamella::gpu {

namespace {

constexpr size_t segment_bytes = 4096;

[[noreturn]] void fail(const char* what) {
  throw std::system_error{errno, std::generic_category(), what};
}

} // namespace

struct doorbell::words {
  alignas(64) std::atomic<uint32_t> rings;
  std::atomic<uint32_t> armed;
};
static_assert(std::atomic<uint32_t>::is_always_lock_free);

doorbell::doorbell()
    : descriptor_{memfd_create("lamella doorbell", MFD_CLOEXEC | MFD_ALLOW_SEALING)} {
  if (descriptor_ < 0) fail("memfd_create");
  void* p = MAP_FAILED;
  if (ftruncate(descriptor_, segment_bytes) == 0
      && fcntl(descriptor_, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
    p = mmap(nullptr, segment_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_, 0);
  if (p == MAP_FAILED) {
    const auto reason = std::exchange(errno, 0);
    close(descriptor_);
    errno = reason;
    fail("doorbell");
  }
  words_ = static_cast<words*>(p); // zeroed pages are two words of value 0
}

doorbell::doorbell(int descriptor) : descriptor_{fcntl(descriptor, F_DUPFD_CLOEXEC, 0)} {
  if (descriptor_ < 0) fail("fcntl(F_DUPFD_CLOEXEC)");
  struct stat info {};
  const auto seals = fcntl(descriptor_, F_GET_SEALS);
  // Without the seals the other side could shorten the segment under us: SIGBUS.
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0 || fstat(descriptor_, &info) != 0
      || info.st_size != static_cast<off_t>(segment_bytes)) {
    close(descriptor_);
    throw std::runtime_error{"the descriptor is not a doorbell: no sealed segment of one page"};
  }
  auto* p = mmap(nullptr, segment_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_, 0);
  if (p == MAP_FAILED) {
    const auto reason = errno;
    close(descriptor_);
    errno = reason;
    fail("mmap of a doorbell");
  }
  words_ = static_cast<words*>(p);
}

doorbell::~doorbell() {
  munmap(words_, segment_bytes);
  close(descriptor_);
}

void doorbell::ring() {
  // Both sides change the flag: either arm() comes second and the waiter then sees what was sent,
  // or this comes second and takes the flag. It is taken first and once: taken after the count, it
  // could be that of the next arm(), whose waiter would then sleep through every ring.
  if (words_->armed.exchange(0, std::memory_order_seq_cst) == 0) return;
  words_->rings.fetch_add(1, std::memory_order_seq_cst);
  syscall(SYS_futex, &words_->rings, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

uint32_t doorbell::arm() {
  const auto seen = words_->rings.load(std::memory_order_acquire);
  words_->armed.exchange(1, std::memory_order_acq_rel);
  return seen;
}

void doorbell::disarm() { words_->armed.store(0, std::memory_order_relaxed); }

void doorbell::wait(uint32_t seen, std::chrono::steady_clock::time_point until) {
  using namespace std::chrono;
  const auto now = steady_clock::now();
  timespec limit{};
  const bool limited = until != steady_clock::time_point::max();
  if (limited && until > now) {
    const auto left = duration_cast<nanoseconds>(until - now);
    limit.tv_sec = static_cast<time_t>(left / seconds{1});
    limit.tv_nsec = static_cast<long>((left % seconds{1}).count());
  }
  syscall(SYS_futex, &words_->rings, FUTEX_WAIT, seen, limited ? &limit : nullptr, nullptr, 0);
  disarm();
}

outside_channel::outside_channel(std::shared_ptr<doorbell> bell, bool rings)
    : bell_{std::move(bell)}, rings_{rings} {
  bell_->outside.fetch_add(1, std::memory_order_relaxed);
  if (!rings_) bell_->silent.fetch_add(1, std::memory_order_relaxed);
}

outside_channel::~outside_channel() {
  bell_->outside.fetch_sub(1, std::memory_order_relaxed);
  if (!rings_) bell_->silent.fetch_sub(1, std::memory_order_relaxed);
}

} // namespace lamella::gpu
