#include "base/mapped_file.hpp"

#include "base/file_error.hpp"

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <fcntl.h>
#include <mutex>
#include <string>
#include <sys/mman.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

namespace lamella {

namespace {

/// A mapping as the signal handler sees it. `end` is 0 while the slot is free.
struct watched {
  std::atomic<uintptr_t> begin{0};
  std::atomic<uintptr_t> end{0};
  std::atomic<bool> taken{false};
  std::atomic<bool> torn{false};
};

std::array<watched, 256> mappings;
struct sigaction previous_action;
uintptr_t page_bytes = 4096;

/// Runs inside a signal: nothing but atomics and system calls.
void on_bus_error(int signal, siginfo_t* info, void* context) {
  const int saved = errno;
  const auto address = reinterpret_cast<uintptr_t>(info->si_addr);
  for (watched& mapping : mappings) {
    const uintptr_t end = mapping.end.load(std::memory_order_acquire);
    if (end == 0 || address >= end || address < mapping.begin.load(std::memory_order_acquire))
      continue;
    mapping.torn.store(true, std::memory_order_release);
    void* page = reinterpret_cast<void*>(address & ~(page_bytes - 1));
    const void* filled =
        mmap(page, page_bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    errno = saved;
    if (filled != MAP_FAILED) return;
    break;
  }
  if (previous_action.sa_flags & SA_SIGINFO) {
    previous_action.sa_sigaction(signal, info, context);
  } else if (previous_action.sa_handler != SIG_DFL && previous_action.sa_handler != SIG_IGN) {
    previous_action.sa_handler(signal);
  } else {
    // Not ours and nobody else's: the instruction faults again and ends the process as usual.
    struct sigaction fallback {};
    fallback.sa_handler = SIG_DFL;
    sigaction(SIGBUS, &fallback, nullptr);
  }
  errno = saved;
}

void install_handler() {
  static std::once_flag once;
  std::call_once(once, [] {
    page_bytes = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
    struct sigaction action {};
    action.sa_sigaction = on_bus_error;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
    sigemptyset(&action.sa_mask);
    sigaction(SIGBUS, &action, &previous_action);
  });
}

size_t watch(uintptr_t begin, uintptr_t end) {
  for (size_t i = 0; i < mappings.size(); ++i) {
    bool free = false;
    if (!mappings[i].taken.compare_exchange_strong(free, true)) continue;
    mappings[i].torn.store(false);
    mappings[i].begin.store(begin, std::memory_order_release);
    mappings[i].end.store(end, std::memory_order_release);
    return i;
  }
  return mappings.size();
}

void unwatch(size_t slot) {
  mappings[slot].end.store(0, std::memory_order_release);
  mappings[slot].taken.store(false);
}

std::string reason(int error) { return std::generic_category().message(error); }

} // namespace

mapped_file::mapped_file(const std::filesystem::path& path) : path_(path) {
  std::error_code failed;
  const std::filesystem::path real = std::filesystem::canonical(path, failed);
  if (failed) throw file_error(path, {}, "path", failed.message());
  path_ = real;
  // O_NONBLOCK: a pipe in the place of the file must not hold us up before fstat sees it.
  descriptor_ = open(real.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
  if (descriptor_ < 0) throw file_error(path_, {}, "path", "cannot be opened: " + reason(errno));
  const auto refuse = [this](const std::string& why) {
    close(descriptor_);
    return file_error(path_, {}, "path", why);
  };
  struct stat info {};
  if (fstat(descriptor_, &info) != 0) throw refuse("cannot be examined: " + reason(errno));
  if (!S_ISREG(info.st_mode)) throw refuse("is not a regular file");
  if (info.st_size <= 0) throw refuse("is empty");
  const auto size = static_cast<size_t>(info.st_size);
  changed_ = info.st_mtim;
  install_handler();
  void* memory = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor_, 0);
  if (memory == MAP_FAILED) throw refuse("cannot be mapped: " + reason(errno));
  bytes_ = {static_cast<const std::byte*>(memory), size};
  const auto begin = reinterpret_cast<uintptr_t>(memory);
  slot_ = watch(begin, begin + (size + page_bytes - 1) / page_bytes * page_bytes);
  if (slot_ == mappings.size()) {
    munmap(memory, size);
    throw refuse("too many model files are open (" + std::to_string(mappings.size()) + ")");
  }
}

mapped_file::~mapped_file() {
  munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
  unwatch(slot_);
  close(descriptor_);
}

void mapped_file::check_intact() const {
  struct stat info {};
  if (mappings[slot_].torn.load(std::memory_order_acquire))
    throw file_error(path_, {}, "file",
                     "lost bytes while it was read (truncated, or a disk error)");
  if (fstat(descriptor_, &info) != 0)
    throw file_error(path_, {}, "file", "cannot be reexamined: " + reason(errno));
  if (static_cast<size_t>(info.st_size) != bytes_.size())
    throw file_error(path_, {}, "file",
                     "changed its length from " + std::to_string(bytes_.size()) + " to "
                         + std::to_string(info.st_size) + " bytes while it was read");
  if (info.st_mtim.tv_sec != changed_.tv_sec || info.st_mtim.tv_nsec != changed_.tv_nsec)
    throw file_error(path_, {}, "file", "was written to while it was read");
}

void mapped_file::release_pages() const {
  madvise(const_cast<std::byte*>(bytes_.data()), bytes_.size(), MADV_DONTNEED);
}

} // namespace lamella
