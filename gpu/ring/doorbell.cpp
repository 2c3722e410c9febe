#include "gpu/ring/doorbell.hpp"

#include "base/errno_text.hpp"

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

} // namespace

struct doorbell::words {
  alignas(64) std::atomic<uint32_t> rings;
  std::atomic<uint32_t> armed;
};
static_assert(std::atomic<uint32_t>::is_always_lock_free);

/// Null, and errno, when it fails. Zeroed pages are two words of value 0.
doorbell::words* doorbell::map(int word) {
  auto* p = mmap(nullptr, segment_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, word, 0);
  return p == MAP_FAILED ? nullptr : static_cast<words*>(p);
}

doorbell::doorbell() : watch_{std::make_unique<descriptor_watch>()} {
  waker_ = watch_->waker();
  word_ = memfd_create("lamella doorbell", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (word_ < 0) throw_errno("memfd_create");
  if (ftruncate(word_, segment_bytes) == 0
      && fcntl(word_, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
    words_ = map(word_);
  if (words_ == nullptr) {
    const auto reason = errno;
    close(word_);
    errno = reason;
    throw_errno("a doorbell");
  }
}

doorbell::doorbell(std::array<int, 2> descriptors) {
  word_ = fcntl(descriptors[0], F_DUPFD_CLOEXEC, 0);
  if (word_ < 0) throw_errno("fcntl(F_DUPFD_CLOEXEC)");
  struct stat info {};
  const auto seals = fcntl(word_, F_GET_SEALS);
  // Without the seals the other side could shorten the segment under us: SIGBUS.
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0 || fstat(word_, &info) != 0
      || info.st_size != static_cast<off_t>(segment_bytes)) {
    close(word_);
    throw std::runtime_error{"the descriptor is not a doorbell: no sealed segment of one page"};
  }
  waker_ = fcntl(descriptors[1], F_DUPFD_CLOEXEC, 0);
  if (waker_ >= 0) words_ = map(word_);
  if (words_ == nullptr) {
    const auto reason = errno;
    close(word_);
    if (waker_ >= 0) close(waker_);
    errno = reason;
    throw_errno("the doorbell of another process");
  }
}

doorbell::~doorbell() {
  munmap(words_, segment_bytes);
  close(word_);
  if (!watch_) close(waker_);
}

void doorbell::ring() {
  // Both sides change the flag: either arm() comes second and the waiter then sees what was sent,
  // or this comes second and takes the flag. It is taken first and once: taken after the count, it
  // could be that of the next arm(), whose waiter would then sleep through every ring.
  const auto sleeps = words_->armed.exchange(awake, std::memory_order_seq_cst);
  if (sleeps == awake) return;
  words_->rings.fetch_add(1, std::memory_order_seq_cst);
  if (sleeps == on_word) {
    syscall(SYS_futex, &words_->rings, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
    return;
  }
  const uint64_t one = 1;
  // When the counter is full the sleeper has been woken.
  [[maybe_unused]] const auto written = write(waker_, &one, sizeof one);
}

uint32_t doorbell::arm() {
  const auto seen = words_->rings.load(std::memory_order_acquire);
  sleeps_ = attended_ && !watch_->empty() ? on_descriptors : on_word;
  words_->armed.exchange(sleeps_, std::memory_order_acq_rel);
  return seen;
}

void doorbell::disarm() { words_->armed.store(awake, std::memory_order_relaxed); }

void doorbell::wait(uint32_t seen, std::chrono::steady_clock::time_point until) {
  using namespace std::chrono;
  if (sleeps_ == on_descriptors) {
    watch_->sleep(until);
    return disarm();
  }
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

void doorbell::watch(int descriptor, std::weak_ptr<listener> ready) {
  watch_->add(descriptor, std::move(ready));
  if (attended_) ring(); // one who sleeps on the word must not go on doing so
}

outside_channel::outside_channel(std::shared_ptr<doorbell> bell, bool rings)
    : bell_{std::move(bell)}, rings_{rings} {
  bell_->outside.fetch_add(1, std::memory_order_relaxed);
  if (!rings_) bell_->silent.fetch_add(1, std::memory_order_relaxed);
  bell_->ring(); // a waiter sleeps shorter from now on
}

outside_channel::~outside_channel() {
  bell_->outside.fetch_sub(1, std::memory_order_relaxed);
  if (!rings_) bell_->silent.fetch_sub(1, std::memory_order_relaxed);
}

} // namespace lamella::gpu
