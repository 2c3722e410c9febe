#include "tests/rdma/control.hpp"

#include <cerrno>
#include <chrono>
#include <thread>

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

namespace lamella::tests {

namespace {

constexpr uint16_t port = 7700;
constexpr size_t longest = size_t{64} << 20;
constexpr std::chrono::seconds connect_timeout{60};

[[noreturn]] void fail(const std::string& what) {
  throw std::runtime_error{what + ": " + std::strerror(errno)};
}

} // namespace

control_socket::control_socket(int socket) : socket_{socket} {
  const timeval limit{120, 0};
  setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  setsockopt(socket_, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  const int on = 1;
  setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

control_socket::~control_socket() { close(socket_); }

void control_socket::send(const message& x) {
  message framed;
  framed.put(x.bytes.size()).put_bytes(x.bytes);
  for (std::span<const std::byte> left = framed.bytes; !left.empty();) {
    const auto sent = ::send(socket_, left.data(), left.size(), MSG_NOSIGNAL);
    if (sent <= 0) fail("control: send");
    left = left.subspan(static_cast<size_t>(sent));
  }
}

message control_socket::receive() {
  const auto fill = [&](void* to, size_t bytes) {
    errno = 0;
    if (bytes > 0 && recv(socket_, to, bytes, MSG_WAITALL) != static_cast<ssize_t>(bytes))
      fail("control: receive");
  };
  size_t bytes = 0;
  fill(&bytes, sizeof bytes);
  if (bytes > longest) throw std::runtime_error{"control: a message of nonsense"};
  message x;
  x.bytes.resize(bytes);
  fill(x.bytes.data(), bytes);
  return x;
}

int connect_to_agent(const std::string& ipv4_address) {
  sockaddr_in where{};
  where.sin_family = AF_INET;
  where.sin_port = htons(port);
  if (inet_pton(AF_INET, ipv4_address.c_str(), &where.sin_addr) != 1)
    throw std::runtime_error{"not an address: " + ipv4_address};
  const auto until = std::chrono::steady_clock::now() + connect_timeout;
  while (true) {
    const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(socket, reinterpret_cast<const sockaddr*>(&where), sizeof where) == 0)
      return socket;
    close(socket);
    // Its guest may still start.
    if (std::chrono::steady_clock::now() > until) fail("no agent at " + ipv4_address);
    std::this_thread::yield();
  }
}

int listen_as_agent() {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in where{};
  where.sin_family = AF_INET;
  where.sin_port = htons(port);
  const int on = 1;
  setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  constexpr int waiting_max = 16;
  if (bind(socket, reinterpret_cast<const sockaddr*>(&where), sizeof where) != 0
      || listen(socket, waiting_max) != 0)
    fail("the agent's port");
  return socket;
}

} // namespace lamella::tests
