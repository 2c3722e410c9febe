#include "cli/log_writer.hpp"

#include "actors/shared/log_drops.hpp"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <condition_variable>
#include <csignal>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include <poll.h>
#include <unistd.h>

namespace lamella::cli {

namespace {

/// Between two tries at a descriptor that others made non-blocking.
constexpr int poll_ms = 1000;

/// Whole lines that a pipe takes in one piece, so that those of several processes do not mix; or
/// one longer line.
size_t piece_of(std::string_view lines) {
  if (lines.size() <= PIPE_BUF) return lines.size();
  const auto end = lines.rfind('\n', PIPE_BUF - 1);
  return (end != lines.npos ? end : std::min(lines.find('\n'), lines.size() - 1)) + 1;
}

/// The bytes that were written: all of them, or those before an error.
size_t write_all(int descriptor, std::string_view bytes) {
  size_t done = 0;
  while (done < bytes.size()) {
    const auto count = ::write(descriptor, bytes.data() + done, bytes.size() - done);
    if (count > 0) {
      done += static_cast<size_t>(count);
    } else if (errno == EAGAIN) {
      pollfd waits{descriptor, POLLOUT, 0};
      ::poll(&waits, 1, poll_ms);
    } else if (errno != EINTR) {
      break;
    }
  }
  return done;
}

} // namespace

struct log_writer::shared {
  const int descriptor;
  std::mutex mutex;
  std::condition_variable changed;
  std::string waiting;
  bool writing = false;
  bool ending = false;
  uint64_t dropped = 0;

  explicit shared(int to) : descriptor{to} {}

  void drop(size_t lines) { // with the mutex held
    dropped += lines;
    actors::log_lines_dropped += lines;
  }

  void run() {
    bool torn = false; // the last line was not written whole
    std::unique_lock lock{mutex};
    while (true) {
      changed.wait(lock, [&] { return ending || !waiting.empty(); });
      if (waiting.empty()) return;
      const auto lines = (torn ? "\n" : "") + std::exchange(waiting, {});
      writing = true;
      lock.unlock();
      size_t lost = 0;
      for (std::string_view rest = lines; !rest.empty();) {
        const auto piece = rest.substr(0, piece_of(rest));
        const auto done = write_all(descriptor, piece);
        torn = done < piece.size() && (done > 0 || torn);
        lost += static_cast<size_t>(
            std::count(piece.begin() + static_cast<ptrdiff_t>(done), piece.end(), '\n'));
        rest.remove_prefix(piece.size());
      }
      lock.lock();
      writing = false;
      if (lost > 0) drop(lost);
      changed.notify_all();
    }
  }
};

log_writer::log_writer(int descriptor) : shared_{std::make_shared<shared>(descriptor)} {
  // Signals are for threads that wait for them, and a reader that left is an error of write().
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread{[x = shared_] { x->run(); }}.detach();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

log_writer::~log_writer() {
  flush(std::chrono::seconds{1});
  const std::lock_guard lock{shared_->mutex};
  shared_->ending = true;
  shared_->waiting.clear();
  shared_->changed.notify_all();
}

bool log_writer::put(std::string_view line) {
  const std::lock_guard lock{shared_->mutex};
  if (shared_->waiting.size() + line.size() > room) {
    shared_->drop(1);
    return false;
  }
  shared_->waiting += line;
  shared_->changed.notify_all();
  return true;
}

bool log_writer::flush(std::chrono::milliseconds timeout) {
  std::unique_lock lock{shared_->mutex};
  return shared_->changed.wait_for(lock, timeout,
                                   [&] { return shared_->waiting.empty() && !shared_->writing; });
}

uint64_t log_writer::dropped() const {
  const std::lock_guard lock{shared_->mutex};
  return shared_->dropped;
}

} // namespace lamella::cli
