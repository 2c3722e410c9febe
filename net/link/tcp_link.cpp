#include "net/link/tcp_link.hpp"

#include "base/errno_text.hpp"

#include <boost/asio/post.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <new>

#include <netinet/tcp.h>
#include <sys/mman.h>
#include <sys/socket.h>

namespace lamella::net {

namespace asio = boost::asio;
using boost::system::error_code;
using clock = std::chrono::steady_clock;
using gpu::channel_state, gpu::frame_header;

namespace {

/// Bytes read beyond the payload that is being read: what follows it, mostly headers.
constexpr size_t stage_bytes = 4096;
/// Pieces in one call; a ring has few slots.
constexpr size_t pieces_max = 32;

} // namespace

tcp_link::tcp_link(asio::ip::tcp::socket socket, terms t)
    : executor_{socket.get_executor()}, timer_{executor_}, terms_{std::move(t)},
      wired_{terms_.rings.first()}, credited_{terms_.rings.first()}, arrived_{terms_.rings.first()},
      stage_(stage_bytes) {
  error_code ignored;
  socket.set_option(asio::ip::tcp::no_delay{true}, ignored);
  socket_ = owned_descriptor{socket.release()};
  const auto timeout = static_cast<unsigned>(terms_.unread.count());
  setsockopt(socket_.get(), IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout, sizeof timeout);
  terms_.rings.crc_every = 1;
  auto* p = mmap(nullptr, 2 * terms_.rings.bytes(), PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) throw std::bad_alloc{};
  memory_ = static_cast<std::byte*>(p);
  gpu::make_ring(memory_, terms_.rings);
  gpu::make_ring(memory_ + terms_.rings.bytes(), terms_.rings);
  out_ = reinterpret_cast<gpu::ring_control*>(memory_);
  in_ = reinterpret_cast<gpu::ring_control*>(memory_ + terms_.rings.bytes());
  if (terms_.bell->attended()) polled_.emplace(terms_.bell);
}

tcp_link::~tcp_link() {
  if (socket_.get() >= 0) terms_.bell->unwatch(socket_.get());
  munmap(memory_, 2 * terms_.rings.bytes());
}

link_end tcp_link::start() {
  auto self = shared_from_this();
  terms_.bell->watch(socket_.get(), std::shared_ptr<gpu::listener>{self, &readiness_});
  look_later();
  const auto place = [&](gpu::ring_control* ring) {
    return gpu::ring_place{reinterpret_cast<std::byte*>(ring), self, terms_.bell, self,
                           terms_.rings};
  };
  return {std::make_shared<gpu::ring_sender>(place(out_), terms_.self),
          std::make_shared<gpu::ring_receiver>(place(in_))};
}

void tcp_link::ring() {
  const std::lock_guard lock{mutex_};
  if (!blocked_ || std::max(gpu::state_of(*out_), gpu::state_of(*in_)) > channel_state::closed)
    push();
}

/// Frames that wait, and the credit that is owed if it can ride along, is worth a message, or is
/// all the other side may have.
bool tcp_link::gather() {
  const auto frames = gpu::frames_between(wired_, gpu::load(out_->sent));
  const auto released = gpu::load(in_->released);
  const auto owed = gpu::frames_between(credited_, released);
  const auto& rings = terms_.rings;
  pieces_.clear();
  const auto say = [&](frame_header& x, gpu::frame_kind kind, uint64_t number) {
    x = gpu::make_header({rings.epoch, number, 0, 0, kind, 0}, 0, rings, terms_.self);
    gpu::seal(x);
    pieces_.push_back({reinterpret_cast<const std::byte*>(&x), sizeof x});
  };
  if (std::exchange(ping_due_, false)) {
    asked_at_ = clock::now();
    say(ping_, gpu::frame_kind::ping, 0);
  }
  if (std::exchange(pong_due_, false)) say(pong_, gpu::frame_kind::pong, 0);
  const bool starved = gpu::frames_between(credited_, gpu::load(in_->sent)) >= rings.slots;
  if (owed > 0 && (frames > 0 || starved || 2 * owed >= rings.slots)) {
    say(credit_, gpu::frame_kind::credit, released);
    credited_ = released;
  }
  for (uint64_t i = 0; i < frames && pieces_.size() < pieces_max; ++i) {
    const auto* slot = memory_ + gpu::slot_offset(rings.slot_bytes, out_index_);
    const auto bytes = reinterpret_cast<const frame_header*>(slot)->payload_bytes;
    pieces_.push_back({slot, sizeof(frame_header) + bytes});
    wired_ = gpu::after(wired_);
    out_index_ = out_index_ + 1 == rings.slots ? 0 : out_index_ + 1;
  }
  return !pieces_.empty();
}

/// Writes as much as the socket takes. With the mutex.
void tcp_link::push() {
  if (closed_ || shut_) return;
  const auto ended = std::max(gpu::state_of(*out_), gpu::state_of(*in_));
  // A proper end lets out what was sent before it; any other one is at once.
  while (ended <= channel_state::closed) {
    if (pieces_.empty() && !gather()) break;
    std::array<iovec, pieces_max + 1> parts;
    for (size_t i = 0; i < pieces_.size(); ++i)
      parts[i] = {const_cast<std::byte*>(pieces_[i].data), pieces_[i].bytes};
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = pieces_.size();
    const auto sent = sendmsg(socket_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0) {
      if (errno == EINTR) continue;
      if (errno == EAGAIN || errno == EWOULDBLOCK) {
        if (!blocked_) {
          blocked_ = clock::now();
          terms_.bell->watched().want_room(socket_.get(), true);
        }
      } else {
        timed_out_ |= errno == ETIMEDOUT;
        asio::post(executor_, [self = shared_from_this(), reason = errno] {
          self->close(channel_state::closed, "writing: " + errno_text(reason));
        });
      }
      return;
    }
    if (std::exchange(blocked_, {})) terms_.bell->watched().want_room(socket_.get(), false);
    auto left = static_cast<size_t>(sent);
    auto at = pieces_.begin();
    for (; at != pieces_.end() && left >= at->bytes; ++at) left -= at->bytes;
    if (at != pieces_.end()) *at = {at->data + left, at->bytes - left};
    pieces_.erase(pieces_.begin(), at);
  }
  if (ended == channel_state::open) return;
  shut_ = true;
  asio::post(executor_, [self = shared_from_this(), ended] {
    if (ended != channel_state::closed) return self->close(ended, "closed here");
    if (self->closed_) return;
    shutdown(self->socket_.get(), SHUT_WR);
    self->timer_->expires_after(self->terms_.unread); // for the other side to end its half
    self->timer_->async_wait([self](error_code ec) {
      if (!ec) self->close(channel_state::closed, "closed here");
    });
  });
}

/// Now and then, on the plane's thread: whether the peer reads at all, and how far it is.
void tcp_link::look_later() {
  timer_->expires_after(std::min(terms_.unread / 4, terms_.measure_every));
  timer_->async_wait([self = shared_from_this()](error_code ec) {
    if (ec || self->closed_) return;
    const auto blocked = [&] {
      const std::lock_guard lock{self->mutex_};
      return self->blocked_;
    }();
    if (blocked && clock::now() - *blocked >= self->terms_.unread)
      return self->close(channel_state::unread, self->unread_text());
    self->ask();
    self->look_later();
  });
}

void tcp_link::ask() {
  const std::lock_guard lock{mutex_};
  if (blocked_ || asked_ || clock::now() - asked_at_ < terms_.measure_every) return;
  asked_ = ping_due_ = true;
  push();
}

void tcp_link::on_ready() {
  {
    const std::lock_guard lock{reading_};
    if (!deaf_) read();
  }
  const std::lock_guard lock{mutex_};
  if (blocked_) push();
}

void tcp_link::read() {
  const auto before = arrived_;
  // Payload goes straight into its slot; what follows it into the stage.
  while (true) {
    const bool in_payload = header_bytes_ == sizeof header_;
    const auto payload_left = in_payload ? header_.payload_bytes - payload_bytes_ : 0;
    auto* slot = reinterpret_cast<std::byte*>(in_)
                 + gpu::slot_offset(terms_.rings.slot_bytes, in_index_) + sizeof(frame_header);
    std::array<iovec, 2> parts{
        {{slot + payload_bytes_, payload_left}, {stage_.data(), stage_.size()}}};
    msghdr message{};
    message.msg_iov = payload_left > 0 ? &parts[0] : &parts[1];
    message.msg_iovlen = payload_left > 0 ? 2 : 1;
    const auto got = recvmsg(socket_.get(), &message, MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
    if (got < 0 && errno == ETIMEDOUT) {
      refuse(channel_state::unread, unread_text());
      break;
    }
    if (got <= 0) {
      refuse(channel_state::closed, got == 0 ? "the peer closed it" : "reading: " + errno_text());
      break;
    }
    const auto direct = std::min(static_cast<size_t>(got), payload_left);
    payload_bytes_ += direct;
    if (in_payload && payload_bytes_ == header_.payload_bytes) deliver();
    if (!take(stage_.data(), static_cast<size_t>(got) - direct)) break;
    if (static_cast<size_t>(got) < payload_left + stage_.size()) break; // the socket is empty
  }
  if (std::exchange(news_, false)) terms_.bell->ring();
  // With frames the other side may have used up its credit; and who asks is answered at once.
  if (std::exchange(was_asked_, false) || arrived_ != before) ring();
}

/// Staged bytes: the rest of a header, payload that came with it, the next header …
bool tcp_link::take(const std::byte* data, size_t bytes) {
  while (bytes > 0) {
    size_t taken = 0;
    if (header_bytes_ < sizeof header_) {
      taken = std::min(bytes, sizeof header_ - header_bytes_);
      std::memcpy(reinterpret_cast<std::byte*>(&header_) + header_bytes_, data, taken);
      header_bytes_ += taken;
      if (header_bytes_ == sizeof header_ && !on_header()) return false;
    } else {
      taken = std::min(bytes, header_.payload_bytes - payload_bytes_);
      std::memcpy(reinterpret_cast<std::byte*>(in_)
                      + gpu::slot_offset(terms_.rings.slot_bytes, in_index_) + sizeof(frame_header)
                      + payload_bytes_,
                  data, taken);
      payload_bytes_ += taken;
      if (payload_bytes_ == header_.payload_bytes) deliver();
    }
    data += taken;
    bytes -= taken;
  }
  return true;
}

bool tcp_link::on_header() {
  if (const auto found = gpu::check_header(header_, terms_.rings); found != channel_state::open)
    return refuse(found, found == channel_state::stale ? "a frame of another incarnation"
                                                       : "a frame header that fails its checks");
  if (header_.kind == static_cast<uint8_t>(gpu::frame_kind::credit)) return on_credit();
  if (header_.kind == static_cast<uint8_t>(gpu::frame_kind::ping)) return on_ping();
  if (header_.kind == static_cast<uint8_t>(gpu::frame_kind::pong)) return on_pong();
  if (gpu::frames_between(gpu::load(in_->released), arrived_) >= terms_.rings.slots)
    return refuse(channel_state::torn, "a frame without credit");
  payload_bytes_ = 0;
  if (header_.payload_bytes == 0) deliver();
  return true;
}

bool tcp_link::on_credit() {
  header_bytes_ = 0;
  const auto released = header_.iteration;
  const auto before = gpu::load(out_->released);
  const auto most = gpu::frames_between(before, gpu::load(out_->sent));
  if (header_.payload_bytes != 0 || !gpu::same_epoch(released, before)
      || gpu::frames_between(before, released) > most)
    return refuse(channel_state::torn, "a credit for frames that were never sent");
  gpu::store(out_->released, released);
  news_ = true;
  return true;
}

bool tcp_link::on_ping() {
  header_bytes_ = 0;
  if (header_.payload_bytes != 0) return refuse(channel_state::torn, "a ping with a payload");
  const std::lock_guard lock{mutex_};
  pong_due_ = was_asked_ = true;
  return true;
}

bool tcp_link::on_pong() {
  header_bytes_ = 0;
  const auto now = clock::now();
  const auto asked_at = [&]() -> std::optional<clock::time_point> {
    const std::lock_guard lock{mutex_};
    if (!std::exchange(asked_, false)) return {};
    return asked_at_;
  }();
  if (!asked_at || header_.payload_bytes != 0)
    return refuse(channel_state::torn, "a pong without a ping");
  terms_.trips->add(now - *asked_at, now);
  return true;
}

void tcp_link::deliver() {
  std::memcpy(reinterpret_cast<std::byte*>(in_)
                  + gpu::slot_offset(terms_.rings.slot_bytes, in_index_),
              &header_, sizeof header_);
  arrived_ = gpu::after(arrived_);
  gpu::store(in_->sent, arrived_);
  in_index_ = in_index_ + 1 == terms_.rings.slots ? 0 : in_index_ + 1;
  header_bytes_ = payload_bytes_ = 0;
  news_ = true;
}

/// Reads nothing more. What has arrived whole can still be taken before the plane's thread closes.
bool tcp_link::refuse(channel_state why, std::string text) {
  deaf_ = true;
  terms_.bell->unwatch(socket_.get());
  asio::post(executor_, [self = shared_from_this(), why, text = std::move(text)]() mutable {
    self->close(why, std::move(text));
  });
  return false;
}

std::string tcp_link::unread_text() const {
  return "the peer read nothing for " + std::to_string(terms_.unread.count()) + " ms";
}

void tcp_link::close(channel_state why, std::string text) {
  {
    const std::scoped_lock lock{reading_, mutex_};
    if (std::exchange(closed_, true)) return;
    if (timed_out_ && why == channel_state::closed) { // known while writing, seen first by reading
      why = channel_state::unread;
      text = unread_text();
    }
    deaf_ = true;
    terms_.bell->unwatch(socket_.get());
    socket_ = owned_descriptor{};
    timer_.reset();
    polled_.reset();
  }
  gpu::end_ring(*out_, why);
  gpu::end_ring(*in_, why);
  terms_.bell->ring();
  if (terms_.on_end) std::exchange(terms_.on_end, nullptr)(std::move(text));
}

} // namespace lamella::net
