#include "net/rdma/verbs_link.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>

#include <algorithm>

#include <sched.h>

namespace lamella::net {

namespace asio = boost::asio;
using boost::system::error_code;
using gpu::channel_state, gpu::frame_header;
using clock = std::chrono::steady_clock;

namespace {

/// Between two looks of the plane's thread: while the link is in use, and while it ends.
constexpr std::chrono::milliseconds poll_interval{10}, settle_every{1};
/// Beside a frame's own writes: a header that lies apart, its seqno, a credit, the end.
constexpr uint32_t other_writes = 4;

uint64_t writes_of_frame(const gpu::ring_terms& rings, uint64_t write_bytes_max) {
  return (gpu::slot_stride(rings.slot_bytes) + write_bytes_max - 1) / write_bytes_max;
}

} // namespace

verbs_link::verbs_link(asio::any_io_executor executor, verbs_device& device, terms t)
    : executor_{std::move(executor)}, timer_{executor_}, terms_{std::move(t)},
      looks_{terms_.bell, false}, memory_{terms_.direct
                                              ? terms_.direct->memory()
                                              : std::make_shared<link_memory>(terms_.rings)},
      in_{memory_->in()}, out_{memory_->out()}, wired_{terms_.rings.first()}, credited_{wired_} {
  if (auto queue = terms_.direct ? terms_.direct->take_queue() : nullptr) {
    stream_ = queue.get();
    queue_ = std::move(queue);
    return;
  }
  // Room for all frames there is credit for, twice over: some wait for a completion to be told.
  constexpr uint64_t chunk = uint64_t{8} << 20; // what every adapter takes in one write
  const auto depth = 2 * terms_.rings.slots * (writes_of_frame(terms_.rings, chunk) + other_writes);
  queue_ = device.make_queue(memory_->registered(),
                             static_cast<uint32_t>(std::clamp<uint64_t>(depth, 64, 8192)));
  if (2 * (writes_of_frame(terms_.rings, queue_->write_bytes_max()) + other_writes)
      > queue_->room())
    throw std::runtime_error{"the adapter's queues are too short for frames of "
                             + std::to_string(terms_.rings.slot_bytes) + " bytes"};
}

verbs_link::~verbs_link() {
  queue_.reset(); // before its memory
}

void verbs_link::connect(const verbs_end& peer) {
  const auto ours = here().landing_bytes;
  if (peer.landing_bytes != ours)
    throw std::runtime_error{"the peer offers " + std::to_string(peer.landing_bytes)
                             + " bytes, expected " + std::to_string(ours)};
  queue_->connect(peer);
}

void verbs_link::greet(uint64_t word) {
  const verbs_write w{reinterpret_cast<const std::byte*>(&word), sizeof word,
                      link_memory::greeting_at, true};
  queue_->post({&w, 1}, true);
}

bool verbs_link::arrived() {
  if (auto failed = queue_->poll()) throw std::runtime_error{*failed};
  return queue_->settled();
}

uint64_t verbs_link::greeting() const { return memory_->greeting(); }

link_end verbs_link::start(tcp_socket socket) {
  socket_ = std::make_shared<tcp_socket>(std::move(socket));
  auto self = shared_from_this();
  // Nothing else is said on it: it has ended, or somebody breaks the rules.
  asio::co_spawn(executor_,
                 keep_measuring(socket_, terms_.asks, terms_.measure_every, terms_.trips),
                 [self](const std::exception_ptr&) {
                   if (!self->closed_) self->close(channel_state::closed, "the peer closed it");
                 });
  look_again();
  if (terms_.direct) {
    terms_.direct->attach(weak_from_this());
    if (stream_ != nullptr) {
      const std::lock_guard lock{mutex_};
      if (!closed_) terms_.direct->open(*stream_);
    }
    return host_side_of(memory_, self);
  }
  const auto place = [&](gpu::ring_control* ring) {
    return gpu::ring_place{reinterpret_cast<std::byte*>(ring), self, terms_.bell, self,
                           terms_.rings};
  };
  return {std::make_shared<gpu::ring_sender>(place(out_), terms_.self),
          std::make_shared<gpu::ring_receiver>(place(in_))};
}

void verbs_link::ring() {
  const std::lock_guard lock{mutex_};
  push(false);
}

/// The writes of one frame; its payload bytes, or nothing when its header cannot be right.
std::optional<uint32_t> verbs_link::add_frame(uint32_t slot) {
  const auto& rings = terms_.rings;
  const auto& header = memory_->header(slot);
  const auto payload = header.payload_bytes;
  if (payload > rings.slot_bytes) {
    fail("the header of a frame was overwritten");
    return {};
  }
  const auto offset = gpu::slot_offset(rings.slot_bytes, slot);
  const auto* from = memory_->base() + memory_->out_at() + offset;
  auto to = link_memory::in_at + offset;
  uint64_t bytes = sizeof(frame_header) + payload;
  if (memory_->on_device()) {
    writes_.push_back({reinterpret_cast<const std::byte*>(&header), sizeof header, to, true});
    from += sizeof header;
    to += sizeof header;
    bytes = payload;
  }
  const auto chunk = queue_->write_bytes_max();
  for (uint64_t at = 0; at < bytes; at += chunk)
    writes_.push_back(
        {from + at, static_cast<uint32_t>(std::min<uint64_t>(chunk, bytes - at)), to + at, false});
  return payload;
}

/// Frames that wait, as many as there is room for, and the credit that is owed if it can ride
/// along, is worth a write, is all the other side may have, or waits for too long (`flush`).
bool verbs_link::gather(bool flush) {
  const auto& rings = terms_.rings;
  const auto frames = gpu::frames_between(wired_, gpu::load(out_->sent));
  const auto released = gpu::load(in_->released);
  const auto owed = gpu::frames_between(credited_, released);
  if (frames > rings.slots || owed > rings.slots) {
    fail("the words of the ring were overwritten");
    return false;
  }
  writes_.clear();
  const auto room = queue_->room();
  const auto needed = writes_of_frame(rings, queue_->write_bytes_max()) + other_writes;
  uint64_t payload = 0;
  for (uint64_t i = 0; i < frames && writes_.size() + needed <= room; ++i) {
    const auto bytes = add_frame(out_index_);
    if (!bytes) return false;
    payload += *bytes;
    wired_ = gpu::after(wired_);
    out_index_ = out_index_ + 1 == rings.slots ? 0 : out_index_ + 1;
  }
  memory_->posted.fetch_add(payload, std::memory_order_relaxed);
  const auto inlined = [](const gpu::seqno& from, uint64_t to) {
    return verbs_write{reinterpret_cast<const std::byte*>(&from), sizeof from, to, true};
  };
  if (!writes_.empty())
    writes_.push_back(inlined(wired_, link_memory::in_at + offsetof(gpu::ring_control, sent)));
  // What the peer has sent into a device's memory is not known here.
  const bool starved =
      terms_.direct || gpu::frames_between(credited_, gpu::load(in_->sent)) >= rings.slots;
  if (owed > 0 && writes_.size() < room
      && (!writes_.empty() || flush || starved || 2 * owed >= rings.slots)) {
    credited_ = released;
    writes_.push_back(
        inlined(credited_, memory_->out_at() + offsetof(gpu::ring_control, released)));
  }
  return !writes_.empty();
}

/// Posts as much as the queue takes. With the mutex.
void verbs_link::push(bool flush) {
  if (closed_ || !failed_.empty()) return;
  const auto ended = std::max(gpu::state_of(*out_), gpu::state_of(*in_));
  try {
    if (stream_ != nullptr) return attend(ended);
    if (shut_) return;
    if (auto failed = queue_->poll()) return fail(*failed);
    // A proper end lets out what was sent before it; any other one is at once.
    while (ended <= channel_state::closed && gather(flush)) queue_->post(writes_, false);
    if (ended == channel_state::open || !failed_.empty()) return;
    const bool frames_wait = wired_ != gpu::load(out_->sent);
    if (queue_->room() == 0 || (ended == channel_state::closed && frames_wait)) return; // look()
    say_end(ended);
  } catch (const std::exception& e) {
    fail(e.what());
  }
}

/// Of a link whose streams post. With the mutex.
void verbs_link::attend(channel_state ended) {
  if (!terms_.direct->rings_itself()) stream_->ring();
  if (auto failed = stream_->poll()) return fail(*failed);
  if (ended == channel_state::open || shut_) return;
  shut_ = true; // a proper end lets out what was posted before it
  shut_at_ = clock::now() - (ended == channel_state::closed ? clock::duration{} : terms_.linger);
  asio::post(executor_, [self = shared_from_this()] { self->look(); });
}

void verbs_link::say_end(channel_state why) {
  end_word_ = static_cast<uint64_t>(why);
  const verbs_write w{reinterpret_cast<const std::byte*>(&end_word_), sizeof end_word_,
                      link_memory::ended_at, true};
  queue_->post({&w, 1}, true);
  shut_ = true;
  shut_at_ = clock::now();
  asio::post(executor_, [self = shared_from_this()] { self->look(); });
}

/// With the mutex; the link ends on the plane's thread.
void verbs_link::fail(std::string text) {
  if (closed_ || !failed_.empty()) return;
  failed_ = std::move(text);
  asio::post(executor_, [self = shared_from_this()] { self->look(); });
}

/// What the plane's thread does at a look. Whether there is nothing more to wait for.
bool verbs_link::work() {
  const std::lock_guard lock{mutex_};
  if (failed_.empty())
    if (auto failed = queue_->poll()) failed_ = std::move(*failed);
  if (!failed_.empty()) return true;
  push(true);
  return shut_ && (queue_->settled() || clock::now() > shut_at_ + terms_.linger);
}

void verbs_link::look() {
  if (closed_) return;
  if (memory_->ended() != 0) return close(channel_state::closed, "the peer closed it");
  if (work())
    close(channel_state::closed, failed_.empty() ? std::string{"closed here"} : failed_);
  else
    look_again();
}

void verbs_link::look_again() {
  const auto every = [this] {
    const std::lock_guard lock{mutex_};
    return shut_ ? settle_every : poll_interval;
  }();
  timer_->expires_after(every);
  timer_->async_wait([self = shared_from_this()](error_code ec) {
    if (!ec) self->look();
  });
}

void verbs_link::close_when_settled(clock::time_point deadline) {
  while (!closed_ && !work() && clock::now() < deadline) sched_yield();
  close(channel_state::closed, "the process exits");
}

void verbs_link::close(channel_state why, std::string text) {
  std::unique_ptr<verbs_queue> queue;
  {
    const std::lock_guard lock{mutex_};
    if (std::exchange(closed_, true)) return;
    queue = std::move(queue_);
    if (socket_) {
      error_code ignored;
      socket_->close(ignored); // ends the conversation on it
    }
    socket_.reset();
    timer_.reset();
  }
  queue.reset(); // from here on the peer writes nothing; it takes time, for which nobody waits
  // What the peer has told wins over what its going looks like.
  if (const auto told = memory_->ended(); told != 0)
    why = told <= static_cast<uint64_t>(channel_state::unread) ? static_cast<channel_state>(told)
                                                               : channel_state::torn;
  gpu::end_ring(*out_, why);
  gpu::end_ring(*in_, why);
  terms_.bell->ring();
  if (terms_.on_end) std::exchange(terms_.on_end, nullptr)(std::move(text));
}

} // namespace lamella::net
