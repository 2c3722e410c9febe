#include "cli/interrupt.hpp"

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <system_error>

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

namespace lamella::cli {

namespace {

sigset_t only_interrupt() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  return set;
}

int checked(int fd, const char* what) {
  if (fd < 0) throw std::system_error{errno, std::generic_category(), what};
  return fd;
}

} // namespace

interrupts::interrupts() {
  const auto set = only_interrupt();
  signals_ = checked(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK), "signalfd");
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

interrupts::~interrupts() {
  take(); // or it would end the process now
  close(signals_);
  const auto set = only_interrupt();
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

bool interrupts::take() {
  signalfd_siginfo info{};
  bool any = false;
  while (read(signals_, &info, sizeof info) == sizeof info) any = true;
  return any;
}

interrupt_watch::interrupt_watch(interrupts& from, std::function<void()> on_interrupt)
    : end_{checked(eventfd(0, EFD_CLOEXEC), "eventfd")} {
  thread_ = std::thread{[this, &from, call = std::move(on_interrupt)] {
    pollfd fds[2] = {{from.descriptor(), POLLIN, 0}, {end_, POLLIN, 0}};
    while (poll(fds, 2, -1) < 0 && errno == EINTR) {
    }
    if (fds[1].revents != 0 || !from.take()) return;
    {
      std::lock_guard lock{mutex_};
      interrupted_ = true;
    }
    wakes_.notify_all();
    call();
  }};
}

bool interrupt_watch::wait_for(std::chrono::milliseconds time) {
  std::unique_lock lock{mutex_};
  return wakes_.wait_for(lock, time, [&] { return interrupted(); });
}

interrupt_watch::~interrupt_watch() {
  const uint64_t one = 1;
  [[maybe_unused]] const auto put = write(end_, &one, sizeof one);
  thread_.join();
  close(end_);
}

} // namespace lamella::cli
