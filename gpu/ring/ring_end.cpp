#include "gpu/ring/ring_end.hpp"

#include "base/crc32c.hpp"

#include <atomic>
#include <cassert>
#include <cstring>
#include <stdexcept>
#include <string>

namespace lamella::gpu {

namespace {

constexpr auto last_kind = static_cast<uint8_t>(frame_kind::context);

} // namespace

uint64_t load(const ring_word& word) {
  return std::atomic_ref{const_cast<uint64_t&>(word.value)}.load(std::memory_order_acquire);
}

void store(ring_word& word, uint64_t value) {
  std::atomic_ref{word.value}.store(value, std::memory_order_release);
}

void end_ring(ring_control& ring, channel_state why) {
  uint64_t open = 0;
  std::atomic_ref{ring.ended.value}.compare_exchange_strong(open, static_cast<uint64_t>(why),
                                                            std::memory_order_acq_rel);
}

channel_state state_of(const ring_control& ring) {
  const auto word = load(ring.ended);
  // A number we do not know is still an end.
  return word <= static_cast<uint64_t>(channel_state::unread) ? static_cast<channel_state>(word)
                                                              : channel_state::torn;
}

void make_ring(std::byte* base, const ring_terms& terms) {
  auto& c = *new (base) ring_control{};
  c.shape = {ring_magic, terms.slots, terms.slot_bytes, terms.first()};
  c.released.value = terms.first();
  store(c.sent, terms.first());
}

bool is_ring(const std::byte* base, const ring_terms& terms) {
  const auto shape = reinterpret_cast<const ring_control*>(base)->shape;
  return shape.magic == ring_magic && shape.slots == terms.slots
         && shape.slot_bytes == terms.slot_bytes && shape.first == terms.first();
}

frame_header make_header(const frame_tag& tag, uint32_t payload_bytes, const ring_terms& terms,
                         ring_identity self) {
  frame_header x{};
  x.magic = frame_magic;
  x.version = frame_version;
  x.kind = static_cast<uint8_t>(tag.kind);
  x.cluster = terms.cluster;
  x.seat = self.seat;
  x.incarnation = self.incarnation;
  x.epoch = tag.epoch;
  x.iteration = tag.iteration;
  x.table_version = tag.table_version;
  x.attempt = tag.attempt;
  x.layer = tag.layer;
  x.payload_bytes = payload_bytes;
  return x;
}

void seal(frame_header& x) { x.header_crc = crc32c(&x, offsetof(frame_header, header_crc)); }

channel_state check_header(const frame_header& x, const ring_terms& terms) {
  if (x.magic != frame_magic || x.version != frame_version
      || x.header_crc != crc32c(&x, offsetof(frame_header, header_crc)) || x.kind > last_kind
      || x.payload_bytes > terms.slot_bytes || x.cluster != terms.cluster || x.unused != 0
      || (x.flags & ~frame_has_payload_crc) != 0 || (x.flags == 0 && x.payload_crc != 0))
    return channel_state::torn;
  if (terms.peer && ring_identity{x.seat, x.incarnation} != *terms.peer)
    return channel_state::stale;
  return channel_state::open;
}

frame_tag tag_of(const frame_header& x) {
  return {x.epoch,        x.iteration, x.attempt, x.layer, static_cast<frame_kind>(x.kind),
          x.table_version};
}

ring_end::ring_end(ring_place place) : place_{std::move(place)} {}

channel_state ring_end::state() const { return state_of(control()); }

void ring_end::end(channel_state why) {
  end_ring(control(), why);
  tell();
  if (place_.mine) place_.mine->ring();
}

bool ring_end::plausible(seqno from, seqno to) {
  if (same_epoch(from, to) && frames_between(from, to) <= place_.terms.slots) return true;
  end(same_epoch(from, to) ? channel_state::torn : channel_state::stale);
  return false;
}

ring_sender::ring_sender(ring_place place, ring_identity self)
    : ring_end{std::move(place)}, self_{self}, sent_{terms().first()}, seen_released_{
                                                                           terms().first()} {}

std::byte* ring_sender::reserve(size_t bytes) {
  if (bytes > terms().slot_bytes)
    throw std::length_error("frame of " + std::to_string(bytes) + " bytes in slots of "
                            + std::to_string(terms().slot_bytes));
  // The other side's word is read only when what it said last is used up.
  if (frames_between(seen_released_, sent_) == terms().slots) {
    const auto released = load(control().released);
    if (!plausible(released, sent_)) return nullptr;
    seen_released_ = released;
    if (frames_between(released, sent_) == terms().slots) return nullptr;
  }
  if (state() != channel_state::open) return nullptr;
  reserved_bytes_ = static_cast<uint32_t>(bytes);
  return slot(index_) + sizeof(frame_header);
}

void ring_sender::commit(const frame_tag& tag) {
  auto header = make_header(tag, reserved_bytes_, terms(), self_);
  if (terms().crc_every != 0 && ++without_crc_ >= terms().crc_every) {
    without_crc_ = 0;
    header.flags = frame_has_payload_crc;
    header.payload_crc = crc32c(slot(index_) + sizeof(frame_header), reserved_bytes_);
  }
  seal(header);
  std::memcpy(slot(index_), &header, sizeof header);
  index_ = next(index_);
  sent_ = after(sent_);
  store(control().sent, sent_);
  tell();
}

ring_receiver::ring_receiver(ring_place place)
    : ring_end{std::move(place)}, frames_(terms().slots), released_{terms().first()} {}

const frame* ring_receiver::peek(size_t ahead) {
  if (ahead >= arrived_) {
    if (ahead >= terms().slots) return nullptr;
    const auto sent = load(control().sent);
    if (!plausible(released_, sent)) return nullptr;
    arrived_ = frames_between(released_, sent);
    if (ahead >= arrived_) return nullptr;
  }
  // What was sent before the other side closed is still good; any other end is an end at once.
  if (const auto now = state(); now != channel_state::open && now != channel_state::closed)
    return nullptr;
  for (; checked_ <= ahead; ++checked_)
    if (!check((index_ + static_cast<uint32_t>(checked_)) % terms().slots)) return nullptr;
  return &frames_[(index_ + ahead) % terms().slots];
}

bool ring_receiver::check(uint32_t index) {
  frame_header header;
  std::memcpy(&header, slot(index), sizeof header);
  auto found = check_header(header, terms());
  if (found == channel_state::open && (header.flags & frame_has_payload_crc) != 0
      && header.payload_crc != crc32c(slot(index) + sizeof(frame_header), header.payload_bytes))
    found = channel_state::torn;
  if (found != channel_state::open) {
    end(found);
    return false;
  }
  frames_[index] = {tag_of(header), {slot(index) + sizeof(frame_header), header.payload_bytes}};
  return true;
}

void ring_receiver::release() {
  assert(arrived_ > 0);
  --arrived_;
  if (checked_ > 0) --checked_;
  index_ = next(index_);
  released_ = after(released_);
  store(control().released, released_);
  tell();
}

} // namespace lamella::gpu
