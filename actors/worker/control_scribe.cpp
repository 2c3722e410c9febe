#include "actors/worker/control_scribe.hpp"

#include <caf/io/middleman.hpp>
#include <caf/io/network/default_multiplexer.hpp>
#include <caf/io/network/stream_impl.hpp>
#include <caf/openssl/session.hpp>
#include <caf/policy/tcp.hpp>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <stdexcept>
#include <type_traits>
#include <utility>

namespace lamella::actors {

namespace {

using caf::io::network::native_socket;
using caf::io::network::rw_state;

/// How a stream of CAF reads and writes.
class tls_policy {
public:
  explicit tls_policy(caf::openssl::session_ptr session) : session_{std::move(session)} {}
  rw_state read_some(size_t& done, native_socket fd, void* to, size_t bytes) {
    return session_->read_some(done, fd, to, bytes);
  }
  rw_state write_some(size_t& done, native_socket fd, const void* from, size_t bytes) {
    return session_->write_some(done, fd, from, bytes);
  }
  bool must_read_more(native_socket fd, size_t threshold) {
    return session_->must_read_more(fd, threshold);
  }

private:
  caf::openssl::session_ptr session_;
};

/// A connection that ends where its peer sends what no control process and no worker sends.
template <class Policy> class bounded_scribe final : public caf::io::scribe {
public:
  template <class... Ts>
  explicit bounded_scribe(caf::io::network::default_multiplexer& loop, native_socket fd, Ts&&... xs)
      : scribe{caf::io::network::conn_hdl_from_socket(fd)}, stream_{loop, fd,
                                                                    std::forward<Ts>(xs)...} {}

  /// CAF asks for the bytes of a message by the length that its peer has told, before it has any.
  void configure_read(caf::io::receive_policy::config config) override {
    too_long_ = config.second > control_message_max ? config.second : 0;
    if (too_long_ > 0) config = caf::io::receive_policy::exactly(1);
    stream_.configure_read(config);
    if (std::exchange(launched_, true)) return;
    stream_.start(this);
    // Whoever has the next word of a TLS handshake to say is asked for it.
    if constexpr (std::is_same_v<Policy, tls_policy>) stream_.force_empty_write(this);
  }
  bool consume(caf::execution_unit* unit, const void* bytes, size_t size) override {
    if (too_long_ > 0)
      return end(unit, fmt::format("a message of {} bytes; the limit is {}", too_long_,
                                   control_message_max));
    if (nests_too_deeply({static_cast<const char*>(bytes), size}))
      return end(unit, fmt::format("a message in which more than {} messages are nested",
                                   control_nesting_max));
    return scribe::consume(unit, bytes, size);
  }
  void ack_writes(bool enable) override { stream_.ack_writes(enable); }
  std::vector<char>& wr_buf() override { return stream_.wr_buf(); }
  std::vector<char>& rd_buf() override { return stream_.rd_buf(); }
  void graceful_shutdown() override {
    stream_.graceful_shutdown();
    detach(&stream_.backend(), false);
  }
  void flush() override { stream_.flush(this); }
  std::string addr() const override {
    const auto found = caf::io::network::remote_addr_of_fd(stream_.fd());
    return found ? *found : std::string{};
  }
  uint16_t port() const override {
    const auto found = caf::io::network::remote_port_of_fd(stream_.fd());
    return found ? *found : 0;
  }
  void add_to_loop() override { stream_.activate(this); }
  void remove_from_loop() override { stream_.passivate(); }

private:
  bool end(caf::execution_unit* unit, const std::string& why) {
    spdlog::error("control connection closed address={} reason=\"it sent {}\"", addr(), why);
    io_failure(unit, caf::io::network::operation::read);
    return false;
  }

  bool launched_ = false;
  size_t too_long_ = 0; ///< bytes of the message that is announced, where they are too many
  caf::io::network::stream_impl<Policy> stream_;
};

/// CAF writes a list of types before each message: two bytes of zeros, its length, and its text.
constexpr size_t list_head = 3;
constexpr std::string_view list_mark = "@<>";

/// The text of the list that `bytes` begin with; empty if they begin with none, or with one of more
/// than 127 bytes.
std::string_view types_at(std::string_view bytes) {
  if (bytes.size() < list_head || bytes[0] != 0 || bytes[1] != 0) return {};
  const auto length = static_cast<unsigned char>(bytes[2]);
  if (length > 127 || bytes.size() < list_head + length) return {};
  const auto types = bytes.substr(list_head, length);
  return types.starts_with(list_mark) ? types : std::string_view{};
}

/// Whether there is a list, and none of its types can have a message within it. None of Lamella's
/// has (actors/protocol).
bool holds_no_message(std::string_view types) {
  if (types.empty()) return false;
  for (auto rest = types.substr(list_mark.size()); !rest.empty();) {
    if (rest.front() != '+') return false;
    rest.remove_prefix(1);
    const auto name = rest.substr(0, rest.find('+'));
    if (!name.starts_with("lamella::") && name != "@atom") return false;
    rest.remove_prefix(name.size());
  }
  return true;
}

} // namespace

bool nests_too_deeply(std::string_view payload) {
  // Its first byte says that nobody forwards it.
  if (payload.starts_with('\0') && holds_no_message(types_at(payload.substr(1)))) return false;
  size_t found = 0;
  for (size_t i = payload.find(list_mark); i != payload.npos;
       i = payload.find(list_mark, i + list_mark.size())) {
    if (++found > control_nesting_max) return true;
    // A value of a configuration contains others, without a list of types.
    const auto types = types_at(payload.substr(i - std::min(i, list_head)));
    if (types.find("+@config_value") != types.npos) return true;
  }
  return false;
}

caf::io::scribe_ptr make_scribe(caf::actor_system& system, net::owned_descriptor socket,
                                control_side side, bool tls) {
  auto& loop = dynamic_cast<caf::io::network::default_multiplexer&>(system.middleman().backend());
  if (!tls) return caf::make_counted<bounded_scribe<caf::policy::tcp>>(loop, socket.release());
  auto session = caf::openssl::make_session(system, socket.get(), side == control_side::accepted);
  if (!session) throw std::runtime_error{"cannot start the TLS session"};
  return caf::make_counted<bounded_scribe<tls_policy>>(loop, socket.release(), std::move(session));
}

} // namespace lamella::actors
