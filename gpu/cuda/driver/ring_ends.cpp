#include "gpu/cuda/driver/ring_ends.hpp"

#include "gpu/cuda/driver/queue.hpp"
#include "gpu/cuda/stream/channel_port.hpp"
#include "gpu/cuda/stream/ring_kernels.cuh"

#include <atomic>
#include <stdexcept>
#include <string>

namespace lamella::gpu::cuda {

namespace {

std::string_view waits_for(frame_kind kind) {
  switch (kind) {
  case frame_kind::q:
    return "wait for q";
  case frame_kind::kv:
    return "wait for k and v";
  case frame_kind::partial:
    return "wait for a partial sum";
  case frame_kind::context:
    return "wait for the context of a slice";
  default:
    return "wait for attention";
  }
}

/// What both kinds of end know of their ring.
class device_end {
public:
  device_end(ring_place place, bool host_memory)
      : place_{std::move(place)}, host_memory_{host_memory} {}

  channel_state state() const {
    if (const auto own = ended_.load(std::memory_order_acquire); own != channel_state::open)
      return own;
    if (!host_memory_) return channel_state::open;
    const auto word = std::atomic_ref{words()->ended.value}.load(std::memory_order_acquire);
    return word <= static_cast<uint64_t>(channel_state::unread) ? static_cast<channel_state>(word)
                                                                : channel_state::torn;
  }

  /// Rings whose words lie in device memory are known to this process alone: its flag says it all.
  void end(channel_state why) {
    auto open = channel_state::open;
    ended_.compare_exchange_strong(open, why, std::memory_order_acq_rel);
    if (host_memory_) {
      uint64_t nothing = 0;
      std::atomic_ref{words()->ended.value}.compare_exchange_strong(
          nothing, static_cast<uint64_t>(why), std::memory_order_acq_rel);
    }
    if (place_.theirs) place_.theirs->ring();
  }

protected:
  /// What the other side writes.
  ring_control* control() const { return reinterpret_cast<ring_control*>(place_.base); }
  /// What this side writes, and the end.
  ring_control* words() const { return place_.words != nullptr ? place_.words : control(); }
  std::byte* slot(uint32_t index) const {
    return place_.base + slot_offset(place_.terms.slot_bytes, index);
  }
  void check_open() const {
    if (const auto now = state(); now != channel_state::open) throw channel_ended{now};
  }
  /// Waits end with the ring, where a host can say so in its memory.
  channel_port port(queue& q) const {
    auto x = q.port();
    if (host_memory_) x.ended = &words()->ended.value;
    return x;
  }
  /// One post of the stream into the adapter's queue, of a frame, a credit or both.
  void post(queue& q, const frame_header& header, frame_header* at, const ring_post& what,
            const char* name) const {
    auto& p = *place_.posts;
    check(launch_ring_post(header, at, what, p, port(q), q.stream(name)), name);
    p.told = p.released;
    if (!p.rings) watch(q, p.published);
  }
  /// What the peer has to be told of its frames, and where.
  void add_credit(ring_post& what) const {
    const auto& p = *place_.posts;
    if (p.told == p.released) return;
    what.released_at = p.out_at + offsetof(ring_control, released);
    what.released = p.released;
  }
  /// Tells the peer by itself what is owed, where the stream posts.
  void post_credit(queue& q) const {
    ring_post what;
    if (place_.posts) add_credit(what);
    if (what.released_at != 0) post(q, {}, nullptr, what, "release of a frame");
  }
  /// The other side may sleep and a kernel cannot wake it: the driver does when the word moves.
  void watch(queue& q, uint64_t* word) const {
    if (host_memory_ && place_.theirs) q.watch({word, place_.memory, place_.theirs});
  }

  ring_place place_;

private:
  bool host_memory_;
  std::atomic<channel_state> ended_{channel_state::open};
};

class device_sender final : public channel_sender, private device_end {
public:
  device_sender(ring_place place, ring_identity self, bool host_memory)
      : device_end{std::move(place), host_memory}, self_{self}, sent_{place_.terms.first()},
        credit_{sent_} {}

  /// Puts a wait for half the ring into the stream when all of it may be in use, so that only every
  /// few frames have one.
  std::byte* reserve(size_t bytes) override {
    const auto& terms = place_.terms;
    if (bytes > terms.slot_bytes)
      throw std::length_error("frame of " + std::to_string(bytes) + " bytes in slots of "
                              + std::to_string(terms.slot_bytes));
    check_open();
    auto& q = queue::current();
    if (frames_between(credit_, sent_) >= terms.slots) {
      credit_ = after(sent_, 0) - terms.slots / 2;
      post_credit(q); // who waits for credit owes none: the peer may wait for it
      check(enqueue_wait(q.stream_for_wait("wait for credit"), &control()->released.value,
                         {credit_, nullptr}, port(q)),
            "wait for credit");
    }
    reserved_bytes_ = static_cast<uint32_t>(bytes);
    return slot(index_) + sizeof(frame_header);
  }

  void commit(const frame_tag& tag) override {
    auto& q = queue::current();
    auto header = make_header(tag, reserved_bytes_, place_.terms, self_);
    seal(header);
    sent_ = after(sent_);
    if (place_.posts) return post_frame(q, header);
    auto* place = place_.headers != nullptr ? place_.headers + index_
                                            : reinterpret_cast<frame_header*>(slot(index_));
    auto* sent = &words()->sent.value;
    if (auto* tail = q.tail(); tail != nullptr && !tail->posts()) {
      tail->header = header;
      tail->slot = place;
      tail->sent = sent;
      tail->sent_value = sent_;
    } else {
      check(launch_send_frame(header, place, sent, sent_, q.port(), q.stream("send of a frame")),
            "send of a frame");
    }
    go_on();
    watch(q, sent);
  }

  size_t slot_bytes() const override { return place_.terms.slot_bytes; }
  channel_state state() const override { return device_end::state(); }
  void end(channel_state why) override { device_end::end(why); }

private:
  void go_on() { index_ = index_ + 1 == place_.terms.slots ? 0 : index_ + 1; }

  /// The credit that is owed rides along.
  void post_frame(queue& q, const frame_header& header) {
    const auto& p = *place_.posts;
    const auto offset = slot_offset(place_.terms.slot_bytes, index_);
    ring_post what;
    what.from = offset;
    what.to = p.in_at + offset;
    what.bytes = static_cast<uint32_t>(sizeof header) + reserved_bytes_;
    what.sent_at = p.in_at + offsetof(ring_control, sent);
    what.sent = sent_;
    add_credit(what);
    post(q, header, reinterpret_cast<frame_header*>(slot(index_)), what, "post of a frame");
    p.bytes->fetch_add(reserved_bytes_, std::memory_order_relaxed);
    go_on();
  }

  ring_identity self_;
  seqno sent_;
  seqno credit_; ///< what the waits in the stream say of `released`
  uint32_t index_ = 0, reserved_bytes_ = 0;
};

class device_receiver final : public channel_receiver, private device_end {
public:
  device_receiver(ring_place place, bool host_memory)
      : device_end{std::move(place), host_memory},
        frames_(place_.terms.slots), released_{place_.terms.first()}, awaited_{released_} {}

  /// A host cannot look into a queue that has not run yet.
  const frame* peek(size_t) override {
    throw std::logic_error("frames of a device's ring must be received, not polled");
  }

  const frame* receive(const frame_tag& expected, size_t bytes, size_t ahead) override {
    check_open();
    auto& q = queue::current();
    const auto wanted = after(released_, ahead + 1);
    const auto at = static_cast<uint32_t>((index_ + ahead) % place_.terms.slots);
    if (frames_between(awaited_, wanted) == 1) {
      const auto header = make_header(expected, static_cast<uint32_t>(bytes), place_.terms, {});
      check(launch_receive_frame(header, slot(at), &control()->sent.value, wanted, port(q),
                                 q.stream(waits_for(expected.kind))),
            "wait for a frame");
      awaited_ = wanted;
      frames_[at] = {expected, {slot(at) + sizeof(frame_header), bytes}};
    }
    return &frames_[at];
  }

  void release() override {
    auto& q = queue::current();
    released_ = after(released_);
    index_ = index_ + 1 == place_.terms.slots ? 0 : index_ + 1;
    if (place_.posts) return give_back(q);
    auto* word = &words()->released.value;
    auto* tail = q.tail();
    if (tail != nullptr && (tail->released == nullptr || tail->released == word)) {
      tail->released = word;
      tail->released_value = released_;
    } else {
      check(enqueue_post(q.stream("release of a frame"), word, {released_, nullptr}, q.port()),
            "release of a frame");
    }
    watch(q, word);
  }

  channel_state state() const override { return device_end::state(); }
  void end(channel_state why) override { device_end::end(why); }

private:
  /// The next frame takes the credit along, unless the peer may be out of it before: device_sender
  /// waits for half of an even number of slots while this side may hold one frame.
  void give_back(queue& q) {
    auto& p = *place_.posts;
    p.released = released_;
    if (2 * frames_between(p.told, released_) >= place_.terms.slots) post_credit(q);
  }

  std::vector<frame> frames_; ///< by slot
  seqno released_;
  seqno awaited_; ///< the newest frame whose wait is in the stream
  uint32_t index_ = 0;
};

} // namespace

std::shared_ptr<channel_sender> make_ring_sender(ring_place place, ring_identity self,
                                                 bool host_memory) {
  return std::make_shared<device_sender>(std::move(place), self, host_memory);
}

std::shared_ptr<channel_receiver> make_ring_receiver(ring_place place, bool host_memory) {
  return std::make_shared<device_receiver>(std::move(place), host_memory);
}

} // namespace lamella::gpu::cuda
