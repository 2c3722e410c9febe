/// Sums of a device and a peer behind an adapter, on a device of any kind: what
/// net/rdma/direct_link.hpp does, with a thread that copies for the adapters and the peer.
#pragma once

#include "gpu/ring/ring_collective.hpp"
#include "gpu/ring/ring_end.hpp"
#include "tests/random.hpp"

#include <doctest/doctest.h>

#include <cstring>
#include <future>
#include <thread>

namespace lamella::gpu::test {

constexpr uint32_t adapter_width = 64, adapter_rows = 3, adapter_sums = 11; // more than slots

/// On the device: one sum after another.
class sums_over_adapter final : public work {
public:
  sums_over_adapter(collective& sums, float* parts) : sums_{sums}, parts_{parts} {}
  progress advance(kernel_context context) override {
    auto* x = parts_ + size_t{next_} * adapter_rows * adapter_width;
    if (!sums_.all_reduce({{.iteration = next_}, x, adapter_rows, adapter_width}, context))
      return progress::blocked;
    return ++next_ == adapter_sums ? progress::done : progress::advanced;
  }

private:
  collective& sums_;
  float* parts_;
  uint32_t next_ = 0;
};

/// The rings of one side as link_memory lays them out, without its own words.
struct adapter_rings {
  adapter_rings(device& d, const ring_terms& t)
      : on{d}, terms{t}, memory{d.make_adapter_memory(2 * t.bytes(),
                                                      2 * sizeof(ring_control)
                                                          + t.slots * sizeof(frame_header))},
        out{reinterpret_cast<ring_control*>(memory.host.get())}, in{out + 1},
        headers{reinterpret_cast<frame_header*>(in + 1)} {
    for (auto* words : {out, in}) make_ring(reinterpret_cast<std::byte*>(words), terms);
    alignas(64) std::byte empty[sizeof(ring_control)] = {};
    make_ring(empty, terms);
    on.write(memory.data.get(), empty);
    on.write(memory.data.get() + terms.bytes(), empty);
  }
  rank_link ends() {
    ring_place sends{memory.data.get(), memory.data, nullptr, nullptr, terms};
    auto takes = sends;
    sends.words = out;
    sends.headers = headers;
    takes.base += terms.bytes();
    takes.words = in;
    return {on.make_sender(sends, {}), on.make_receiver(takes)};
  }
  std::byte* slot(bool of_out, uint32_t index) const {
    return memory.data.get() + (of_out ? 0 : terms.bytes()) + slot_offset(terms.slot_bytes, index);
  }
  /// As an adapter writes it, after all it has written before.
  void write_word(bool of_out, size_t at, seqno value) {
    on.write(memory.data.get() + (of_out ? 0 : terms.bytes()) + at,
             std::as_bytes(std::span{&value, 1}));
  }

  device& on;
  const ring_terms terms;
  adapter_memory memory;
  ring_control *out, *in;
  frame_header* headers;
};

/// Waits for a word that the device raises in host memory; false when it does not come.
inline bool comes(const ring_word& word, seqno value) {
  const auto until = clock::now() + std::chrono::minutes{1};
  while (load(word) < value) {
    if (clock::now() > until) return false;
    std::this_thread::yield();
  }
  return true;
}

/// The adapters and the peer: takes each part of the device, and sends its own. Whether all parts
/// came as expected.
inline bool answer_sums(adapter_rings& x, const std::vector<float>& device_parts,
                        const std::vector<float>& own_parts) {
  constexpr size_t floats = size_t{adapter_rows} * adapter_width;
  constexpr size_t bytes = floats * sizeof(float);
  bool good = true;
  auto count = x.terms.first();
  for (uint32_t i = 0; i < adapter_sums; ++i) {
    const auto slot = i % x.terms.slots;
    if (!comes(x.out->sent, after(count))) return false;
    good = good && x.headers[slot].payload_bytes == bytes && x.headers[slot].iteration == i;
    std::vector<float> part(floats);
    x.on.read(std::as_writable_bytes(std::span{part}), x.slot(true, slot) + sizeof(frame_header));
    good = good && std::memcmp(part.data(), device_parts.data() + i * floats, bytes) == 0;
    x.write_word(true, offsetof(ring_control, released), after(count));
    if (i >= x.terms.slots && !comes(x.in->released, after(count) - x.terms.slots)) return false;
    frame_tag tag;
    tag.iteration = i;
    tag.kind = frame_kind::partial;
    auto header = make_header(tag, bytes, x.terms, {});
    seal(header);
    x.on.write(x.slot(false, slot), std::as_bytes(std::span{&header, 1}));
    x.on.write(x.slot(false, slot) + sizeof header,
               std::as_bytes(std::span{own_parts}.subspan(i * floats, floats)));
    count = after(count);
    x.write_word(false, offsetof(ring_control, sent), count);
  }
  return good;
}

/// Eleven sums through rings of four slots in the device's own memory.
inline void sum_through_adapter(device& d) {
  ring_terms terms;
  terms.slot_bytes = slot_room(size_t{adapter_rows} * adapter_width * sizeof(float));
  adapter_rings rings{d, terms};
  ring_collective sums{0, {rank_link{}, rings.ends()}, d.ops()};
  constexpr size_t floats = size_t{adapter_sums} * adapter_rows * adapter_width;
  tests::splitmix random{54};
  std::vector<float> parts(floats), theirs(floats), expected(floats), got(floats);
  for (size_t i = 0; i < floats; ++i) {
    parts[i] = random.normal();
    theirs[i] = random.normal();
    expected[i] = parts[i] + theirs[i];
  }
  const auto memory = d.allocate(floats * sizeof(float));
  d.write(memory->data(), std::as_bytes(std::span{parts}));
  auto peer = std::async(std::launch::async, [&] { return answer_sums(rings, parts, theirs); });
  const auto stream = d.make_stream("sums");
  std::promise<work_status> end;
  stream->launch(
      std::make_shared<sums_over_adapter>(sums, reinterpret_cast<float*>(memory->data())),
      clock::now() + std::chrono::minutes{1}, [&](work_status x) { end.set_value(x); });
  CHECK(end.get_future().get() == work_status::done);
  CHECK(peer.get());
  d.read(std::as_writable_bytes(std::span{got}), memory->data());
  CHECK(got == expected);
}

} // namespace lamella::gpu::test
