/// The ends of a ring (gpu/ring/ring.hpp) as a host uses them.
#pragma once

#include "gpu/ring/channel.hpp"
#include "gpu/ring/doorbell.hpp"
#include "gpu/ring/ring.hpp"

#include <atomic>
#include <memory>
#include <optional>
#include <vector>

namespace lamella::gpu {

/// Identity of a sender, sent in every header.
struct ring_identity {
  uint16_t seat = 0;
  uint32_t incarnation = 0;
  friend bool operator==(const ring_identity&, const ring_identity&) = default;
};

/// Frames in a ring from a replica to a shard. The shard holds Q of all mini-batches of a layer,
/// and their K and V; the replica may run ahead of it by a layer.
constexpr uint32_t frames_per_link(uint32_t mini_batches) { return 4 * mini_batches; }

/// Terms that both sides of a ring agreed on.
struct ring_terms {
  uint32_t slots = frames_per_link(1);
  uint64_t slot_bytes = 64;   ///< of payload, a multiple of 64
  uint64_t epoch = 0;         ///< frames and seqnos of another epoch close the channel
  uint64_t first_counter = 0; ///< of the first frame
  uint32_t cluster = 0;       ///< frames of another cluster close the channel
  uint32_t crc_every = 0;     ///< interval in frames of payload CRCs; 0: never
  /// The expected sender: frames of any other close the channel. Nothing: not checked, for memory
  /// of one process.
  std::optional<ring_identity> peer{};
  seqno first() const { return make_seqno(epoch, first_counter); }
  size_t bytes() const { return ring_bytes(slots, slot_bytes); }
};

/// How a stream of a device posts to an adapter by itself what changes in the rings of a link
/// (Lamina 4.1): one for both of them, and one stream for one of these. Kernels use the addresses.
struct stream_posts {
  std::byte* queue = nullptr;       ///< device memory: the adapter's queue as kernels keep it
  const std::byte* birth = nullptr; ///< mapped host memory: as it is when `ready` is not 0
  const uint64_t* ready = nullptr;
  uint64_t* published = nullptr; ///< mapped host memory: raised with every post
  bool rings = false;            ///< kernels ring the adapter's bell; else who watches `published`
  uint64_t in_at = 0;            ///< of the ring that the peer fills, in a side's memory
  uint64_t out_at = 0;           ///< of the one that this side fills
  std::atomic<uint64_t>* bytes = nullptr; ///< of payload that was put into streams so far

  // Progress of what was enqueued on the stream, for later enqueues.
  seqno released, told; ///< released frames of the peer; credit sent to the peer
};

/// The memory of a ring and the listeners of its changes.
struct ring_place {
  std::byte* base = nullptr;        ///< 64-byte aligned, terms.bytes() long
  std::shared_ptr<void> memory;     ///< keeps it mapped
  std::shared_ptr<listener> mine;   ///< rung when this side closes it; may be null
  std::shared_ptr<listener> theirs; ///< rung after every change; null: the peer never sleeps on it
  ring_terms terms;
  /// Of a ring that a device's stream and an adapter share (net/rdma/direct_link.hpp): what the
  /// host has to read or write, in memory of its own. The words that this side writes, and `ended`;
  /// null: those at `base`.
  ring_control* words = nullptr;
  frame_header* headers = nullptr; ///< of the frames it sends, by slot; null: before each payload
  std::shared_ptr<stream_posts> posts{}; ///< null: the host posts, or no posts are needed
};

/// Initialises the words of an empty ring in zeroed memory.
void make_ring(std::byte* base, const ring_terms& terms);

/// Whether the memory holds a ring of exactly these terms, as its creator wrote it.
bool is_ring(const std::byte* base, const ring_terms& terms);

/// A word as both sides read and write it: acquire, release.
uint64_t load(const ring_word& word);
void store(ring_word& word, uint64_t value);

/// Stores the reason unless one is set.
void end_ring(ring_control& ring, channel_state why);
channel_state state_of(const ring_control& ring);

/// Common part of both kinds of end.
class ring_end {
public:
  explicit ring_end(ring_place place);

  channel_state state() const;
  void end(channel_state why);
  const ring_terms& terms() const { return place_.terms; }

protected:
  ring_control& control() const { return *reinterpret_cast<ring_control*>(place_.base); }
  std::byte* slot(uint32_t index) const {
    return place_.base + slot_offset(place_.terms.slot_bytes, index);
  }
  uint32_t next(uint32_t index) const { return index + 1 == place_.terms.slots ? 0 : index + 1; }
  void tell() const {
    if (place_.theirs) place_.theirs->ring();
  }
  /// Whether a word of the peer is plausible: of our epoch, and `to` at most all slots ahead of
  /// `from`. Closes the ring as stale or torn otherwise.
  bool plausible(seqno from, seqno to);

  ring_place place_;
};

class ring_sender final : public channel_sender, private ring_end {
public:
  explicit ring_sender(ring_place place, ring_identity self = {});

  std::byte* reserve(size_t bytes) override;
  void commit(const frame_tag& tag) override;
  size_t slot_bytes() const override { return terms().slot_bytes; }
  channel_state state() const override { return ring_end::state(); }
  void end(channel_state why) override { ring_end::end(why); }

private:
  ring_identity self_;
  seqno sent_;
  seqno seen_released_;
  uint32_t index_ = 0;
  uint32_t reserved_bytes_ = 0;
  uint32_t without_crc_ = 0; ///< frames since the last one with a CRC
};

class ring_receiver final : public channel_receiver, private ring_end {
public:
  explicit ring_receiver(ring_place place);

  const frame* peek(size_t ahead) override;
  void release() override;
  channel_state state() const override { return ring_end::state(); }
  void end(channel_state why) override { ring_end::end(why); }

private:
  bool check(uint32_t index);

  std::vector<frame> frames_; ///< by slot: copies of checked headers
  seqno released_;
  uint32_t index_ = 0;   ///< slot of the oldest frame
  uint64_t checked_ = 0; ///< frames from the oldest on that have been checked
  uint64_t arrived_ = 0; ///< frames from the oldest on, as of the last poll
};

/// A header without its two CRCs.
frame_header make_header(const frame_tag& tag, uint32_t payload_bytes, const ring_terms& terms,
                         ring_identity self);

/// The last step of building a header.
void seal(frame_header& x);

/// The error of a header received on a channel of these terms; `open` when it is valid.
channel_state check_header(const frame_header& x, const ring_terms& terms);

frame_tag tag_of(const frame_header& x);

} // namespace lamella::gpu
