#include "net/data_plane/data_plane_impl.hpp"

#include "net/link/tcp_link.hpp"
#include "net/rdma/direct_link.hpp"
#include "net/rdma/open_verbs.hpp"
#include "net/rdma/verbs_link.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>

#include <array>
#include <future>
#include <stdexcept>
#include <system_error>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace lamella::net {

using boost::system::error_code;
using gpu::channel_ended, gpu::channel_state;

namespace {

constexpr size_t secret_bytes_min = 16;
/// Of a payload that is not on a wire every so many frames are checked.
constexpr uint32_t sampled_crc = 64;

asio::ip::tcp::acceptor listen_on(asio::io_context& io, const std::string& address) {
  const auto where = parse_host_and_port(address);
  if (!where) throw std::invalid_argument{"not ADDRESS:PORT: " + address};
  asio::ip::tcp::resolver resolver{io};
  const auto found = *resolver.resolve(where->host, std::to_string(where->port)).begin();
  asio::ip::tcp::acceptor result{io};
  result.open(found.endpoint().protocol());
  result.set_option(asio::socket_base::reuse_address{true});
  result.bind(found.endpoint());
  result.listen();
  return result;
}

std::string random_name() {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string name;
  for (const auto b : make_nonce()) name += digits[std::to_integer<size_t>(b) % 16];
  return name;
}

} // namespace

data_plane::impl::impl(data_plane_options o)
    : options{std::move(o)}, bell{options.bell ? options.bell : std::make_shared<gpu::doorbell>()} {
  forced = transport_of(options.transport);
  if (!forced && options.transport != "auto")
    throw std::invalid_argument{
        "unknown transport " + options.transport
        + ": use auto, in_process, shm, tcp, verbs_staged, verbs_gpudirect, "
          "mlx5_proxy or fhbn"};
  if (options.secret.size() < secret_bytes_min)
    throw std::invalid_argument{"the data plane secret has " + std::to_string(options.secret.size())
                                + " bytes, at least " + std::to_string(secret_bytes_min)
                                + " are needed"};
  if (options.unix_path.find(';') != std::string::npos)
    throw std::invalid_argument{"the path of a data plane's socket must not contain ';'"};
  self.process = random_name();
  self.host = host_identity();
  if (!forced || over_verbs(*forced))
    verbs = options.adapter ? options.adapter : open_verbs(no_verbs);
  else
    no_verbs = "net.transport is " + options.transport;
  if (verbs) self.verbs = verbs->name();
}

void data_plane::impl::listen() {
  if (!options.unix_path.empty()) {
    using protocol = asio::local::stream_protocol;
    if (options.unix_path.size() >= sizeof(sockaddr_un{}.sun_path))
      throw std::invalid_argument{"the path of a data plane's socket is too long: "
                                  + options.unix_path};
    const protocol::endpoint where{options.unix_path};
    error_code nobody;
    protocol::socket probe{io};
    probe.connect(where, nobody);
    // A socket that nobody listens on is left over from a process that was killed.
    if (nobody == asio::error::connection_refused) unlink(options.unix_path.c_str());
    unix_acceptor.emplace(io);
    unix_acceptor->open();
    unix_acceptor->bind(where);
    chmod(options.unix_path.c_str(), S_IRUSR | S_IWUSR);
    unix_acceptor->listen();
    self.unix_path = options.unix_path;
  }
  if (!options.listen.empty()) {
    tcp_acceptor = listen_on(io, options.listen);
    const auto where = parse_host_and_port(options.listen);
    auto host = options.advertise.empty() ? where->host : options.advertise;
    if (host.find(':') != std::string::npos) host = "[" + host + "]";
    self.tcp = host + ":" + std::to_string(tcp_acceptor->local_endpoint().port());
  }
  address = to_string(self);
}

void data_plane::impl::start() {
  if (unix_acceptor) asio::co_spawn(io, accept_unix(), asio::detached);
  if (tcp_acceptor) asio::co_spawn(io, accept_tcp(), asio::detached);
  if (!bell->attended()) asio::co_spawn(io, attend(), asio::detached);
  thread = std::thread{[this] {
    const auto work = asio::make_work_guard(io);
    io.run();
  }};
}

/// Reads sockets for a waiter that does not.
asio::awaitable<void> data_plane::impl::attend() {
  asio::posix::stream_descriptor watched{io,
                                         fcntl(bell->watched().descriptor(), F_DUPFD_CLOEXEC, 0)};
  while (true) {
    co_await watched.async_wait(asio::posix::stream_descriptor::wait_read, asio::use_awaitable);
    bell->watched().look();
  }
}

void data_plane::impl::stop() {
  std::promise<void> ended;
  asio::post(io, [&] {
    stopping = true;
    const auto all = records;
    for (const auto& [s, r] : all) r->link->end(channel_state::closed);
    for (const auto& weak : tcp_links)
      if (const auto link = weak.lock()) link->close(channel_state::closed, "the process exits");
    const auto deadline = clock::now() + options.last_writes;
    for (const auto& weak : verbs_links)
      if (const auto link = weak.lock()) link->close_when_settled(deadline);
    ended.set_value();
  });
  ended.get_future().wait();
  // What ending has posted runs first; then everything still waiting is dropped with the context.
  asio::post(io, [this] { io.stop(); });
  thread.join();
  if (!self.unix_path.empty()) unlink(self.unix_path.c_str());
}

gpu::ring_terms data_plane::impl::ring_terms_of(const link_key& key,
                                                const link_terms& terms) const {
  gpu::ring_terms result;
  result.slots = terms.slots;
  result.slot_bytes = gpu::slot_room(terms.slot_bytes);
  result.epoch = key.epoch;
  result.first_counter = terms.first_counter;
  result.cluster = options.cluster;
  result.crc_every = sampled_crc;
  result.peer = terms.peer;
  return result;
}

link_end data_plane::impl::open(const side& s, const link_terms& terms,
                                std::chrono::milliseconds timeout,
                                const std::shared_ptr<gpu::device>& device,
                                std::optional<peer_address> to) {
  if (auto wrong = check(terms); !wrong.empty()) throw std::invalid_argument{wrong};
  if (!epochs.begin(s.key.epoch)) throw channel_ended{channel_state::revoked};
  auto r = std::make_shared<record>();
  r->terms = terms;
  r->link = std::make_shared<pending_link>(
      s.key, gpu::slot_room(terms.slot_bytes), bell,
      [weak = weak_from_this(), s, of = std::weak_ptr{r}](channel_state why) {
        const auto plane = weak.lock();
        const auto gone = of.lock();
        if (plane && gone)
          asio::post(plane->io, [x = plane.get(), s, gone, why] { x->on_link_end(s, gone, why); });
      });
  auto ends = r->link->ends();
  if (device && forced && in_device_memory(*forced)) {
    r->direct = make_direct(s, terms, device);
    ends = r->direct->ends(*device, r->link);
  }
  asio::post(io, [this, s, r, timeout, to = std::move(to)] {
    if (stopping) return r->link->end(channel_state::closed);
    if (epochs.ended(s.key.epoch)) return r->link->end(channel_state::revoked);
    const auto old = std::exchange(records[s], r);
    if (old) old->link->end(channel_state::closed);
    if (to)
      asio::co_spawn(io, connect(s, r, timeout, *to), asio::detached);
    else
      expect(s, r, timeout);
  });
  return ends;
}

std::shared_ptr<direct_link>
data_plane::impl::make_direct(const side& s, const link_terms& terms,
                              const std::shared_ptr<gpu::device>& device) const {
  std::optional<stream_posting> by_stream;
  if (*forced != link_transport::verbs_gpudirect) {
    if (!verbs) throw std::runtime_error{"RDMA verbs are not available: " + no_verbs};
    by_stream = stream_posting{verbs, *forced == link_transport::fhbn};
  }
  return std::make_shared<direct_link>(device, ring_terms_of(s.key, terms), terms.self, by_stream);
}

void data_plane::impl::expect(const side& s, const record_ptr& r,
                              std::chrono::milliseconds timeout) {
  r->limit = std::make_shared<asio::steady_timer>(io, timeout);
  r->limit->async_wait([this, s, r, timeout](error_code ec) {
    if (!ec && !r->link->bound())
      give_up(s, r, "no peer connected within " + std::to_string(timeout.count()) + " ms");
  });
  if (const auto waits = early.find(s.key); waits != early.end()) waits->second->cancel();
}

void data_plane::impl::end_epoch(uint64_t epoch) {
  const auto all = records;
  for (const auto& [s, r] : all)
    if (s.key.epoch == epoch) r->link->end(channel_state::revoked);
}

void data_plane::impl::report(const side& s, const record& r, link_event::kind what,
                              std::string text) {
  if (options.on_event)
    options.on_event(
        {what, s.key, s.connecting, r.transport, std::move(text), r.round_trip, r.trips});
}

/// The first end() of a link arrives here, from any thread.
void data_plane::impl::on_link_end(const side& s, const record_ptr& gone, channel_state why) {
  // One that has been replaced is no longer in the table, but must be hung up as well.
  const auto found = records.find(s);
  if (found != records.end() && found->second == gone) records.erase(found);
  if (gone->limit) gone->limit->cancel();
  if (gone->direct) gone->direct->end(why);
  if (gone->hang_up) {
    std::exchange(gone->hang_up, nullptr)();
    report(s, *gone, link_event::kind::ended, std::string{gpu::to_string(why)});
  }
}

void data_plane::impl::give_up(const side& s, const record_ptr& r, const std::string& text) {
  if (r->link->state() == channel_state::open) report(s, *r, link_event::kind::refused, text);
  r->link->end(channel_state::closed);
}

bool data_plane::impl::bind(const side& s, const record_ptr& r, link_end real,
                            link_transport transport, std::string text,
                            std::function<void()> hang_up) {
  r->transport = transport;
  if (r->round_trip.count() > 0) r->trips->add(r->round_trip, clock::now());
  if (r->limit) r->limit->cancel();
  if (!r->link->bind(std::move(real))) {
    hang_up();
    return false;
  }
  r->hang_up = std::move(hang_up);
  report(s, *r, link_event::kind::up, std::move(text));
  return true;
}

data_plane::data_plane(data_plane_options options)
    : impl_{std::make_shared<impl>(std::move(options))} {
  try {
    impl_->listen();
  } catch (const boost::system::system_error& e) {
    if (!impl_->self.unix_path.empty()) unlink(impl_->self.unix_path.c_str());
    throw std::system_error{static_cast<std::error_code>(e.code()), "data plane"};
  }
  impl_->start();
}

data_plane::~data_plane() { impl_->stop(); }

const std::string& data_plane::address() const { return impl_->address; }

link_end data_plane::connect(const std::string& address, const link_key& key,
                             const link_terms& terms, std::chrono::milliseconds timeout,
                             std::shared_ptr<gpu::device> device) {
  auto to = parse_peer_address(address);
  if (!to) throw std::invalid_argument{"not an address of a data plane: " + address};
  return impl_->open({key, true}, terms, timeout, device, std::move(to));
}

link_end data_plane::accept(const link_key& key, const link_terms& terms,
                            std::chrono::milliseconds timeout,
                            std::shared_ptr<gpu::device> device) {
  return impl_->open({key, false}, terms, timeout, device, {});
}

void data_plane::try_listen(const std::string& address) {
  asio::io_context io;
  try {
    listen_on(io, address);
  } catch (const boost::system::system_error& e) {
    throw std::system_error{static_cast<std::error_code>(e.code()), address};
  }
}

void data_plane::end_epoch(uint64_t epoch) {
  impl_->epochs.end(epoch);
  asio::post(impl_->io, [x = impl_.get(), epoch] { x->end_epoch(epoch); });
}

} // namespace lamella::net
