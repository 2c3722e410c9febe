#include "cli/bench/parts/bench_channel_wire.hpp"

#include "base/errno_text.hpp"
#include "gpu/ring/poll_timeout.hpp"
#include "net/data_plane/data_plane.hpp"
#include "net/link/in_process_channel.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <thread>
#include <utility>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace lamella::cli {

namespace {

using clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr auto limit = 60s;
constexpr uint32_t slots = wire_slots;
const net::link_key key{1, 0, 0, 0};

/// A link, waited for as an engine waits: polling while that pays, then asleep on the bell.
class link_wire final : public wire_end {
public:
  link_wire(net::link_end link, std::shared_ptr<gpu::doorbell> bell)
      : link_{std::move(link)}, bell_{std::move(bell)} {}

  void send(std::span<const std::byte> message) override {
    drop();
    std::byte* place = nullptr;
    until([&] { return (place = gpu::reserve(*link_.to, message.size())) != nullptr; });
    std::memcpy(place, message.data(), message.size());
    link_.to->commit({key.epoch, sent_++, 0, 0, gpu::frame_kind::q, 0});
  }

  std::span<const std::byte> receive(std::span<std::byte> room) override {
    drop();
    const gpu::frame* f = nullptr;
    until([&] {
      f = link_.from->receive({key.epoch, taken_, 0, 0, gpu::frame_kind::q, 0}, room.size());
      return f != nullptr;
    });
    held_ = true;
    ++taken_;
    return f->payload;
  }

  /// The other side ends the link when it has everything.
  void wait_for_end() {
    drop();
    until([&] { return link_.to->state() != gpu::channel_state::open; });
  }

private:
  /// What was received last has been read by now.
  void drop() {
    if (std::exchange(held_, false)) link_.from->release();
  }

  template <class Ready> void until(const Ready& ready) {
    if (ready()) return;
    const auto end = clock::now() + limit;
    while (true) {
      while (timeout_.poll()) {
        bell_->look();
        if (ready()) return timeout_.rewarded();
        timeout_.pause();
      }
      const auto seen = bell_->arm();
      if (ready()) {
        bell_->disarm();
        return timeout_.rewarded();
      }
      const std::chrono::microseconds longest =
          bell_->silent.load() != 0 ? gpu::doorbell::nap : std::chrono::microseconds{100ms};
      bell_->wait(seen, std::min(end, clock::now() + longest));
      if (ready()) return timeout_.rewarded();
      if (clock::now() > end) throw std::runtime_error("timed out: no message for one minute");
    }
  }

  net::link_end link_;
  std::shared_ptr<gpu::doorbell> bell_;
  gpu::poll_timeout timeout_;
  uint64_t sent_ = 0, taken_ = 0;
  bool held_ = false;
};

/// A connected stream socket, used as every program does.
class socket_wire final : public wire_end {
public:
  explicit socket_wire(int socket) : socket_{socket} {
    const timeval time{60, 0};
    setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time);
    setsockopt(socket_, SOL_SOCKET, SO_SNDTIMEO, &time, sizeof time);
    const int on = 1;
    setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on); // no effect on unix sockets
  }
  ~socket_wire() override { close(socket_); }
  socket_wire(const socket_wire&) = delete;
  socket_wire& operator=(const socket_wire&) = delete;

  void send(std::span<const std::byte> message) override {
    while (!message.empty()) {
      const auto n = ::send(socket_, message.data(), message.size(), MSG_NOSIGNAL);
      if (n <= 0) throw std::runtime_error("plain send: " + errno_text());
      message = message.subspan(static_cast<size_t>(n));
    }
  }
  std::span<const std::byte> receive(std::span<std::byte> room) override {
    for (size_t got = 0; got < room.size();) {
      const auto n = recv(socket_, room.data() + got, room.size() - got, 0);
      if (n <= 0) throw std::runtime_error("plain recv: " + errno_text());
      got += static_cast<size_t>(n);
    }
    return room;
  }

private:
  int socket_;
};

/// A process that runs a function and ends with it.
class child_process {
public:
  explicit child_process(const std::function<void()>& body) {
    std::fflush(stdout);
    id_ = fork();
    if (id_ < 0) throw std::runtime_error("fork: " + errno_text());
    if (id_ != 0) return;
    try {
      body();
      _exit(0);
    } catch (const std::exception& e) {
      std::fprintf(stderr, "peer process: %s\n", e.what());
    }
    _exit(1);
  }
  ~child_process() {
    if (id_ <= 0) return;
    kill(id_, SIGKILL);
    waitpid(id_, nullptr, 0);
  }
  child_process(const child_process&) = delete;
  child_process& operator=(const child_process&) = delete;

  void join() {
    int status = 0;
    waitpid(std::exchange(id_, -1), &status, 0);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
      throw std::runtime_error("the peer process failed");
  }

private:
  pid_t id_ = -1;
};

using body = std::function<void(wire_end&)>;

/// Keeps this thread, and those it starts, to one half of the processors it had, until the end of
/// the scope. Otherwise a scheduler may let both ends take turns on one of them for as long as it
/// likes, and what is measured is the scheduler.
class processor_half {
public:
  explicit processor_half(bool second) {
    if (sched_getaffinity(0, sizeof before_, &before_) != 0) return;
    const int count = CPU_COUNT(&before_);
    cpu_set_t mine;
    CPU_ZERO(&mine);
    for (int i = 0, seen = 0; i < CPU_SETSIZE; ++i)
      if (CPU_ISSET(i, &before_) && (seen++ >= count / 2) == second) CPU_SET(i, &mine);
    changed_ = count > 1 && sched_setaffinity(0, sizeof mine, &mine) == 0;
  }
  ~processor_half() {
    if (changed_) sched_setaffinity(0, sizeof before_, &before_);
  }
  processor_half(const processor_half&) = delete;
  processor_half& operator=(const processor_half&) = delete;

private:
  cpu_set_t before_{};
  bool changed_ = false;
};

std::array<int, 2> connected_tcp_sockets() {
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int near = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in where{};
  where.sin_family = AF_INET;
  where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* address = reinterpret_cast<sockaddr*>(&where);
  socklen_t length = sizeof where;
  if (bind(listener, address, length) != 0 || listen(listener, 1) != 0
      || getsockname(listener, address, &length) != 0 || connect(near, address, length) != 0)
    throw std::runtime_error("plain_tcp: " + errno_text());
  const int far = accept(listener, nullptr, nullptr);
  close(listener);
  return {near, far};
}

void run_over_sockets(std::array<int, 2> sockets, const body& near, const body& far) {
  child_process other{[&] {
    const processor_half half{true};
    close(sockets[0]);
    socket_wire wire{sockets[1]};
    far(wire);
  }};
  close(sockets[1]);
  {
    const processor_half half{false};
    socket_wire wire{sockets[0]};
    near(wire);
  }
  other.join();
}

net::data_plane_options plane_options(const std::string& tier, const std::string& folder,
                                      const char* name) {
  net::data_plane_options o;
  if (tier == "shm") o.unix_path = folder + "/" + name;
  if (tier == "tcp" || tier == "verbs_staged") o.listen = "127.0.0.1:0";
  o.secret = folder + ", a new folder that only we know";
  o.transport = tier;
  o.bell = std::make_shared<gpu::doorbell>();
  o.bell->attend();
  o.on_event = [](const net::link_event& e) {
    if (e.what == net::link_event::kind::refused)
      std::fprintf(stderr, "refused: %s\n", e.text.c_str());
  };
  return o;
}

void run_in_process(const net::link_terms& terms, const body& near, const body& far) {
  gpu::ring_terms rings;
  rings.slots = terms.slots;
  rings.slot_bytes = gpu::slot_room(terms.slot_bytes);
  rings.epoch = key.epoch;
  const auto here = std::make_shared<gpu::doorbell>(), there = std::make_shared<gpu::doorbell>();
  const auto forth = net::make_in_process_channel(rings, {}, here, there);
  const auto back = net::make_in_process_channel(rings, {}, there, here);
  std::string failed;
  std::thread other{[&] {
    const processor_half half{true};
    try {
      link_wire wire{{back.to, forth.from}, there};
      far(wire);
    } catch (const std::exception& e) {
      failed = e.what();
      back.to->end(gpu::channel_state::aborted);
    }
  }};
  try {
    const processor_half half{false};
    link_wire wire{{forth.to, back.from}, here};
    near(wire);
  } catch (...) {
    forth.to->end(gpu::channel_state::aborted);
    back.from->end(gpu::channel_state::aborted);
    other.join();
    throw;
  }
  other.join();
  if (!failed.empty()) throw std::runtime_error(failed);
}

void run_over_link(const std::string& tier, const net::link_terms& terms, const body& near,
                   const body& far) {
  std::string pattern = (std::filesystem::temp_directory_path() / "lamella-bench-XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp(): " + errno_text());
  struct folder {
    std::string path;
    ~folder() {
      std::error_code ignored;
      std::filesystem::remove_all(path, ignored);
    }
  } at{pattern};
  int ends[2];
  if (pipe(ends) != 0) throw std::runtime_error("pipe(): " + errno_text());
  child_process other{[&] {
    const processor_half half{true};
    auto options = plane_options(tier, at.path, "far");
    const auto bell = options.bell;
    net::data_plane plane{std::move(options)};
    link_wire wire{plane.accept(key, terms, limit), bell};
    const auto& address = plane.address();
    if (write(ends[1], address.data(), address.size()) < 0)
      throw std::runtime_error("write(): " + errno_text());
    close(ends[1]);
    try {
      far(wire);
      wire.wait_for_end();
    } catch (const std::exception&
                 e) { // reported before the plane closes and the parent kills this process
      std::fprintf(stderr, "peer process: %s\n", e.what());
      throw;
    }
  }};
  close(ends[1]);
  std::string address;
  std::array<char, 1024> buffer;
  for (ssize_t n = 0; (n = read(ends[0], buffer.data(), buffer.size())) > 0;)
    address.append(buffer.data(), static_cast<size_t>(n));
  close(ends[0]);
  {
    const processor_half half{false};
    auto options = plane_options(tier, at.path, "near");
    const auto bell = options.bell;
    net::data_plane plane{std::move(options)};
    link_wire wire{plane.connect(address, key, terms, limit), bell};
    near(wire);
  }
  other.join();
}

} // namespace

void run_over_wire(const std::string& tier, size_t slot_bytes, const body& near, const body& far) {
  const net::link_terms terms{slots, slot_bytes, 0, {}};
  if (tier == "plain_tcp") return run_over_sockets(connected_tcp_sockets(), near, far);
  if (tier == "plain_unix") {
    std::array<int, 2> sockets{};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets.data()) != 0)
      throw std::runtime_error("plain_unix: " + errno_text());
    return run_over_sockets(sockets, near, far);
  }
  if (tier == "in_process") return run_in_process(terms, near, far);
  run_over_link(tier, terms, near, far);
}

} // namespace lamella::cli
