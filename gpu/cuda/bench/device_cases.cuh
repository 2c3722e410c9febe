/// Round trips in which no host call lies between the two ends.
///
/// A  two resident kernels: the floor of polling device memory.
/// A2 streams of kernels, post and wait of gpu/cuda/stream/channel.cuh between them, in device
/// memory. A3 the same with the post at the end of the kernel that writes, and the kernel behind a
/// wait made
///    ready while the wait runs.
/// B  the same with the words in host memory and a CPU thread that answers them, without payload.
/// B2 the same with payload in host memory, which the CPU thread turns into its answer.
#pragma once

#include "gpu/cuda/bench/round_trip.cuh"

#include <atomic>
#include <thread>

namespace lamella::gpu::cuda::bench {

/// One end of A: a block that stays. Every thread of it works; one polls.
static __global__ void resident_kernel(bool first, uint64_t* to, const uint64_t* from,
                                       uint32_t words, uint64_t* theirs, const uint64_t* mine,
                                       uint32_t rounds, record notes, channel_port port) {
  __shared__ bool go;
  for (uint32_t round = 1; round <= rounds; ++round) {
    if (first) {
      for (auto i = threadIdx.x; i < words; i += blockDim.x) to[i] = word_of(round, i);
      __syncthreads();
      if (threadIdx.x == 0) {
        notes.produced[round] = global_ns();
        store_release(theirs, round);
      }
    }
    if (threadIdx.x == 0) {
      go = wait_for(mine, round, port) == channel_status::ok;
      if (first) notes.consumed[round] = global_ns();
    }
    __syncthreads();
    if (!go) return;
    if (first) {
      uint32_t wrong = 0;
      for (auto i = threadIdx.x; i < words; i += blockDim.x)
        wrong += from[i] != (word_of(round, i) ^ answer_mask);
      if (wrong) atomicAdd(notes.wrong, wrong);
    } else {
      for (auto i = threadIdx.x; i < words; i += blockDim.x) to[i] = from[i] ^ answer_mask;
    }
    __syncthreads();
    if (!first && threadIdx.x == 0) store_release(theirs, round);
  }
}

inline outcome resident_case(const effort& e) {
  side a, b;
  notes n{e};
  device_buffer<uint64_t> message{e.words()}, reply{e.words()};
  device_buffer<uint64_t> word_a{1}, word_b{1};
  resident_kernel<<<1, 1024, 0, a.s>>>(true, message.get(), reply.get(), e.words(), word_b.get(),
                                       word_a.get(), e.all(), n.get(), a.port());
  resident_kernel<<<1, 1024, 0, b.s>>>(false, reply.get(), message.get(), e.words(), word_a.get(),
                                       word_b.get(), e.all(), n.get(), b.port());
  check(cudaGetLastError(), "resident kernels");
  a.s.wait();
  b.s.wait();
  return outcome_of(e, n, a, false);
}

inline outcome stream_case(const effort& e) {
  side a, b;
  notes n{e};
  device_buffer<uint64_t> message{e.words()}, reply{e.words()};
  device_buffer<uint64_t> word_a{1}, word_b{1};
  run_ahead(
      e, a, b,
      [&](cudaStream_t s, bool) {
        produce(s, e, message.get(), a, n);
        check(enqueue_post(s, word_b.get(), a.next_sent(), a.port()), "post");
        check(enqueue_wait(s, word_a.get(), a.next_received(), a.port()), "wait");
        consume(s, e, reply.get(), answer_mask, a, n);
      },
      [&](cudaStream_t s, bool) {
        check(enqueue_wait(s, word_b.get(), b.next_received(), b.port()), "wait");
        answer(s, e, message.get(), reply.get());
        check(enqueue_post(s, word_a.get(), b.next_sent(), b.port()), "post");
      });
  wait_for_both(a, b);
  return outcome_of(e, n, a, true);
}

inline outcome early_case(const effort& e) {
  side a, b;
  notes n{e};
  device_buffer<uint64_t> message{e.words()}, reply{e.words()};
  device_buffer<uint64_t> word_a{1}, word_b{1};
  device_buffer<uint32_t> arrived_a{1}, arrived_b{1};
  const own_post asks{arrived_a.get(), word_b.get(), a.next_sent(), a.port()};
  const own_post answers{arrived_b.get(), word_a.get(), b.next_sent(), b.port()};
  run_ahead(
      e, a, b,
      [&](cudaStream_t s, bool) {
        produce(s, e, message.get(), a, n, asks);
        check(enqueue_wait(s, word_a.get(), a.next_received(), a.port()), "wait");
        consume_early(s, e, reply.get(), answer_mask, a, n);
      },
      [&](cudaStream_t s, bool) {
        check(enqueue_wait(s, word_b.get(), b.next_received(), b.port()), "wait");
        answer_early(s, e, message.get(), reply.get(), answers);
      });
  wait_for_both(a, b);
  return outcome_of(e, n, a, true);
}

/// A CPU thread that does `pass` again and again until it is destroyed.
template <class F> class helper_thread {
public:
  explicit helper_thread(F pass)
      : pass_{std::move(pass)}, thread_{[this] {
          while (!stop_.load(std::memory_order_relaxed)) pass_();
        }} {}
  ~helper_thread() {
    stop_ = true;
    thread_.join();
  }

private:
  F pass_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

/// The payload stays on the device: this is the price of telling and asking alone.
inline outcome host_answer_case(const effort& e) {
  side a;
  notes n{e};
  device_buffer<uint64_t> message{e.words()};
  mapped_buffer<uint64_t> asked{8}, answered{8}; // a line each
  const graph g{a.s, [&](cudaStream_t s) {
                  for (uint32_t i = 0; i < e.unroll; ++i) {
                    produce(s, e, message.get(), a, n);
                    check(enqueue_post(s, asked.get(), a.next_sent(), a.port()), "post");
                    check(enqueue_wait(s, answered.get(), a.next_received(), a.port()), "wait");
                    consume(s, e, message.get(), 0, a, n);
                  }
                }};
  check(cudaDeviceSynchronize(), "before the rounds");
  {
    const helper_thread echo{[&] {
      const auto word = std::atomic_ref<uint64_t>{*asked}.load(std::memory_order_acquire);
      std::atomic_ref<uint64_t>{*answered}.store(word, std::memory_order_release);
    }};
    for (uint32_t i = 0; i < e.all(); i += e.unroll) g.launch(a.s);
    a.s.wait();
  }
  return outcome_of(e, n, a, true);
}

/// What answer_kernel does, by a CPU thread.
inline void answer_on_host(const uint64_t* from, uint64_t* to, uint32_t words) {
  for (uint32_t i = 0; i < words; ++i) to[i] = from[i] ^ answer_mask;
}

inline outcome host_payload_case(const effort& e) {
  side a;
  notes n{e};
  mapped_buffer<uint64_t> message{e.words()}, reply{e.words()};
  mapped_buffer<uint64_t> asked{8}, answered{8};
  const graph g{a.s, [&](cudaStream_t s) {
                  for (uint32_t i = 0; i < e.unroll; ++i) {
                    produce(s, e, message.get(), a, n);
                    check(enqueue_post(s, asked.get(), a.next_sent(), a.port()), "post");
                    check(enqueue_wait(s, answered.get(), a.next_received(), a.port()), "wait");
                    consume_early(s, e, reply.get(), answer_mask, a, n);
                  }
                }};
  check(cudaDeviceSynchronize(), "before the rounds");
  uint64_t seen = 0;
  {
    const helper_thread host{[&] {
      const auto word = std::atomic_ref<uint64_t>{*asked}.load(std::memory_order_acquire);
      if (word == seen) return;
      seen = word;
      answer_on_host(message.get(), reply.get(), e.words());
      std::atomic_ref<uint64_t>{*answered}.store(word, std::memory_order_release);
    }};
    for (uint32_t i = 0; i < e.all(); i += e.unroll) g.launch(a.s);
    a.s.wait();
  }
  return outcome_of(e, n, a, true);
}

} // namespace lamella::gpu::cuda::bench
