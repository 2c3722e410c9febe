/// RDMA adapters as links use them: memory that a peer's adapter may write, and one queue of writes
/// to the peer's (Lamina 4.1, with a CPU that posts).
///
/// This header needs neither the verbs headers nor the library: a program built or run without them
/// gets no device and the reason.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace lamella::net {

/// Parameters of a queue for the peer, sent in the handshake.
struct verbs_end {
  std::array<uint8_t, 16> address{}; ///< GID of the port
  uint64_t landing = 0;              ///< start of the landing memory, as addressed by its key
  uint64_t landing_bytes = 0;
  uint32_t key = 0;          ///< of the landing memory
  uint32_t queue = 0;        ///< 24 bits
  uint32_t first_packet = 0; ///< number of the first packet it sends, 24 bits, random
  uint16_t local_id = 0;     ///< InfiniBand only
  uint8_t packet_code = 0;   ///< largest packet: 128 << code bytes, 1 .. 5
  uint8_t unused = 0;
};
static_assert(sizeof(verbs_end) == 48);

/// Registered memory of this side: the part that the peer's adapter may write, and the part that
/// ours reads.
struct verbs_memory {
  std::span<std::byte> landing;        ///< the peer may write it and nothing else
  std::span<std::byte> sending;        ///< writes come from here, but for inline ones; may overlap
  const std::byte* exported = nullptr; ///< of a device: where the memory of `dma_buf` begins
  int dma_buf = -1;                    ///< of memory that holds both; -1: their addresses will do
};

/// One RDMA write.
struct verbs_write {
  const std::byte* from = nullptr; ///< in the sending memory; inline: anywhere
  uint32_t bytes = 0;              ///< inline: verbs_inline_max at most
  uint64_t to = 0;                 ///< from the beginning of the peer's landing memory
  bool inlined = false;            ///< the bytes are copied at once
};
constexpr uint32_t verbs_inline_max = 64; ///< a header

/// Retries of an adapter towards a silent peer: about a second in all.
constexpr uint8_t verbs_timeout_code = 15; ///< 4.096 us << code between two tries: 134 ms
constexpr uint8_t verbs_retries = 6;       ///< seven, the maximum, means infinite on some adapters

/// A connected queue of writes and its memory, for one pair of incarnations only (reliability A3).
/// Each has a protection domain and keys of its own, which are gone when it is destroyed. Used by
/// one thread at a time.
class verbs_queue {
public:
  virtual ~verbs_queue() = default;

  virtual verbs_end here() const = 0;

  /// Brings the queue up. The peer must not write before its own is up. Throws std::runtime_error.
  virtual void connect(const verbs_end& peer) = 0;

  /// Writes that can be posted now.
  virtual uint32_t room() const = 0;

  /// Most bytes of one write.
  virtual uint32_t write_bytes_max() const = 0;

  /// Posts them in order with one doorbell; at most room(). Few are signalled; the last one always
  /// if `tell`. Does not block. Throws std::runtime_error.
  virtual void post(std::span<const verbs_write> writes, bool tell) = 0;

  /// Polls completions. Returns the reason when a write has failed, after which no write succeeds
  /// any more. Does not block.
  virtual std::optional<std::string> poll() = 0;

  /// Whether everything up to the last write posted with `tell` has arrived, as far as poll()
  /// knows.
  virtual bool settled() const = 0;
};

namespace mlx5 {
struct send_queue;
}

/// A queue that device streams can post into directly, once it is connected.
class stream_queue : public verbs_queue {
public:
  /// The queue for the streams, which report their progress in `published`. From now on the host
  /// cannot post, and settled() refers to their posts.
  virtual const mlx5::send_queue& hand_over(uint64_t* published) = 0;

  /// Rings the doorbell for published posts, for streams that cannot. Does not block.
  virtual void ring() = 0;

  /// The adapter's register, which is rung; its page is not memory.
  virtual std::span<uint64_t> bell() const = 0;
};

/// Memory of the host that a device maps: where a queue's parts lie that its kernels write.
constexpr size_t stream_queue_bytes = size_t{192} << 10;

/// An opened adapter with an active port. Thread-safe.
class verbs_device {
public:
  virtual ~verbs_device() = default;

  /// "rxe0 port 1, RoCE v2 address ::ffff:10.0.0.1".
  virtual const std::string& name() const = 0;

  /// Registers the memory, which must outlive the queue, and makes a queue of `depth` writes or as
  /// many as the adapter allows. Pins the pages: takes about 0.3 ms per MiB. Throws
  /// std::runtime_error.
  virtual std::unique_ptr<verbs_queue> make_queue(const verbs_memory& memory, uint32_t depth) = 0;

  /// The same with a queue whose parts lie at `place`, which is zeroed, stream_queue_bytes long and
  /// on a page of its own. Where the adapter is none of those whose work requests we know
  /// (net/rdma/mlx5/wqe.hpp): std::runtime_error.
  virtual std::unique_ptr<stream_queue> make_stream_queue(const verbs_memory& /*memory*/,
                                                          std::byte* /*place*/) {
    throw std::runtime_error{name()
                             + " is not an mlx5 adapter: devices cannot post into its queues"};
  }
};

} // namespace lamella::net
