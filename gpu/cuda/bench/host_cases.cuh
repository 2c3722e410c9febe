/// The baseline: round trips driven by host threads, one per side, as without host bypass (Lamina,
/// section 4.1). Each side waits for its kernel, hands the message over, and launches the next
/// kernel when the answer is there. It is the leanest such loop: spinning threads, one
/// synchronisation per hop, no library in between, so that what a device saves is not flattered.
///
/// B-host  what B2 does by copy, event and launch: out, answered by the CPU, in.
/// D  the payload goes through pinned host memory: a copy out, a copy by the CPU, a copy in.
/// D2 the payload stays on the device: synchronisation and launches alone.
/// D3 D2 with the consumer and the next producer launched as one graph.
/// E  from the arrival of a seqno to the start of its consumer: launched ahead behind a wait
/// kernel,
///    or by a host thread that polls the same word. E-early: made ready while the wait runs.
#pragma once

#include "gpu/cuda/bench/device_cases.cuh"

#include <cstring>

namespace lamella::gpu::cuda::bench {

/// The substitute for a wire: a counter that one host thread raises and the other polls.
struct alignas(64) handover {
  std::atomic<uint32_t> round{0};
  /// Gives up when the peer has not come within the limit of a device's wait.
  bool wait(uint32_t wanted) const {
    const auto end = host_clock::now() + std::chrono::nanoseconds{wait_ns};
    while (round.load(std::memory_order_acquire) < wanted)
      if (host_clock::now() > end) return false;
    return true;
  }
};

class event {
public:
  event() { check(cudaEventCreateWithFlags(&e_, cudaEventDisableTiming), "event"); }
  ~event() { cudaEventDestroy(e_); }
  event(const event&) = delete;
  event& operator=(const event&) = delete;
  /// Waits for what the stream holds now; spins, as the device was told to.
  void pass(cudaStream_t s) {
    check(cudaEventRecord(e_, s), "record");
    check(cudaEventSynchronize(e_), "wait for an event");
  }

private:
  cudaEvent_t e_;
};

enum class host_way { staged, in_place, in_place_graph };

inline outcome host_driven_case(const effort& e, host_way way) {
  const bool staged = way == host_way::staged;
  side a, b;
  notes n{e};
  device_buffer<uint64_t> message{e.words()}, reply{e.words()};
  device_buffer<uint64_t> got_message{e.words()}, got_reply{e.words()};
  mapped_buffer<uint64_t> out_a{e.words()}, in_b{e.words()}, out_b{e.words()}, in_a{e.words()};
  handover to_a, to_b;
  const auto copy = [&](cudaStream_t s, uint64_t* to, const uint64_t* from) {
    check(cudaMemcpyAsync(to, from, e.bytes, cudaMemcpyDefault, s), "copy");
  };
  const auto* asked = staged ? got_message.get() : message.get();
  const auto* answered = staged ? got_reply.get() : reply.get();
  const auto finish = [&](cudaStream_t s) {
    consume(s, e, answered, answer_mask, a, n, 1);
    count_kernel<<<1, 1, 0, s>>>(a.sent.get(), a.received.get());
    produce(s, e, message.get(), a, n);
  };
  const graph ahead{a.s, finish};
  check(cudaDeviceSynchronize(), "before the rounds");

  std::thread peer{[&] {
    event done;
    for (uint32_t i = 1; i <= e.all() && to_b.wait(i); ++i) {
      if (staged) copy(b.s, got_message.get(), in_b.get());
      answer(b.s, e, asked, reply.get());
      if (staged) copy(b.s, out_b.get(), reply.get());
      done.pass(b.s);
      if (staged) std::memcpy(in_a.get(), out_b.get(), e.bytes);
      to_a.round.store(i, std::memory_order_release);
    }
  }};
  event done;
  produce(a.s, e, message.get(), a, n);
  for (uint32_t i = 1; i <= e.all(); ++i) {
    if (staged) copy(a.s, out_a.get(), message.get());
    done.pass(a.s);
    if (staged) std::memcpy(in_b.get(), out_a.get(), e.bytes);
    to_b.round.store(i, std::memory_order_release);
    if (!to_a.wait(i)) break;
    if (staged) copy(a.s, got_reply.get(), in_a.get());
    if (i == e.all()) { // there is no next message, and no room to note it
      consume(a.s, e, answered, answer_mask, a, n, 1);
    } else if (way == host_way::in_place_graph) {
      ahead.launch(a.s);
    } else {
      finish(a.s);
    }
  }
  peer.join();
  return outcome_of(e, n, a, false);
}

inline outcome host_answer_baseline(const effort& e) {
  side a;
  notes n{e};
  device_buffer<uint64_t> message{e.words()}, reply{e.words()};
  mapped_buffer<uint64_t> out{e.words()}, in{e.words()};
  event done;
  for (uint32_t i = 1; i <= e.all(); ++i) {
    produce(a.s, e, message.get(), a, n);
    check(cudaMemcpyAsync(out.get(), message.get(), e.bytes, cudaMemcpyDefault, a.s), "copy out");
    done.pass(a.s);
    answer_on_host(out.get(), in.get(), e.words());
    check(cudaMemcpyAsync(reply.get(), in.get(), e.bytes, cudaMemcpyDefault, a.s), "copy in");
    consume(a.s, e, reply.get(), answer_mask, a, n, 1);
    count_kernel<<<1, 1, 0, a.s>>>(a.sent.get(), a.received.get());
    done.pass(a.s); // the buffers are free again
  }
  return outcome_of(e, n, a, false);
}

/// Stands in for an adapter: waits `delay_ns`, notes the time, and raises the word.
static __global__ void arrive_kernel(uint64_t* word, uint64_t* counter, uint64_t delay_ns,
                                     record notes) {
  const auto value = *counter += 1;
  const auto end = global_ns() + delay_ns;
  uint64_t now = global_ns();
  while (now < end) now = global_ns();
  notes.produced[value] = now;
  store_release(word, value);
}

/// E. By host: a host thread polls the word and launches; else the consumer waits on its stream.
enum class launched { ahead, early, by_host };

inline outcome arrival_case(const effort& e, launched how) {
  const bool by_host = how == launched::by_host;
  side a, b;
  notes n{e};
  device_buffer<uint64_t> payload{e.words()};
  mapped_buffer<uint64_t> word{8};
  constexpr uint64_t delay = 20'000; // longer than a launch, so that the waiter is always first
  const std::atomic_ref<uint64_t> seen{*word};
  for (uint32_t i = 1; i <= e.all(); ++i) {
    if (!by_host) {
      check(enqueue_wait(a.s, word.get(), a.next_received(), a.port()), "wait");
      if (how == launched::early)
        consume_early(a.s, e, payload.get(), 0, a, n);
      else
        consume(a.s, e, payload.get(), 0, a, n);
    }
    arrive_kernel<<<1, 1, 0, b.s>>>(word.get(), b.sent.get(), delay, n.get());
    if (by_host) {
      const auto end = host_clock::now() + std::chrono::nanoseconds{wait_ns};
      while (seen.load(std::memory_order_acquire) < i && host_clock::now() < end) {
      }
      consume(a.s, e, payload.get(), 0, a, n, 1);
      count_kernel<<<1, 1, 0, a.s>>>(a.sent.get(), a.received.get());
    }
    a.s.wait();
  }
  auto o = outcome_of(e, n, a, false);
  o.wrong = 0; // no message: the payload is not looked at
  return o;
}

} // namespace lamella::gpu::cuda::bench
