#include "actors/worker/control_scribe.hpp"

#include <caf/io/middleman.hpp>
#include <caf/io/network/default_multiplexer.hpp>
#include <caf/io/network/stream_impl.hpp>
#include <caf/openssl/session.hpp>

#include <stdexcept>

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

class tls_scribe final : public caf::io::scribe {
public:
  tls_scribe(caf::io::network::default_multiplexer& loop, native_socket fd,
             caf::openssl::session_ptr session)
      : scribe{caf::io::network::conn_hdl_from_socket(fd)}, stream_{loop, fd, std::move(session)} {}

  void configure_read(caf::io::receive_policy::config config) override {
    stream_.configure_read(config);
    if (std::exchange(launched_, true)) return;
    stream_.start(this);
    // Whoever has the handshake's next word to say is asked for it.
    stream_.force_empty_write(this);
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
  bool launched_ = false;
  caf::io::network::stream_impl<tls_policy> stream_;
};

} // namespace

caf::io::scribe_ptr make_scribe(caf::actor_system& system, net::owned_descriptor socket,
                                control_side side, bool tls) {
  auto& loop = system.middleman().backend();
  if (!tls) return loop.new_scribe(socket.release());
  auto session = caf::openssl::make_session(system, socket.get(), side == control_side::accepted);
  if (!session) throw std::runtime_error{"cannot start the TLS session"};
  return caf::make_counted<tls_scribe>(dynamic_cast<caf::io::network::default_multiplexer&>(loop),
                                       socket.release(), std::move(session));
}

} // namespace lamella::actors
