/// Sums of a device and a peer, whose stream posts its frames and credits into the queue of an mlx5
/// adapter in software, on a device of any kind: what net/rdma/direct_link.hpp does for `fhbn`, in
/// memory of the host that the device maps, because that adapter reads no other.
#pragma once

#include "net/rdma/mlx5/software_hca.hpp"
#include "tests/gpu/runners/adapter_runs.hpp"

namespace lamella::gpu::test {

namespace mlx5 = net::mlx5;

/// The rings of one side, which its streams post, and those of the peer, alike.
struct posted_rings {
  posted_rings(device& d, const ring_terms& t, bool stream_rings)
      : on{d}, terms{t}, memory{d.make_adapter_memory(sizeof(mlx5::send_queue),
                                                      parts_at(t) + 65'536)},
        peer(parts_at(t) / sizeof(ring_word)) {
    for (auto* side : {memory.host.get(), peer_at(0)}) {
      make_ring(side, terms);
      make_ring(side + terms.bytes(), terms);
    }
    auto* at = memory.host.get() + parts_at(terms);
    const auto take = [&](size_t bytes) { return std::exchange(at, at + bytes); };
    auto& q = *new (take(slot_room(sizeof(mlx5::send_queue)))) mlx5::send_queue{};
    words = reinterpret_cast<ring_word*>(take(2 * sizeof(ring_word)));
    q.ring = reinterpret_cast<mlx5::wqe_block*>(take(blocks * sizeof(mlx5::wqe_block)));
    q.mask = blocks - 1;
    q.number = 0x1234;
    q.record = reinterpret_cast<uint32_t*>(take(64)) + 1;
    auto* line = reinterpret_cast<unsigned char*>(take(64));
    q.completion = reinterpret_cast<uint32_t*>(line + mlx5::completion_word_at);
    q.blue_flame = reinterpret_cast<uint64_t*>(take(512));
    q.blue_flame_bytes = 256;
    q.published = &words[1].value;
    const auto key = [&](std::byte* base, size_t bytes, mlx5::remote_rights rights) {
      return mlx5::be32(hca.register_memory(base, bytes, rights));
    };
    auto* out = memory.host.get() + terms.bytes();
    q.local = {reinterpret_cast<uint64_t>(out), key(out, terms.bytes(), mlx5::remote_rights::none)};
    q.remote = {reinterpret_cast<uint64_t>(peer_at(0)),
                key(peer_at(0), parts_at(terms), mlx5::remote_rights::write)};
    q.arena_bytes = parts_at(terms);
    queue = &q;
    place = hca.attach(q, line);
    posts = std::make_shared<stream_posts>();
    posts->queue = memory.data.get();
    posts->birth = reinterpret_cast<const std::byte*>(&q);
    posts->ready = &words[0].value;
    posts->published = q.published;
    posts->rings = stream_rings;
    posts->out_at = terms.bytes();
    posts->bytes = &sent_bytes;
    posts->released = posts->told = terms.first();
  }

  rank_link ends() {
    ring_place sends{memory.host.get() + terms.bytes(), memory.host, nullptr, nullptr, terms};
    sends.posts = posts;
    auto takes = sends;
    takes.base = memory.host.get();
    return {on.make_sender(sends, {}), on.make_receiver(takes)};
  }
  /// From now on streams post.
  void open() { store(words[0], 1); }

  /// What the adapter does, and who rings for streams that do not.
  void work() {
    if (!posts->rings) {
      const auto produced = load(words[1]);
      if (produced != rung) {
        *queue->record = mlx5::record_value(produced);
        std::atomic_ref{queue->blue_flame[half ? 32 : 0]}.store(
            mlx5::plain_doorbell(produced - 1, queue->number), std::memory_order_release);
        half = !half;
        rung = produced;
      }
    }
    while (hca.step()) {
    }
  }

  static size_t parts_at(const ring_terms& t) { return 2 * t.bytes(); }
  std::byte* peer_at(size_t at) { return reinterpret_cast<std::byte*>(peer.data()) + at; }
  ring_control& peer_control(bool of_out) {
    return *reinterpret_cast<ring_control*>(peer_at(of_out ? terms.bytes() : 0));
  }
  ring_control& own_control(bool of_out) {
    return *reinterpret_cast<ring_control*>(memory.host.get() + (of_out ? terms.bytes() : 0));
  }

  static constexpr uint32_t blocks = 16; ///< fewer than the frames take, so that the ring wraps
  device& on;
  const ring_terms terms;
  adapter_memory memory;
  std::vector<ring_word> peer;
  mlx5::software_hca hca;
  ring_word* words = nullptr; ///< ready, published
  mlx5::send_queue* queue = nullptr;
  std::shared_ptr<stream_posts> posts;
  std::atomic<uint64_t> sent_bytes{0};
  size_t place = 0;
  uint64_t rung = 0;
  bool half = false;
};

/// The adapter and the peer: as answer_sums.
inline bool answer_posts(posted_rings& x, const std::vector<float>& device_parts,
                         const std::vector<float>& own_parts) {
  constexpr size_t floats = size_t{adapter_rows} * adapter_width;
  constexpr size_t bytes = floats * sizeof(float);
  const auto comes = [&](const ring_word& word, seqno value) {
    const auto until = clock::now() + std::chrono::minutes{1};
    while (load(word) < value) {
      if (clock::now() > until) return false;
      x.work();
      std::this_thread::yield();
    }
    return true;
  };
  bool good = true;
  auto count = x.terms.first();
  for (uint32_t i = 0; i < adapter_sums; ++i) {
    const auto at = slot_offset(x.terms.slot_bytes, i % x.terms.slots);
    if (!comes(x.peer_control(false).sent, after(count))) return false;
    frame_header header;
    std::memcpy(&header, x.peer_at(at), sizeof header);
    good = good && header.payload_bytes == bytes && header.iteration == i;
    good =
        good
        && std::memcmp(x.peer_at(at) + sizeof header, device_parts.data() + i * floats, bytes) == 0;
    store(x.own_control(true).released, after(count));
    // Credits ride along with frames, so that of all slots one comes in time.
    if (i >= x.terms.slots && !comes(x.peer_control(true).released, after(count) - x.terms.slots))
      return false;
    frame_tag tag;
    tag.iteration = i;
    tag.kind = frame_kind::partial;
    header = make_header(tag, bytes, x.terms, {});
    seal(header);
    auto* to = x.memory.host.get() + at;
    std::memcpy(to, &header, sizeof header);
    std::memcpy(to + sizeof header, own_parts.data() + i * floats, bytes);
    count = after(count);
    store(x.own_control(false).sent, count);
  }
  return good;
}

/// Eleven sums through rings of four slots, by posts of the device's stream.
inline void sum_by_posts(device& d, bool stream_rings) {
  ring_terms terms;
  terms.slot_bytes = slot_room(size_t{adapter_rows} * adapter_width * sizeof(float));
  posted_rings rings{d, terms, stream_rings};
  ring_collective sums{0, {rank_link{}, rings.ends()}, d.ops()};
  constexpr size_t floats = size_t{adapter_sums} * adapter_rows * adapter_width;
  tests::splitmix random{55};
  std::vector<float> parts(floats), theirs(floats), expected(floats), got(floats);
  for (size_t i = 0; i < floats; ++i) {
    parts[i] = random.normal();
    theirs[i] = random.normal();
    expected[i] = parts[i] + theirs[i];
  }
  const auto memory = d.allocate(floats * sizeof(float));
  d.write(memory->data(), std::as_bytes(std::span{parts}));
  const auto stream = d.make_stream("sums");
  std::promise<work_status> end;
  stream->launch(
      std::make_shared<sums_over_adapter>(sums, reinterpret_cast<float*>(memory->data())),
      clock::now() + std::chrono::minutes{1}, [&](work_status x) { end.set_value(x); });
  rings.open(); // the stream waits for it
  CHECK(answer_posts(rings, parts, theirs));
  CHECK(end.get_future().get() == work_status::done);
  d.read(std::as_writable_bytes(std::span{got}), memory->data());
  CHECK(got == expected);
  const auto report = rings.hca.report(rings.place);
  CHECK_MESSAGE(!report.error, report.why);
  CHECK(rings.sent_bytes == floats * sizeof(float));
}

} // namespace lamella::gpu::test
