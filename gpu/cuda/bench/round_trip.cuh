/// One round trip as the Lamina paper measures it (section 6.3): from the end of the kernel that
/// produced a message to the start of the kernel that consumes the answer, both told by the GPU's
/// own clock. The answer is made by a kernel of the peer from the message, so that a wrong or torn
/// payload on either way shows as wrong words at the consumer: every word of every round is
/// compared.
#pragma once

#include "gpu/cuda/bench/measure.cuh"
#include "gpu/cuda/stream/channel.cuh"

#include <array>
#include <chrono>

namespace lamella::gpu::cuda::bench {

using host_clock = std::chrono::steady_clock;

constexpr uint64_t wait_ns = 2'000'000'000;
constexpr uint32_t threads = 256;
constexpr uint64_t answer_mask = 0x5bd1e995a5a5a5a5;

/// How often a size is measured.
struct effort {
  size_t bytes;
  uint32_t warm, rounds, unroll; ///< unroll: rounds of one graph; its first is not counted
  uint32_t all() const { return warm + rounds; }
  uint32_t words() const { return static_cast<uint32_t>(bytes / sizeof(uint64_t)); }
  uint32_t blocks() const { return std::clamp<uint32_t>(words() / (threads * 4), 1u, 64u); }
};
inline effort effort_of(size_t bytes) {
  if (bytes <= 65536) return {bytes, 200, 2000, 100};
  if (bytes <= 262144) return {bytes, 50, 500, 50};
  return {bytes, 20, 100, 20};
}

__device__ __forceinline__ uint64_t word_of(uint64_t round, uint32_t place) {
  uint64_t x = round * 0x9e3779b97f4a7c15 + place;
  x = (x ^ (x >> 31)) * 0xbf58476d1ce4e5b9;
  return x ^ (x >> 29);
}

/// Where a side keeps what it measured. Device memory.
struct record {
  uint64_t* produced; ///< one per round
  uint64_t* consumed;
  uint32_t* wrong; ///< words that were not what they should be
};

/// What a kernel posts at its own end, where it does. `arrived` null: a kernel behind it posts.
struct own_post {
  uint32_t* arrived = nullptr;
  uint64_t* word = nullptr;
  channel_turn turn{};
  channel_port port{};
};

__device__ __forceinline__ void post_at_end(const own_post& p) {
  if (p.arrived) post_by_last_block(p.arrived, p.word, p.turn, p.port);
}

/// Writes the message of the round after `*sent`. Its end is that of its latest block; what it
/// posts itself comes behind that and counts to the round trip.
static __global__ void produce_kernel(uint64_t* to, uint32_t words, const uint64_t* sent,
                                      record notes, own_post post) {
  const auto round = counter_of(*sent) + 1;
  for (auto i = blockIdx.x * blockDim.x + threadIdx.x; i < words; i += gridDim.x * blockDim.x)
    to[i] = word_of(round, i);
  __syncthreads();
  if (threadIdx.x == 0)
    atomicMax(reinterpret_cast<unsigned long long*>(&notes.produced[round]), global_ns());
  post_at_end(post);
}

/// The peer: turns a message into its answer.
static __global__ void answer_kernel(const uint64_t* from, uint64_t* to, uint32_t words,
                                     own_post post) {
  await_previous_kernel();
  for (auto i = blockIdx.x * blockDim.x + threadIdx.x; i < words; i += gridDim.x * blockDim.x)
    to[i] = from[i] ^ answer_mask;
  post_at_end(post);
}

/// Notes when it had the answer, then compares every word with what that of round
/// `*received + more` is.
static __global__ void consume_kernel(const uint64_t* from, uint32_t words, uint64_t mask,
                                      const uint64_t* received, uint32_t more, record notes) {
  await_previous_kernel();
  const auto now = global_ns();
  const auto round = counter_of(*received) + more;
  if (blockIdx.x == 0 && threadIdx.x == 0) notes.consumed[round] = now;
  uint32_t wrong = 0;
  for (auto i = blockIdx.x * blockDim.x + threadIdx.x; i < words; i += gridDim.x * blockDim.x)
    wrong += from[i] != (word_of(round, i) ^ mask);
  if (wrong) atomicAdd(notes.wrong, wrong);
}

/// Counts a round in stream order, where neither a post nor a wait kernel does it.
static __global__ void count_kernel(uint64_t* sent, uint64_t* received) {
  *sent += 1;
  *received += 1;
}

/// The words, counters and notes of one side, and its channel port.
struct side {
  device_buffer<uint64_t> sent{1}, received{1};
  device_buffer<uint32_t> failed{1};
  mapped_buffer<channel_control> control{1};
  stream s;
  channel_port port() const { return {control.get(), failed.get(), wait_ns}; }
  channel_turn next_sent() const { return {0, sent.get()}; }
  channel_turn next_received() const { return {0, received.get()}; }
};

struct notes {
  explicit notes(const effort& e) : produced{e.all() + 1}, consumed{e.all() + 1} {}
  device_buffer<uint64_t> produced, consumed;
  device_buffer<uint32_t> wrong{1};
  record get() const { return {produced.get(), consumed.get(), wrong.get()}; }
};

/// What a case says of one size. `wrong` words or a bad status make the whole run fail.
struct outcome {
  summary time;
  uint32_t wrong = 0, status = 0;
  bool good() const { return wrong == 0 && status == 0 && time.samples > 0; }
};

/// `graphs`: the first round behind each launch of a graph has the launch in it and is left out.
inline outcome outcome_of(const effort& e, const notes& n, const side& a, bool graphs) {
  const auto from = n.produced.read(), to = n.consumed.read();
  std::vector<uint64_t> ns;
  outcome o;
  o.wrong = n.wrong.read()[0];
  o.status = a.control->status;
  for (uint32_t i = e.warm + 1; i <= e.all(); ++i) {
    if (graphs && (i - 1) % e.unroll == 0) continue;
    if (to[i] == 0)
      o.status = static_cast<uint32_t>(channel_status::timeout);
    else
      ns.push_back(to[i] > from[i] ? to[i] - from[i] : 0);
  }
  o.time = summarise(std::move(ns));
  return o;
}

inline void produce(cudaStream_t s, const effort& e, uint64_t* to, const side& a, const notes& n,
                    const own_post& post = {}) {
  produce_kernel<<<e.blocks(), threads, 0, s>>>(to, e.words(), a.sent.get(), n.get(), post);
}
inline void answer(cudaStream_t s, const effort& e, const uint64_t* from, uint64_t* to) {
  answer_kernel<<<e.blocks(), threads, 0, s>>>(from, to, e.words(), own_post{});
}
inline void consume(cudaStream_t s, const effort& e, const uint64_t* from, uint64_t mask,
                    const side& a, const notes& n, uint32_t more = 0) {
  consume_kernel<<<e.blocks(), threads, 0, s>>>(from, e.words(), mask, a.received.get(), more,
                                                n.get());
}
/// The same, made ready while the wait before them runs.
inline void answer_early(cudaStream_t s, const effort& e, const uint64_t* from, uint64_t* to,
                         const own_post& post = {}) {
  check(launch_early(s, e.blocks(), threads, 0, answer_kernel, from, to, e.words(), post),
        "answer");
}
inline void consume_early(cudaStream_t s, const effort& e, const uint64_t* from, uint64_t mask,
                          const side& a, const notes& n) {
  check(launch_early(s, e.blocks(), threads, 0, consume_kernel, from, e.words(), mask,
                     a.received.get(), 0u, n.get()),
        "consume");
}

/// Runs the rounds of two chains of kernels as graphs on two streams, all launched ahead. A chain
/// is called with whether it is the first of its graph. `before` enqueues what comes before all
/// rounds.
template <class Initiator, class Peer, class Before = void (*)()>
void run_ahead(
    const effort& e, side& a, side& b, Initiator initiator, Peer peer, Before before = [] {}) {
  const graph ga{a.s, [&](cudaStream_t s) {
                   for (uint32_t i = 0; i < e.unroll; ++i) initiator(s, i == 0);
                 }};
  const graph gb{b.s, [&](cudaStream_t s) {
                   for (uint32_t i = 0; i < e.unroll; ++i) peer(s, i == 0);
                 }};
  check(cudaDeviceSynchronize(), "before the rounds");
  before();
  for (uint32_t i = 0; i < e.all(); i += e.unroll) {
    gb.launch(b.s);
    ga.launch(a.s);
  }
}

inline void wait_for_both(const side& a, const side& b) {
  a.s.wait();
  b.s.wait();
}

} // namespace lamella::gpu::cuda::bench
