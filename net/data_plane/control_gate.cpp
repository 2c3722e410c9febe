#include "net/data_plane/control_gate.hpp"
#include "base/line_limit.hpp"

#include "net/data_plane/handshake.hpp"
#include "net/http/time_limit.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/connect.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

#include <algorithm>
#include <array>
#include <map>
#include <system_error>
#include <thread>

#include <fcntl.h>

namespace lamella::net {

namespace asio = boost::asio;
using asio::use_awaitable;
using boost::system::error_code;
using tcp_socket = asio::ip::tcp::socket;
using clock = std::chrono::steady_clock;

namespace {

constexpr uint32_t gate_magic = 0x4c4d4754;
constexpr uint16_t gate_version = 1;
/// Between two tries to accept when the process is out of descriptors.
constexpr std::chrono::milliseconds accept_pause{100};

/// The first message of each side.
struct greeting {
  uint32_t magic = gate_magic;
  uint16_t version = gate_version;
  uint16_t tls = 0;
  nonce mine{};
};
static_assert(sizeof(greeting) == 40);

enum class gate_answer : uint32_t { yes, denied, refused };

struct gate_verdict {
  uint32_t answer = 0; ///< gate_answer
  proof_code proof{};  ///< of the gate, where the answer is yes
  std::array<char, 156> text{};
};
static_assert(sizeof(gate_verdict) == 192);

template <class T> std::string_view text_of_bytes(const T& x) {
  return {reinterpret_cast<const char*>(&x), sizeof x};
}

/// Both greetings are proved, so neither can be exchanged on the way.
proof_code prove_gate(const shared_secret& secret, std::string_view side, const greeting& comer,
                      const greeting& gate) {
  const auto proof =
      secret.prove({"lamella-gate-v1", side, text_of_bytes(comer), text_of_bytes(gate)});
  proof_code result;
  std::copy_n(reinterpret_cast<const std::byte*>(proof.data()), result.size(), result.begin());
  return result;
}

bool knows(const shared_secret& secret, const proof_code& proof, std::string_view side,
           const greeting& comer, const greeting& gate) {
  return secret.accepts(text_of_bytes(proof),
                        {"lamella-gate-v1", side, text_of_bytes(comer), text_of_bytes(gate)});
}

const char* word_of(bool tls) { return tls ? "mutual TLS" : "no TLS"; }

gate_pass pass_of(tcp_socket& socket) {
  gate_pass pass;
  pass.here = socket.local_endpoint().address().to_string();
  pass.there = socket.remote_endpoint().address().to_string();
  pass.socket = owned_descriptor{socket.release()};
  const int flags = fcntl(pass.socket.get(), F_GETFL);
  fcntl(pass.socket.get(), F_SETFL, flags | O_NONBLOCK);
  fcntl(pass.socket.get(), F_SETFD, FD_CLOEXEC);
  return pass;
}

} // namespace

struct control_gate::impl {
  explicit impl(gate_options o) : options{std::move(o)} {
    asio::ip::tcp::resolver resolver{io};
    const auto found = resolver.resolve(options.host, std::to_string(options.port));
    const asio::ip::tcp::endpoint where = *found.begin();
    acceptor.open(where.protocol());
    acceptor.set_option(asio::socket_base::reuse_address{true});
    fcntl(acceptor.native_handle(), F_SETFD, FD_CLOEXEC);
    acceptor.bind(where);
    acceptor.listen();
  }

  asio::awaitable<void> accept() {
    while (true) {
      error_code ec;
      auto socket = std::make_shared<tcp_socket>(io);
      co_await acceptor.async_accept(*socket, asio::redirect_error(use_awaitable, ec));
      if (ec) {
        asio::steady_timer pause{io, accept_pause};
        co_await pause.async_wait(use_awaitable);
        continue;
      }
      if (strangers.size() >= options.strangers_max) {
        error_code ignored;
        strangers.begin()->second->close(ignored); // its conversation ends with an error
        strangers.erase(strangers.begin());
      }
      const auto number = ++arrivals;
      strangers.emplace(number, socket);
      asio::co_spawn(io, serve(number, std::move(socket)), asio::detached);
    }
  }

  asio::awaitable<void> serve(uint64_t number, std::shared_ptr<tcp_socket> socket) {
    std::string who = "?", failed;
    time_limit limit{socket, options.timeout};
    try {
      who = socket->remote_endpoint().address().to_string();
      fcntl(socket->native_handle(), F_SETFD, FD_CLOEXEC);
      socket->set_option(asio::ip::tcp::no_delay{true});
      greeting theirs;
      // Read on its own, so that a peer of another protocol is detected by its first word.
      co_await asio::async_read(*socket, asio::buffer(&theirs, sizeof theirs.magic), use_awaitable);
      if (theirs.magic != gate_magic) throw std::runtime_error{"not a Lamella worker"};
      const auto rest = bytes_of(theirs).subspan(sizeof theirs.magic);
      co_await asio::async_read(*socket, asio::buffer(rest.data(), rest.size()), use_awaitable);
      greeting ours;
      ours.tls = options.tls;
      ours.mine = make_nonce();
      co_await asio::async_write(*socket, asio::buffer(&ours, sizeof ours), use_awaitable);
      proof_code proof;
      co_await asio::async_read(*socket, asio::buffer(proof), use_awaitable);
      const gate_verdict v = judge(theirs, ours, proof);
      co_await asio::async_write(*socket, asio::buffer(&v, sizeof v), use_awaitable);
      if (v.answer != 0) throw std::runtime_error{v.text.data()};
      limit.cancel();
      if (strangers.erase(number) != 0) options.on_pass(pass_of(*socket));
      co_return;
    } catch (const boost::system::system_error& e) {
      failed = "it disconnected: " + e.code().message();
      if (!strangers.contains(number)) failed = "too many connections at the same time";
    } catch (const std::exception& e) {
      failed = e.what();
    }
    if (limit.over())
      failed = "it did not authenticate within " + std::to_string(options.timeout.count()) + " ms";
    strangers.erase(number);
    refuse(who, failed);
  }

  /// A peer without a valid secret learns only that its secret is wrong.
  gate_verdict judge(const greeting& theirs, const greeting& ours, const proof_code& proof) const {
    gate_verdict v;
    const auto say = [&v](gate_answer answer, const std::string& text) {
      v.answer = static_cast<uint32_t>(answer);
      std::copy_n(text.begin(), std::min(text.size(), v.text.size() - 1), v.text.begin());
      return v;
    };
    for (const auto& secret : options.secrets) {
      if (!knows(secret, proof, "worker", theirs, ours)) continue;
      if (theirs.version != ours.version)
        return say(gate_answer::refused, "gate version: the service has "
                                             + std::to_string(ours.version) + ", the worker "
                                             + std::to_string(theirs.version));
      if (theirs.tls != ours.tls)
        return say(gate_answer::refused, std::string{"control connections: the service has "}
                                             + word_of(ours.tls != 0) + ", the worker "
                                             + word_of(theirs.tls != 0));
      v.proof = prove_gate(secret, "service", theirs, ours);
      return v;
    }
    return say(gate_answer::denied, "wrong secret");
  }

  void refuse(const std::string& who, const std::string& why) {
    const auto line = lines.next(clock::now());
    if (line.unsaid > 0)
      options.on_refuse("others",
                        std::to_string(line.unsaid) + " more connections were refused meanwhile");
    if (line.say) options.on_refuse(who, why);
  }

  const gate_options options;
  asio::io_context io{1};
  asio::ip::tcp::acceptor acceptor{io};
  std::map<uint64_t, std::shared_ptr<tcp_socket>> strangers; ///< by order of arrival
  uint64_t arrivals = 0;
  line_limit lines;
  std::thread thread;
};

control_gate::control_gate(gate_options options) {
  try {
    impl_ = std::make_shared<impl>(std::move(options));
  } catch (const boost::system::system_error& e) {
    throw std::system_error{static_cast<std::error_code>(e.code())};
  }
  asio::co_spawn(impl_->io, impl_->accept(), asio::detached);
  impl_->thread = std::thread{[x = impl_.get()] { x->io.run(); }};
}

control_gate::~control_gate() {
  impl_->io.stop();
  impl_->thread.join();
}

uint16_t control_gate::port() const { return impl_->acceptor.local_endpoint().port(); }

namespace {

using endpoints = std::vector<asio::ip::tcp::endpoint>;

endpoints endpoints_of(const std::string& host, uint16_t port, std::chrono::milliseconds timeout,
                       host_lookup look_up) {
  endpoints result;
  try {
    for (const auto& address : addresses_of(host, timeout, std::move(look_up)))
      result.emplace_back(asio::ip::make_address(address), port);
  } catch (const std::exception& e) {
    throw gate_error{gate_error::reason::unreachable, e.what()};
  }
  return result;
}

asio::awaitable<void> knock(std::shared_ptr<tcp_socket> socket, const endpoints& found,
                            const shared_secret& secret, bool tls, bool& met) {
  using why = gate_error::reason;
  error_code ec;
  co_await asio::async_connect(*socket, found, asio::redirect_error(use_awaitable, ec));
  if (ec == asio::error::connection_refused)
    throw gate_error{why::unreachable, "no process listens on that port"};
  if (ec) throw boost::system::system_error{ec};
  met = true;
  socket->set_option(asio::ip::tcp::no_delay{true});
  greeting ours, theirs;
  ours.tls = tls;
  ours.mine = make_nonce();
  gate_verdict v;
  const auto check = [](const error_code& e) {
    if (e == asio::error::eof || e == asio::error::connection_reset
        || e == asio::error::broken_pipe)
      throw gate_error{why::unreachable,
                       "the peer closed the connection: is it a Lamella control port?"};
    if (e) throw boost::system::system_error{e};
  };
  co_await asio::async_write(*socket, asio::buffer(&ours, sizeof ours),
                             asio::redirect_error(use_awaitable, ec));
  check(ec);
  co_await asio::async_read(*socket, asio::buffer(&theirs, sizeof theirs),
                            asio::redirect_error(use_awaitable, ec));
  check(ec);
  if (theirs.magic != gate_magic)
    throw gate_error{why::unreachable, "the peer is not a Lamella control port"};
  const auto proof = prove_gate(secret, "worker", ours, theirs);
  co_await asio::async_write(*socket, asio::buffer(proof), asio::redirect_error(use_awaitable, ec));
  check(ec);
  co_await asio::async_read(*socket, asio::buffer(&v, sizeof v),
                            asio::redirect_error(use_awaitable, ec));
  check(ec);
  if (v.answer == static_cast<uint32_t>(gate_answer::yes)) {
    if (!knows(secret, v.proof, "service", ours, theirs))
      throw gate_error{why::denied, "the control process has another secret"};
    co_return;
  }
  std::string text{v.text.begin(), std::find(v.text.begin(), v.text.end(), '\0')};
  for (auto& c : text) // it goes to our log
    if (c < ' ' || c > '~') c = '?';
  throw gate_error{
      v.answer == static_cast<uint32_t>(gate_answer::denied) ? why::denied : why::refused, text};
}

} // namespace

gate_pass pass_gate(const std::string& host, uint16_t port, const shared_secret& secret, bool tls,
                    std::chrono::milliseconds timeout, host_lookup look_up) {
  const auto until = clock::now() + timeout;
  const auto found = endpoints_of(host, port, timeout, std::move(look_up));
  const auto left = std::max(std::chrono::ceil<std::chrono::milliseconds>(until - clock::now()),
                             std::chrono::milliseconds{1});
  asio::io_context io{1};
  auto socket = std::make_shared<tcp_socket>(io);
  time_limit limit{socket, left};
  std::exception_ptr failure;
  bool over = false, met = false;
  asio::co_spawn(io, knock(socket, found, secret, tls, met), [&](std::exception_ptr e) {
    failure = e;
    over = true;
    io.stop();
  });
  io.run_for(left + std::chrono::milliseconds{100});
  try {
    if (limit.over() || !over)
      throw gate_error{gate_error::reason::unreachable,
                       met ? "it accepts the connection but sends nothing" : "no answer"};
    if (failure) std::rethrow_exception(failure);
    return pass_of(*socket);
  } catch (const boost::system::system_error& e) {
    throw gate_error{gate_error::reason::unreachable, e.code().message()};
  }
}

} // namespace lamella::net
