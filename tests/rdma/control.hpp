/// How a test tells its other end, in another process or guest, what to do: one order and its
/// answer at a time, over TCP.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace lamella::tests {

enum class order : uint8_t {
  address,    ///< → text
  accept,     ///< key, terms → number of the link
  end_epoch,  ///< epoch
  go,         ///<
  die,        ///< no answer: the process kills itself
  wait_for,   ///< kind, text → text
  round_trip, ///< → ns
  exchange,   ///< count → number of the task
  play,       ///< count, first → number of the task
  result,     ///< task → whether it has ended, value
  // Of a link, whose number comes first. All answer with the state of that end.
  reserve, ///< bytes → whether there was room
  commit,  ///< tag, payload → bytes sent so far
  peek,    ///< ahead → whether there is one, tag, payload
  release, ///<
  look,    ///< whether of the sender
  end,     ///< whether of the sender, state
};

/// First byte of an answer.
enum class outcome : uint8_t { done, too_long, failed };

/// Values one after the other, as they lie in memory: both ends are the same program.
class message {
public:
  template <class T> message& put(const T& x) {
    static_assert(std::is_trivially_copyable_v<T>);
    return put_bytes(std::as_bytes(std::span{&x, 1}));
  }
  message& put_text(std::string_view x) {
    put(x.size());
    return put_bytes(std::as_bytes(std::span{x}));
  }
  message& put_bytes(std::span<const std::byte> x) {
    bytes.insert(bytes.end(), x.begin(), x.end());
    return *this;
  }
  template <class T> T get() {
    T x;
    const auto from = get_bytes(sizeof x);
    std::memcpy(&x, from.data(), sizeof x);
    return x;
  }
  std::string get_text() {
    const auto from = get_bytes(get<size_t>());
    return {reinterpret_cast<const char*>(from.data()), from.size()};
  }
  std::span<const std::byte> get_bytes(size_t count) {
    if (count > bytes.size() - at_) throw std::runtime_error{"a control message is too short"};
    at_ += count;
    return std::span{bytes}.subspan(at_ - count, count);
  }
  std::span<const std::byte> rest() { return get_bytes(bytes.size() - at_); }

  std::vector<std::byte> bytes;

private:
  size_t at_ = 0;
};

/// A connected socket for whole messages. A wait takes two minutes at most, then throws
/// std::runtime_error, as does the end of the connection.
class control_socket {
public:
  explicit control_socket(int socket);
  ~control_socket();
  control_socket(const control_socket&) = delete;
  control_socket& operator=(const control_socket&) = delete;

  void send(const message& x);
  message receive();

private:
  int socket_;
};

/// A socket connected to, or listening on, the port on which other ends take orders. Throws
/// std::runtime_error.
int connect_to_agent(const std::string& ipv4_address);
int listen_as_agent();

} // namespace lamella::tests
