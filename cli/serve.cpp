#include "cli/serve.hpp"

#include "actors/node.hpp"
#include "cli/log.hpp"
#include "cli/terminal.hpp"

#include <spdlog/spdlog.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <thread>

#include <malloc.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

namespace lamella::cli {

namespace {

/// A file descriptor with an owner.
class descriptor {
public:
  explicit descriptor(int fd) : fd_{fd} {}
  ~descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  descriptor(const descriptor&) = delete;
  descriptor& operator=(const descriptor&) = delete;
  int get() const { return fd_; }

private:
  int fd_;
};

/// Signals come through a descriptor instead of handlers; threads started later inherit the mask.
int block_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&set, signal);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
  return signalfd(-1, &set, SFD_CLOEXEC);
}

enum class event { terminate, hang_up, ended };

event wait_for_event(const descriptor& signals, const descriptor& end) {
  pollfd fds[2] = {{signals.get(), POLLIN, 0}, {end.get(), POLLIN, 0}};
  while (poll(fds, 2, -1) < 0) {
  }
  if (fds[1].revents != 0) {
    uint64_t count = 0;
    [[maybe_unused]] auto got = read(end.get(), &count, sizeof count);
    return event::ended;
  }
  signalfd_siginfo info{};
  [[maybe_unused]] auto got = read(signals.get(), &info, sizeof info);
  return info.ssi_signo == SIGHUP ? event::hang_up : event::terminate;
}

void announce(const actors::node& n, const config::settings& options, double seconds) {
  const auto where = config::parse_address(options.http.listen);
  const auto host = where ? where->host : std::string{"127.0.0.1"};
  std::fprintf(stderr, "%s\nready in %.2f s\n", n.summary().c_str(), seconds);
  std::fprintf(stderr, "  API    http://%s:%u/v1\n  admin  http://127.0.0.1:%u/metrics\n",
               host.c_str(), n.http_port(), n.admin_port());
  std::fflush(stderr);
}

} // namespace

int serve(const config::settings& options) {
  // One heap: with one per thread, what requests leave behind is spread over all of them and never
  // goes back to the system. Nothing on the way of a token allocates enough to contend for it.
  mallopt(M_ARENA_MAX, 1);
  const descriptor signals{block_signals()};
  const descriptor end{eventfd(0, EFD_CLOEXEC)};
  std::atomic<bool> failed{false};
  configure_log(options.log);

  actors::node n{options};
  n.on_end([&](bool broken) {
    failed = broken;
    const uint64_t one = 1;
    [[maybe_unused]] auto put = write(end.get(), &one, sizeof one);
  });
  const auto began = std::chrono::steady_clock::now();
  {
    progress_bar bar;
    n.start([&](const std::string& phase, uint64_t done, uint64_t total) {
      bar.update(phase, done, total);
    });
  }
  announce(n, options,
           std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count());

  while (true) {
    const auto what = wait_for_event(signals, end);
    if (what == event::hang_up) {
      spdlog::warn("SIGHUP: reloading is not supported; restart to change the configuration");
      continue;
    }
    break;
  }
  if (failed) {
    spdlog::critical("the pipeline cannot be kept alive; exiting");
    n.drain(std::chrono::milliseconds{0});
    return 70;
  }
  spdlog::info("draining limit_seconds={}", options.shutdown.drain.count() / 1000);
  std::atomic<bool> over{false};
  std::thread second{[&] { // a second signal ends the patience
    while (!over)
      if (wait_for_event(signals, end) == event::terminate) n.hurry();
  }};
  const bool complete = n.drain(options.shutdown.drain);
  over = true;
  const uint64_t one = 1;
  [[maybe_unused]] auto put = write(end.get(), &one, sizeof one);
  second.join();
  spdlog::info("drained complete={}", complete);
  return complete ? 0 : 75;
}

} // namespace lamella::cli
