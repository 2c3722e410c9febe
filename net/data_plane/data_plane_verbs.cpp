// Links over verbs: both sides of the conversation from the proof to the first frame.
#include "net/data_plane/data_plane_impl.hpp"
#include "net/rdma/verbs_link.hpp"

#include <cstring>

namespace lamella::net {

using asio::use_awaitable;
using gpu::channel_state;

namespace {

constexpr std::chrono::milliseconds poll_interval{1};

/// What a side writes into the other's memory: a stranger's adapter cannot know it.
uint64_t word_of(const nonce& n) {
  uint64_t word = 0;
  std::memcpy(&word, n.data(), sizeof word);
  return word;
}

std::span<const std::byte> covered(const offer& x) { return std::as_bytes(std::span{&x.end, 1}); }

} // namespace

std::shared_ptr<verbs_link> data_plane::impl::make_verbs(const side& s, const record_ptr& r) {
  if (!verbs) throw other_way{"RDMA verbs are not available: " + no_verbs};
  verbs_link::terms t;
  t.rings = ring_terms_of(s.key, r->terms);
  t.self = r->terms.self;
  t.bell = bell;
  t.linger = options.last_writes;
  t.asks = s.connecting;
  t.measure_every = options.measure_every;
  t.trips = r->trips;
  t.direct = r->direct;
  t.on_end = [this, s, r](const std::string& text) {
    if (r->hang_up) { // not by end() on this side
      r->hang_up = nullptr;
      report(s, *r, link_event::kind::ended, text);
    }
    r->link->end(channel_state::closed);
  };
  if (r->direct && !r->carrier.expired())
    throw std::runtime_error{
        "this link already has a handshake, and its rings belong to one device"};
  try {
    auto link = std::make_shared<verbs_link>(io.get_executor(), *verbs, std::move(t));
    r->carrier = link;
    return link;
  } catch (const std::exception& e) {
    throw other_way{verbs->name() + ": " + e.what()};
  }
}

asio::awaitable<void> data_plane::impl::greet(std::shared_ptr<verbs_link> link, uint64_t word) {
  const auto until = clock::now() + options.greeting;
  std::string failed;
  try {
    link->greet(word);
    asio::steady_timer timer{io};
    while (!link->arrived()) {
      if (clock::now() > until) throw std::runtime_error{"the test word did not arrive"};
      timer.expires_after(poll_interval);
      co_await timer.async_wait(use_awaitable);
    }
  } catch (const std::exception& e) {
    failed = e.what();
  }
  if (!failed.empty()) throw other_way{verbs->name() + " does not reach the peer: " + failed};
}

asio::awaitable<void> data_plane::impl::connect_verbs(side s, record_ptr r,
                                                      std::chrono::milliseconds timeout,
                                                      const std::string& where_to,
                                                      std::string why) {
  auto socket = std::make_shared<tcp_socket>(io);
  time_limit limit{socket, timeout};
  std::string lost;
  try {
    co_await reach(socket, where_to, timeout);
    const auto h = hello_of(s.key, r->terms, link_transport::verbs_staged, options.cluster);
    // Before the conversation: the other side times our answer, and memory takes time to pin.
    const auto link = make_verbs(s, r);
    auto met = co_await introduce(*socket, h, options.secret, r->round_trip);
    offer ours{link->here(), {}};
    ours.proof = prove(options.secret, "connecting queue", h, met.theirs, covered(ours));
    const std::array<asio::const_buffer, 2> opening{asio::buffer(&met.proof, sizeof met.proof),
                                                    asio::buffer(&ours, sizeof ours)};
    co_await asio::async_write(*socket, opening, use_awaitable);
    verdict v;
    co_await asio::async_read(*socket, asio::buffer(&v, sizeof v), use_awaitable);
    if (v.refused == refused_other_way) throw other_way{"the peer: " + text_of(v)};
    if (v.refused != 0) throw std::runtime_error{"the peer refused: " + text_of(v)};
    offer theirs;
    co_await asio::async_read(*socket, asio::buffer(&theirs, sizeof theirs), use_awaitable);
    if (!equal(theirs.proof,
               prove(options.secret, "accepting queue", h, met.theirs, covered(theirs))))
      throw std::runtime_error{"the proof of the peer's offer is wrong"};
    link->connect(theirs.end);
    co_await greet(link, word_of(h.mine));
    v = {};
    co_await asio::async_write(*socket, asio::buffer(&v, sizeof v), use_awaitable);
    co_await asio::async_read(*socket, asio::buffer(&v, sizeof v), use_awaitable);
    if (v.refused != 0) throw other_way{"the peer: " + text_of(v)};
    if (link->greeting() != word_of(met.theirs))
      throw other_way{
          "the peer's test word did not arrive, although its adapter reported completion"};
    limit.cancel();
    finish_verbs(s, r, link, std::move(*socket), why);
    co_return;
  } catch (const boost::system::system_error& e) {
    lost = limit.over()
               ? "no answer from " + where_to + " within " + std::to_string(timeout.count()) + " ms"
               : where_to + ": " + e.code().message();
  }
  throw std::runtime_error{lost};
}

asio::awaitable<void> data_plane::impl::admit_verbs(hello h, std::shared_ptr<tcp_socket> socket,
                                                    std::chrono::nanoseconds round_trip,
                                                    nonce mine) {
  const side s{h.key(), false};
  record_ptr r;
  std::shared_ptr<verbs_link> link;
  offer theirs, ours;
  verdict v;
  {
    time_limit limit{socket, options.handshake};
    co_await asio::async_read(*socket, asio::buffer(&theirs, sizeof theirs), use_awaitable);
  }
  if (!equal(theirs.proof, prove(options.secret, "connecting queue", h, mine, covered(theirs))))
    throw std::runtime_error{"the proof of its offer is wrong"};
  const link_terms terms = h.terms();
  try {
    r = co_await meet(s.key, terms, options.early);
    r->round_trip = round_trip;
    link = make_verbs(s, r);
    link->connect(theirs.end);
    ours.end = link->here();
    ours.proof = prove(options.secret, "accepting queue", h, mine, covered(ours));
  } catch (const other_way& e) {
    v = refusal(e.what(), true);
  } catch (const std::exception& e) {
    v = refusal(e.what());
  }
  time_limit limit{socket, options.handshake};
  co_await asio::async_write(*socket, asio::buffer(&v, sizeof v), use_awaitable);
  if (v.refused != 0) throw std::runtime_error{text_of(v)};
  co_await asio::async_write(*socket, asio::buffer(&ours, sizeof ours), use_awaitable);
  co_await asio::async_read(*socket, asio::buffer(&v, sizeof v), use_awaitable);
  try {
    if (v.refused != 0) throw std::runtime_error{text_of(v)};
    if (link->greeting() != word_of(h.mine))
      throw std::runtime_error{
          "the test word did not arrive, although the adapter reported completion"};
    co_await greet(link, word_of(mine));
  } catch (const boost::system::system_error&) {
    throw;
  } catch (const std::exception& e) {
    v = refusal(e.what(), true);
  }
  co_await asio::async_write(*socket, asio::buffer(&v, sizeof v), use_awaitable);
  if (v.refused != 0) throw std::runtime_error{text_of(v)};
  limit.cancel();
  const std::string why = "chosen by the peer"; // named, see connect()
  finish_verbs(s, r, link, std::move(*socket), why);
}

void data_plane::impl::finish_verbs(const side& s, const record_ptr& r,
                                    std::shared_ptr<verbs_link> link, tcp_socket socket,
                                    const std::string& why) {
  std::erase_if(verbs_links, [](const auto& weak) { return weak.expired(); });
  verbs_links.push_back(link);
  // A proper end lets out what was sent before it, so hanging up is left to the link itself.
  bind(s, r, link->start(std::move(socket)), r->direct ? *forced : link_transport::verbs_staged,
       why + "; " + verbs->name() + "; frames lie in " + link->where(), [] {});
}

} // namespace lamella::net
