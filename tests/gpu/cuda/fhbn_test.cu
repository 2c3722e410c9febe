// Kernels that post their own sends, against the adapter in software: rings, records, registers and
// payload in pinned host memory, queue state in device memory, as on a host whose adapter reads
// them.
#include "gpu/cuda/bench/measure.cuh"
#include "net/rdma/fhbn_device.hpp"
#include "net/rdma/mlx5/doorbell_proxy.hpp"
#include "net/rdma/mlx5/software_hca.hpp"
#include "tests/gpu/cuda/device_support.hpp"

#include <doctest/doctest.h>

#include <cstring>
#include <thread>

using namespace lamella;
using namespace lamella::gpu::cuda;
using namespace lamella::gpu::cuda::bench;
using namespace lamella::net;
using namespace lamella::net::mlx5;

namespace {

template <class T> uint64_t address(const buffer<T, true>& b) {
  return reinterpret_cast<uint64_t>(b.get());
}

/// A sending GPU and the memory of a peer that only watches.
struct one_way {
  static constexpr uint32_t blocks = 16, arena_words = 1024;

  explicit one_way(hca_faults faults = {}) : hca{faults} {
    q.ring = ring.get();
    q.mask = blocks - 1;
    q.number = 0xabcdef;
    q.record = record.get() + 1;
    q.blue_flame = registers.get();
    q.blue_flame_bytes = 256;
    q.completion = reinterpret_cast<const uint32_t*>(completion.get() + completion_word_at);
    q.published = published.get();
    q.local = {address(out),
               be32(hca.register_memory(out.get(), arena_words * 8, remote_rights::none))};
    remote_key = hca.register_memory(in.get(), arena_words * 8, remote_rights::write);
    q.remote = {address(in), be32(remote_key)};
    q.arena_bytes = arena_words * 8;
    q.seqno = {address(seqno), be32(hca.register_memory(seqno.get(), 8, remote_rights::write))};
    staged_region = {address(staged),
                     be32(hca.register_memory(staged.get(), blocks * 8, remote_rights::none))};
    hca.attach(q, completion.get());
    proxy.attach(q);
    queue.write(q);
    for (uint32_t i = 0; i < arena_words; ++i) out.get()[i] = 0x0123456789abcdefu * (i + 1);
  }

  channel_port port(uint64_t deadline_ms = 5000) const {
    return {control.get(), failed.get(), deadline_ms * 1'000'000};
  }
  void send(uint32_t bytes, doorbell how, channel_port p) {
    check(enqueue_send(s, sender(p), {0, 64, bytes}, {0, counter.get()}, how), "send");
  }
  void push(uint32_t bytes, channel_port p) {
    check(enqueue_push(s, sender(p), {0, 64, bytes}, {0, counter.get()}), "push");
  }
  fhbn_sender sender(channel_port p) const { return {queue.get(), p, staged.get(), staged_region}; }
  /// Lets the adapter, and the proxy, work until the stream has nothing left, and then to the end.
  void drain() {
    while (cudaStreamQuery(s) == cudaErrorNotReady) work();
    s.wait();
    while (work()) {
    }
  }
  bool work() {
    const bool rang = proxy.pass();
    return hca.step() || rang;
  }
  channel_status status() const { return static_cast<channel_status>(control->status); }

  mapped_buffer<wqe_block> ring{blocks};
  mapped_buffer<uint32_t> record{16};
  mapped_buffer<uint64_t> registers{64}, published{8}, seqno{8}, staged{blocks};
  mapped_buffer<uint64_t> out{arena_words}, in{arena_words};
  mapped_buffer<unsigned char> completion{64};
  mapped_buffer<channel_control> control{1};
  device_buffer<send_queue> queue{1};
  device_buffer<uint64_t> counter{1};
  device_buffer<uint32_t> failed{1};
  stream s;
  send_queue q{};
  region staged_region{};
  uint32_t remote_key = 0;
  software_hca hca;
  doorbell_proxy proxy;
};

} // namespace

TEST_CASE("fhbn: a kernel writes the bytes that a CPU thread would") {
  if (!test::device_there()) return;
  one_way w;
  w.send(256, doorbell::store, w.port());
  w.drain();
  auto q = w.q;
  std::vector<wqe_block> ring(one_way::blocks);
  uint32_t record[2] = {};
  uint64_t registers[64] = {};
  q.ring = ring.data();
  q.record = &record[1];
  q.blue_flame = registers;
  auto stores = host_stores{host_stores::clock::now() + std::chrono::seconds{5}};
  REQUIRE(post_message(q, 0, 64, 256, 1, doorbell::store, stores) == post_status::ok);
  CHECK(std::memcmp(ring.data(), w.ring.get(), sizeof(wqe_block) * one_way::blocks) == 0);
  CHECK(record[1] == w.record.get()[1]);
  CHECK(registers[0] == w.registers.get()[0]);
  const auto queue = w.queue.read()[0];
  CHECK(queue.produced == q.produced);
  CHECK(queue.half == q.half);
}

TEST_CASE("fhbn: payload and seqno arrive by doorbell, by push and by the proxy") {
  if (!test::device_there()) return;
  for (const int way : {0, 1, 2})
    for (const uint32_t bytes : {8u, 64u, 4096u}) {
      INFO("way " << way << ", bytes " << bytes);
      one_way w;
      for (int i = 0; i < 100; ++i) {
        if (way == 1)
          w.push(bytes, w.port());
        else
          w.send(bytes, way == 0 ? doorbell::store : doorbell::proxy, w.port());
      }
      w.drain();
      CHECK(w.status() == channel_status::ok);
      const auto report = w.hca.report(0);
      INFO(report.why);
      CHECK_FALSE(report.error);
      CHECK(std::memcmp(w.in.get() + 8, w.out.get(), bytes) == 0);
      CHECK((way == 1 ? w.in.get()[8 + bytes / 8] : *w.seqno) == 100);
      if (way == 1) CHECK(report.pushes_taken + report.pushes_ignored > 0);
    }
}

TEST_CASE("fhbn: a captured graph sends on while the 16-bit index wraps") {
  if (!test::device_there()) return;
  one_way w;
  const graph g{w.s, [&](cudaStream_t) {
                  for (int i = 0; i < 200; ++i) w.send(64, doorbell::store, w.port());
                }};
  for (int i = 0; i < 170; ++i) g.launch(w.s); // 34000 messages of two blocks
  w.drain();
  CHECK(w.status() == channel_status::ok);
  CHECK_FALSE(w.hca.report(0).error);
  CHECK(*w.seqno == 34000);
  CHECK(w.queue.read()[0].produced == 68000);
}

TEST_CASE("fhbn: an error of the adapter ends the channel and nothing is posted after it") {
  if (!test::device_there()) return;
  one_way w;
  w.hca.revoke(w.remote_key);
  for (int i = 0; i < 40; ++i) w.send(64, doorbell::store, w.port());
  w.drain();
  CHECK(w.status() == channel_status::queue_error);
  CHECK(w.hca.report(0).first_syndrome == syndrome_remote_access);
  CHECK(*w.seqno == 0);
  CHECK(w.in.get()[8] == 0);
  CHECK(w.queue.read()[0].produced == one_way::blocks); // the ring was filled once and then left
}

TEST_CASE("fhbn: a full ring ends in the deadline, or when the host says so") {
  if (!test::device_there()) return;
  one_way w;
  for (int i = 0; i < 9; ++i) w.send(64, doorbell::store, w.port(20)); // nobody completes
  w.s.wait();
  CHECK(w.status() == channel_status::timeout);
  CHECK(w.queue.read()[0].produced == one_way::blocks);

  one_way x;
  for (int i = 0; i < 9; ++i) x.send(64, doorbell::store, x.port(60'000));
  std::atomic_ref<uint32_t>{x.control->abort}.store(1);
  x.s.wait();
  CHECK(x.status() == channel_status::aborted);
}

TEST_CASE("fhbn: a message that does not fit is refused before anything is written") {
  if (!test::device_there()) return;
  one_way w;
  w.send(one_way::arena_words * 8, doorbell::store, w.port()); // at offset 64 of the peer's arena
  w.drain();
  CHECK(w.status() == channel_status::no_room);
  CHECK(w.queue.read()[0].produced == 0);
}
