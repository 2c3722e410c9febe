// Waits and posts of streams: how they meet, and how they end when nothing comes.
#include "gpu/cuda/bench/measure.cuh"
#include "gpu/cuda/stream/channel.cuh"
#include "tests/gpu/cuda/device_support.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <initializer_list>

using namespace lamella::gpu;
using namespace lamella::gpu::cuda;
using namespace lamella::gpu::cuda::bench;

namespace {

/// One end of a channel on a stream of its own.
struct end {
  device_buffer<uint64_t> sent{1}, received{1};
  device_buffer<uint32_t> failed{1};
  mapped_buffer<channel_control> control{1};
  stream s;
  channel_port port(uint64_t deadline_ms = 10'000) const {
    return {control.get(), failed.get(), deadline_ms * 1'000'000};
  }
  void post(uint64_t* word, channel_turn turn) {
    check(enqueue_post(s, word, turn, port()), "post");
  }
  void wait(const uint64_t* word, channel_turn turn, uint64_t deadline_ms = 10'000) {
    check(enqueue_wait(s, word, turn, port(deadline_ms)), "wait");
  }
  channel_status status() const { return static_cast<channel_status>(control->status); }
};

__global__ void write_all(uint64_t* to, uint32_t words, const uint64_t* round, uint32_t* arrived,
                          uint64_t* word, channel_turn turn, channel_port port) {
  const auto value = *round + 1;
  for (auto i = blockIdx.x * blockDim.x + threadIdx.x; i < words; i += gridDim.x * blockDim.x)
    to[i] = value * 1000 + i;
  post_by_last_block(arrived, word, turn, port);
}

__global__ void read_all(const uint64_t* from, uint32_t words, const uint64_t* round,
                         uint32_t* wrong) {
  await_previous_kernel();
  const auto value = *round;
  for (auto i = blockIdx.x * blockDim.x + threadIdx.x; i < words; i += gridDim.x * blockDim.x)
    if (from[i] != value * 1000 + i) atomicAdd(wrong, 1u);
}

} // namespace

TEST_CASE("channel: a payload of many blocks is whole behind a wait, round after round") {
  if (!test::device_there()) return;
  for (const bool early : {false, true}) {
    constexpr uint32_t words = 1 << 16, blocks = 40, rounds = 500;
    end a, b;
    device_buffer<uint64_t> payload{words}, there{1}, back{1};
    device_buffer<uint32_t> arrived{1}, wrong{1};
    const graph writer{a.s, [&](cudaStream_t s) {
                         write_all<<<blocks, 128, 0, s>>>(payload.get(), words, a.sent.get(),
                                                          arrived.get(), there.get(),
                                                          {0, a.sent.get()}, a.port());
                         check(cudaGetLastError(), "write");
                         a.wait(back.get(), {0, a.received.get()});
                       }};
    const graph reader{b.s, [&](cudaStream_t s) {
                         b.wait(there.get(), {0, b.received.get()});
                         if (early)
                           check(launch_early(s, blocks, 128, 0, read_all, payload.get(), words,
                                              b.received.get(), wrong.get()),
                                 "read");
                         else
                           read_all<<<blocks, 128, 0, s>>>(payload.get(), words, b.received.get(),
                                                           wrong.get());
                         check(cudaGetLastError(), "read");
                         b.post(back.get(), {0, b.sent.get()});
                       }};
    check(cudaDeviceSynchronize(), "before the rounds");
    for (uint32_t i = 0; i < rounds; ++i) {
      reader.launch(b.s);
      writer.launch(a.s);
    }
    a.s.wait();
    b.s.wait();
    CHECK(a.status() == channel_status::ok);
    CHECK(b.status() == channel_status::ok);
    CHECK(wrong.read()[0] == 0);
    CHECK(there.read()[0] == rounds);
    CHECK(arrived.read()[0] == 0);
  }
}

TEST_CASE("channel: nothing is posted and nothing waits behind a deadline that passed") {
  if (!test::device_there()) return;
  end a;
  device_buffer<uint64_t> never{1}, theirs{1};
  const auto start = std::chrono::steady_clock::now();
  a.wait(never.get(), {1, nullptr}, 20);
  for (int i = 0; i < 50; ++i) a.wait(never.get(), {1, nullptr}, 60'000);
  a.post(theirs.get(), {1, nullptr});
  a.s.wait();
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds{30});
  CHECK(a.status() == channel_status::timeout);
  CHECK(theirs.read()[0] == 0);
}

TEST_CASE("channel: the abort word ends a wait, wherever the polled word lies") {
  if (!test::device_there()) return;
  for (const bool mapped : {false, true}) {
    end a;
    device_buffer<uint64_t> here{1};
    mapped_buffer<uint64_t> there{8};
    a.wait(mapped ? there.get() : here.get(), {1, nullptr}, 60'000);
    std::atomic_ref<uint32_t>{a.control->abort}.store(1);
    a.s.wait();
    CHECK(a.status() == channel_status::aborted);
  }
}

TEST_CASE("channel: the end of a ring ends a wait, but not before what was sent is seen") {
  if (!test::device_there()) return;
  for (const bool sent : {false, true}) {
    end a;
    mapped_buffer<uint64_t> word{8}, ended{8};
    const auto late = std::chrono::steady_clock::now() + std::chrono::seconds{20};
    auto port = a.port(60'000);
    port.ended = ended.get();
    check(enqueue_wait(a.s, word.get(), {1, nullptr}, port), "wait");
    if (sent) std::atomic_ref<uint64_t>{*word}.store(1, std::memory_order_release);
    std::atomic_ref<uint64_t>{*ended}.store(1, std::memory_order_release);
    a.s.wait();
    CHECK(std::chrono::steady_clock::now() < late);
    CHECK(a.status() == (sent ? channel_status::ok : channel_status::ended));
  }
}

TEST_CASE("channel: epochs: an older word is waited for, a newer one ends the wait") {
  if (!test::device_there()) return;
  device_buffer<uint64_t> word{1};
  word.write(make_seqno(2, 1000));
  end late;
  late.wait(word.get(), {make_seqno(3, 1), nullptr}, 20);
  late.s.wait();
  CHECK(late.status() == channel_status::timeout);
  end stale;
  stale.wait(word.get(), {make_seqno(1, 5), nullptr});
  stale.s.wait();
  CHECK(stale.status() == channel_status::stale);
  end right;
  right.wait(word.get(), {make_seqno(2, 1000), nullptr});
  right.s.wait();
  CHECK(right.status() == channel_status::ok);
}

TEST_CASE("channel: a CPU thread and a stream answer each other through mapped memory") {
  if (!test::device_there()) return;
  end a;
  mapped_buffer<uint64_t> asked{8}, answered{8};
  constexpr uint64_t rounds = 300;
  for (uint64_t i = 0; i < rounds; ++i) {
    a.post(asked.get(), {0, a.sent.get()});
    a.wait(answered.get(), {0, a.received.get()});
  }
  const std::atomic_ref<uint64_t> question{*asked}, answer{*answered};
  const auto end_at = std::chrono::steady_clock::now() + std::chrono::seconds{20};
  uint64_t seen = 0;
  while (seen < rounds && std::chrono::steady_clock::now() < end_at) {
    const auto now = question.load(std::memory_order_acquire);
    if (now == seen) continue;
    CHECK(now == seen + 1); // each question waits for the answer to the one before
    seen = now;
    answer.store(now, std::memory_order_release);
  }
  a.s.wait();
  CHECK(seen == rounds);
  CHECK(a.status() == channel_status::ok);
}
