/// A TCP client that sends and reads raw bytes, for tests that must not be helped by a library.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace lamella::test {

/// Blocking, with a deadline on every read and write (the test fails by exception, it never hangs).
class raw_client {
public:
  explicit raw_client(uint16_t port, int receive_buffer = 0) {
    fd_ = ::socket(AF_INET, SOCK_STREAM, 0);
    if (receive_buffer)
      ::setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
    const timeval time{300, 0}; // only a broken server is waited for so long
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time);
    ::setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &time, sizeof time);
    const int on = 1;
    ::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
      throw std::runtime_error("raw_client: connection refused");
  }
  virtual ~raw_client() { close(); }
  raw_client(const raw_client&) = delete;
  raw_client& operator=(const raw_client&) = delete;

  /// Sends all of it; false when the other side no longer takes it.
  virtual bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t count = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (count < 0 && errno == EINTR) continue; // with a deadline also after SIGCONT
      if (count <= 0) return false;
      bytes.remove_prefix(static_cast<size_t>(count));
    }
    return true;
  }

  /// One read; empty at the end of the connection (proper or not).
  virtual std::string read_some() {
    char buffer[16384];
    ssize_t count = 0;
    do count = ::recv(fd_, buffer, sizeof buffer, 0);
    while (count < 0 && errno == EINTR);
    if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
      throw std::runtime_error("raw_client: nothing came before the deadline; so far: " + seen_);
    if (count <= 0) {
      reset_ = count < 0;
      return {};
    }
    return {buffer, static_cast<size_t>(count)};
  }

  /// Reads until the text has come (it stays in the result) or the connection ends.
  std::string read_until(std::string_view text) {
    for (size_t from = 0;;) {
      const size_t at = seen_.find(text, from);
      from = seen_.size() < text.size() ? 0 : seen_.size() - text.size() + 1;
      if (at != std::string::npos) {
        std::string result = seen_.substr(0, at + text.size());
        seen_.erase(0, result.size());
        return result;
      }
      const std::string more = read_some();
      if (more.empty()) return std::exchange(seen_, {});
      seen_ += more;
    }
  }

  /// So many bytes, or fewer where the connection ends.
  std::string read_bytes(size_t length) {
    while (seen_.size() < length) {
      const std::string more = read_some();
      if (more.empty()) break;
      seen_ += more;
    }
    std::string result = seen_.substr(0, std::min(length, seen_.size()));
    seen_.erase(0, result.size());
    return result;
  }

  /// Everything up to the end of the connection.
  std::string read_all() {
    for (;;) {
      const std::string more = read_some();
      if (more.empty()) return std::exchange(seen_, {});
      seen_ += more;
    }
  }

  /// Head and body (by its content-length) of one answer.
  std::string read_answer() {
    std::string answer = read_until("\r\n\r\n");
    const size_t field = answer.find("content-length: ");
    if (field == std::string::npos) return answer;
    return answer + read_bytes(std::stoul(answer.substr(field + 16)));
  }

  /// What is left of a body in chunks, put together: a chunk may end within any word. Reads to its
  /// last chunk or to the end of the connection.
  std::string read_chunks() {
    std::string body;
    for (;;) {
      const std::string size = read_until("\r\n");
      if (size.empty()) return body;
      const size_t length = std::stoul(size, nullptr, 16);
      body += read_bytes(length);
      read_bytes(2); // the end of its line
      if (length == 0) return body;
    }
  }

  /// Ends the sending side only.
  void half_close() { ::shutdown(fd_, SHUT_WR); }

  void close() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }

  /// Ends the connection with RST.
  void reset() {
    const linger now{1, 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    close();
  }

  bool was_reset() const { return reset_; }

protected:
  int fd() const { return fd_; }

private:
  int fd_ = -1;
  bool reset_ = false;
  std::string seen_;
};

} // namespace lamella::test
