#include "net/http/http_server.hpp"

#include "net/http/http_session.hpp"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>

#include <netinet/tcp.h>
#include <sys/socket.h>

#include <thread>

namespace lamella::net {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using std::chrono::milliseconds;

namespace {

constexpr milliseconds accept_retry{100}; // out of descriptors, most likely
constexpr milliseconds accept_pace{2};    // between connections over the limits
constexpr milliseconds cut_time{2'000};   // closing sockets takes no longer
constexpr int unsent_bytes_max = 64 << 10;
constexpr int send_buffer_bytes = 256 << 10;

/// Small events leave at once, and a reader that stops ties up little kernel memory.
void tune(tcp::socket& socket) {
  error_code ignored;
  socket.set_option(tcp::no_delay(true), ignored);
  socket.set_option(asio::socket_base::send_buffer_size(send_buffer_bytes), ignored);
  ::setsockopt(socket.native_handle(), IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent_bytes_max,
               sizeof unsent_bytes_max);
  socket.non_blocking(true, ignored);
}

/// Accepts on one address until it is closed.
class door : public std::enable_shared_from_this<door> {
public:
  door(std::shared_ptr<http_core> core, http_listener listener)
      : core_(std::move(core)),
        listener_(std::make_shared<const http_listener>(std::move(listener))),
        identity_(listener_->identity), acceptor_(asio::make_strand(core_->io)),
        pause_(acceptor_.get_executor()) {}

  const http_listener& listener() const { return *listener_; }
  uint16_t port() const { return port_; }
  void set_identity(std::shared_ptr<const tls_identity> next) { identity_ = std::move(next); }

  void listen() {
    error_code ec;
    const std::string& name = listener_->address;
    const auto address = asio::ip::make_address(name == "localhost" ? "127.0.0.1" : name, ec);
    const auto refuse = [&](const std::string& why) {
      throw http_listen_error("cannot listen on " + name + ":" + std::to_string(listener_->port)
                              + " (" + listener_->name + "): " + why);
    };
    if (ec) refuse("the address is not a numeric IPv4 or IPv6 address");
    const tcp::endpoint endpoint(address, listener_->port);
    acceptor_.open(endpoint.protocol(), ec);
    if (!ec) acceptor_.set_option(tcp::acceptor::reuse_address(true), ec);
    if (!ec) acceptor_.bind(endpoint, ec);
    if (!ec) acceptor_.listen(asio::socket_base::max_listen_connections, ec);
    if (ec == asio::error::address_in_use)
      refuse("the port is in use; stop the other program or choose another port");
    if (ec == asio::error::access_denied) refuse("ports below 1024 need a privilege");
    if (ec) refuse(ec.message());
    port_ = acceptor_.local_endpoint().port();
  }

  void accept() {
    acceptor_.async_accept(asio::make_strand(core_->io),
                           [self = shared_from_this()](error_code ec, tcp::socket socket) {
                             self->accepted(ec, std::move(socket));
                           });
  }

  void shut() {
    asio::post(acceptor_.get_executor(), [self = shared_from_this()] { self->close(); });
  }

  /// Only while no thread runs the loop.
  void close() {
    error_code ignored;
    acceptor_.close(ignored);
    pause_.cancel();
  }

private:
  void accepted(error_code ec, tcp::socket socket) {
    if (!acceptor_.is_open()) return;
    if (ec) {
      accept_after(accept_retry);
      return;
    }
    core_->accepted.fetch_add(1, std::memory_order_relaxed);
    tune(socket);
    const auto identity = identity_.load();
    const auto session =
        std::make_shared<http_session>(core_, listener_, std::move(socket), identity.get());
    const auto verdict = core_->enter(session, listener_->name, session->address());
    if (verdict != http_core::verdict::drop)
      asio::post(session->executor(), [session, verdict] { session->start(verdict); });
    if (verdict == http_core::verdict::serve) {
      accept();
    } else {
      core_->turned_away.fetch_add(1, std::memory_order_relaxed);
      accept_after(accept_pace);
    }
  }

  void accept_after(milliseconds time) {
    pause_.expires_after(time);
    pause_.async_wait([self = shared_from_this()](error_code ec) {
      if (!ec && self->acceptor_.is_open()) self->accept();
    });
  }

  std::shared_ptr<http_core> core_;
  std::shared_ptr<const http_listener> listener_;
  std::atomic<std::shared_ptr<const tls_identity>> identity_;
  tcp::acceptor acceptor_;
  asio::steady_timer pause_;
  uint16_t port_ = 0;
};

} // namespace

struct http_server::impl {
  std::shared_ptr<http_core> core;
  unsigned thread_count = 1;
  std::vector<std::shared_ptr<door>> doors;
  std::vector<std::thread> threads;
  std::optional<asio::executor_work_guard<asio::io_context::executor_type>> work;

  door& door_of(std::string_view listener) const {
    for (const auto& each : doors)
      if (each->listener().name == listener) return *each;
    throw std::out_of_range("http_server: no listener called " + std::string(listener));
  }

  void run() {
    for (;;) {
      try {
        core->io.run();
        return;
      } catch (const std::exception&) {
        // A callback of a handler threw. Its connection is left to its deadlines; the others go on.
      }
    }
  }
};

http_server::http_server(settings s, std::vector<http_listener> listeners)
    : impl_(std::make_unique<impl>()) {
  if (s.threads < 1 || s.threads > 64)
    throw std::invalid_argument("http_server: threads must be 1 to 64, not "
                                + std::to_string(s.threads));
  impl_->thread_count = s.threads;
  impl_->core = std::make_shared<http_core>(std::move(s));
  for (http_listener& listener : listeners) {
    impl_->core->answers.push_back(listener.memory.answers);
    impl_->doors.push_back(std::make_shared<door>(impl_->core, std::move(listener)));
  }
}

http_server::~http_server() { stop(milliseconds(0)); }

void http_server::start() {
  for (const auto& each : impl_->doors) {
    try {
      each->listen();
    } catch (...) {
      for (const auto& opened : impl_->doors) opened->close();
      throw;
    }
  }
  impl_->work.emplace(impl_->core->io.get_executor());
  for (const auto& each : impl_->doors) each->accept();
  for (unsigned i = 0; i < impl_->thread_count; ++i)
    impl_->threads.emplace_back([this] { impl_->run(); });
}

uint16_t http_server::port(std::string_view listener) const {
  return impl_->door_of(listener).port();
}

void http_server::set_identity(std::string_view listener,
                               std::shared_ptr<const tls_identity> identity) {
  impl_->door_of(listener).set_identity(std::move(identity));
}

void http_server::stop_accepting() {
  impl_->core->draining = true;
  if (impl_->threads.empty()) return;
  for (const auto& each : impl_->doors) each->shut();
}

void http_server::stop_accepting(std::string_view listener) {
  impl_->core->draining = true;
  if (!impl_->threads.empty()) impl_->door_of(listener).shut();
}

void http_server::close_idle() {
  for (const auto& session : impl_->core->all_sessions()) session->close_if_idle();
}

bool http_server::wait_answers(std::string_view listener,
                               std::chrono::steady_clock::time_point deadline) {
  return impl_->core->wait_exchanges_of(listener, deadline);
}

bool http_server::stop(milliseconds deadline) {
  if (impl_->threads.empty()) return true;
  stop_accepting();
  close_idle();
  http_core& core = *impl_->core;
  const bool drained = core.wait_exchanges(std::chrono::steady_clock::now() + deadline);
  const auto last = std::chrono::steady_clock::now() + cut_time;
  const auto cut = [&] {
    for (const auto& session : core.all_sessions()) session->cut();
  };
  do {
    cut();
  } while (!core.wait_sessions(std::chrono::steady_clock::now() + milliseconds(20))
           && std::chrono::steady_clock::now() < last);
  impl_->work.reset();
  // First: a session that enters behind the next line finds it set and closes by itself.
  core.stopped = true;
  if (core.sessions() > 0) core.io.stop();
  for (std::thread& thread : impl_->threads) thread.join();
  impl_->threads.clear();
  cut();
  // What was posted in the meantime still wants to run: callbacks that must be called once.
  core.io.restart();
  impl_->run();
  return drained;
}

void http_server::set_answer_time(std::chrono::milliseconds limit) {
  impl_->core->answer_time = limit;
}

namespace {

http_counters counters_of(const http_core& core) {
  http_counters c;
  c.connections_accepted = core.accepted;
  c.connections_refused = core.turned_away;
  c.requests = core.requests;
  c.refused = core.refused;
  c.disconnects = core.disconnects;
  c.stalls = core.stalls;
  c.connections_open = core.sessions();
  c.exchanges_open = core.exchanges();
  for (const auto& of_listener : core.answers) {
    c.answers_refused += of_listener->refusals();
    c.answer_bytes += of_listener->held();
  }
  return c;
}

} // namespace

http_counters http_server::counters() const { return counters_of(*impl_->core); }

std::function<http_counters()> http_server::counter() const {
  return [core = impl_->core] { return counters_of(*core); };
}

} // namespace lamella::net
