#include "gpu/ring/descriptor_watch.hpp"

#include "base/errno_text.hpp"
#include "gpu/ring/listener.hpp"

#include <array>
#include <cerrno>
#include <cstdint>

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

namespace lamella::gpu {

namespace {

using namespace std::chrono;

/// Found by one look; what is beyond is found by the next.
constexpr int events_max = 32;
/// No sleep is longer; whoever sleeps looks again anyway.
constexpr hours longest{1};

int watch(int set, int how, int descriptor, uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.fd = descriptor;
  return epoll_ctl(set, how, descriptor, &event);
}

} // namespace

descriptor_watch::descriptor_watch()
    : set_{epoll_create1(EPOLL_CLOEXEC)}, waker_{eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)} {
  if (set_ >= 0 && waker_ >= 0 && watch(set_, EPOLL_CTL_ADD, waker_, EPOLLIN) == 0) return;
  const auto reason = errno;
  close(set_);
  close(waker_);
  errno = reason;
  throw_errno("a set of descriptors to watch");
}

descriptor_watch::~descriptor_watch() {
  close(set_);
  close(waker_);
}

void descriptor_watch::add(int descriptor, std::weak_ptr<listener> ready) {
  const std::lock_guard lock{mutex_};
  if (watch(set_, EPOLL_CTL_ADD, descriptor, EPOLLIN) != 0) throw_errno("epoll_ctl");
  ready_[descriptor] = std::move(ready);
  count_.store(ready_.size(), std::memory_order_relaxed);
}

void descriptor_watch::want_room(int descriptor, bool wanted) {
  watch(set_, EPOLL_CTL_MOD, descriptor, wanted ? EPOLLIN | EPOLLOUT : EPOLLIN);
}

void descriptor_watch::remove(int descriptor) {
  const std::lock_guard lock{mutex_};
  if (ready_.erase(descriptor) == 0) return;
  epoll_ctl(set_, EPOLL_CTL_DEL, descriptor, nullptr);
  count_.store(ready_.size(), std::memory_order_relaxed);
}

// The waker stays as it is: who has rung may have taken the waiter's flag, and the sleep that this
// is to end is still to come.
bool descriptor_watch::look() { return !empty() && serve(nanoseconds{0}); }

void descriptor_watch::sleep(steady_clock::time_point until) {
  const auto now = steady_clock::now();
  serve(until <= now            ? nanoseconds{0}
        : until - now > longest ? nanoseconds{longest}
                                : nanoseconds{until - now});
  uint64_t times = 0;
  [[maybe_unused]] const auto taken = read(waker_, &times, sizeof times);
}

bool descriptor_watch::serve(nanoseconds timeout) {
  std::array<epoll_event, events_max> events;
  timespec limit{};
  limit.tv_sec = static_cast<time_t>(timeout / seconds{1});
  limit.tv_nsec = static_cast<long>((timeout % seconds{1}).count());
  auto found = epoll_pwait2(set_, events.data(), events_max, &limit, nullptr);
  if (found < 0 && errno != EINTR) // before Linux 5.11, or forbidden: whole milliseconds
    found = epoll_wait(set_, events.data(), events_max,
                       static_cast<int>(ceil<milliseconds>(timeout).count()));
  bool rung = false;
  for (int i = 0; i < found; ++i)
    if (const auto descriptor = events[static_cast<size_t>(i)].data.fd; descriptor != waker_) {
      ring(descriptor);
      rung = true;
    }
  return rung;
}

void descriptor_watch::ring(int descriptor) {
  std::shared_ptr<listener> who;
  {
    const std::lock_guard lock{mutex_};
    const auto found = ready_.find(descriptor);
    if (found != ready_.end()) who = found->second.lock();
  }
  if (who) who->ring();
}

} // namespace lamella::gpu
