#include "cli/signals.hpp"

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <stdexcept>
#include <utility>

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

namespace lamella::cli {

signal_watch::signal_watch() {
  sigset_t set;
  sigemptyset(&set);
  for (int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&set, signal);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
  signals_ = signalfd(-1, &set, SFD_CLOEXEC);
  end_ = eventfd(0, EFD_CLOEXEC);
  if (signals_ < 0 || end_ < 0)
    throw std::runtime_error{"cannot create a signal or event descriptor"};
}

signal_watch::~signal_watch() {
  close(signals_);
  close(end_);
}

signal_watch::event signal_watch::wait() {
  if (std::exchange(terminate_, false)) return event::terminate;
  if (std::exchange(hang_up_, false)) return event::hang_up;
  pollfd fds[2] = {{signals_, POLLIN, 0}, {end_, POLLIN, 0}};
  while (poll(fds, 2, -1) < 0) {
  }
  if (fds[1].revents != 0) {
    uint64_t count = 0;
    [[maybe_unused]] auto got = read(end_, &count, sizeof count);
    return event::ended;
  }
  signalfd_siginfo info{};
  [[maybe_unused]] auto got = read(signals_, &info, sizeof info);
  return info.ssi_signo == SIGHUP ? event::hang_up : event::terminate;
}

void signal_watch::end() {
  const uint64_t one = 1;
  [[maybe_unused]] auto put = write(end_, &one, sizeof one);
}

bool signal_watch::terminate_asked() { return terminate_within(std::chrono::milliseconds{0}); }

bool signal_watch::terminate_within(std::chrono::milliseconds time) {
  const auto until = std::chrono::steady_clock::now() + time;
  while (!terminate_) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
    pollfd fd{signals_, POLLIN, 0};
    if (poll(&fd, 1, static_cast<int>(std::max<int64_t>(0, left.count()))) <= 0) break;
    signalfd_siginfo info{};
    [[maybe_unused]] auto got = read(signals_, &info, sizeof info);
    (info.ssi_signo == SIGHUP ? hang_up_ : terminate_) = true;
  }
  return terminate_;
}

bool signal_watch::terminate_asked_again() {
  pollfd fd{signals_, POLLIN, 0};
  while (!again_ && poll(&fd, 1, 0) > 0) {
    signalfd_siginfo info{};
    [[maybe_unused]] auto got = read(signals_, &info, sizeof info);
    if (info.ssi_signo == SIGHUP)
      hang_up_ = true;
    else
      again_ = std::exchange(terminate_, true);
  }
  return again_;
}

} // namespace lamella::cli
