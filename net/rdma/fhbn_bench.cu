// Round trips between two ends of one GPU, device-driven and host-driven, on the same machine.
//
// C is the real code of a host-bypassed send: kernels write work requests and ring; an adapter in
// software, a CPU thread, stands in for the network card, with rings and payload in pinned memory.
// Exit status 0 means that every payload was right, that abort and deadline work, and that nothing
// took longer than it may. No wire is included anywhere, and the program says so. Cases A3, B2,
// B-host, C-x and E-early have not run on a device yet.
#include "gpu/cuda/bench/host_cases.cuh"
#include "gpu/cuda/bench/target.hpp"
#include "net/rdma/fhbn_device.hpp"
#include "net/rdma/mlx5/software_hca.hpp"

#include <cstring>
#include <functional>
#include <map>
#include <string>

using namespace lamella::gpu::cuda;
using namespace lamella::gpu::cuda::bench;
namespace mlx5 = lamella::net::mlx5;

namespace {

enum class posting { doorbell, exchange, blue_flame };

/// One end of a connection: what adapter and GPU share lies in pinned memory, the queue's own
/// counters in device memory. A slot is the payload and, for pushes, the seqno right behind it.
struct connection_end {
  static constexpr uint32_t blocks = 64;
  explicit connection_end(const effort& e)
      : slot_words{e.words() + 8}, out{slot_words}, in{slot_words} {}

  size_t slot_words;
  mapped_buffer<uint64_t> out, in;
  mapped_buffer<uint64_t> seqno{8}, staged{blocks};
  mapped_buffer<mlx5::wqe_block> ring{blocks};
  mapped_buffer<uint32_t> record{16};
  mapped_buffer<uint64_t> blue_flame{64}; // two buffers of 256 bytes
  mapped_buffer<unsigned char> completion{64};
  device_buffer<mlx5::send_queue> queue{1};
  mlx5::region staged_region{};

  static uint64_t address(const void* p) { return reinterpret_cast<uint64_t>(p); }

  void connect(mlx5::software_hca& hca, const connection_end& peer, uint32_t number) {
    using mlx5::be32, mlx5::remote_rights;
    const auto key = [&](const mapped_buffer<uint64_t>& b, remote_rights rights) {
      return be32(hca.register_memory(b.get(), b.size() * sizeof(uint64_t), rights));
    };
    staged_region = {address(staged.get()), key(staged, remote_rights::none)};
    mlx5::send_queue q{};
    q.ring = ring.get();
    q.mask = blocks - 1;
    q.number = number;
    q.record = record.get() + 1;
    q.blue_flame = blue_flame.get();
    q.blue_flame_bytes = 256;
    q.completion = reinterpret_cast<const uint32_t*>(completion.get() + mlx5::completion_word_at);
    q.local = {address(out.get()), key(out, remote_rights::none)};
    q.remote = {address(peer.in.get()), key(peer.in, remote_rights::write)};
    q.arena_bytes = slot_words * sizeof(uint64_t);
    q.seqno = {address(peer.seqno.get()), key(peer.seqno, remote_rights::write)};
    hca.attach(q, completion.get());
    queue.write(q);
  }

  uint64_t* word(const effort& e, posting how) {
    return how == posting::blue_flame ? in.get() + e.words() : seqno.get();
  }
  lamella::net::fhbn_sender sender(const side& from) const {
    return {queue.get(), from.port(), staged.get(), staged_region};
  }
  lamella::net::fhbn_message message(const effort& e) const {
    return {0, 0, static_cast<uint32_t>(e.bytes)};
  }
  void send(cudaStream_t s, const effort& e, const side& from, posting how) {
    check(how == posting::doorbell
              ? enqueue_send(s, sender(from), message(e), from.next_sent(), mlx5::doorbell::store)
              : enqueue_push(s, sender(from), message(e), from.next_sent()),
          "send");
  }
  /// A send and the wait for what comes back.
  void exchange(cudaStream_t s, const effort& e, const side& from) {
    check(enqueue_exchange(s, sender(from), message(e), from.next_sent(), seqno.get(),
                           from.next_received()),
          "exchange");
  }
};

/// All messages, each sent by one kernel and waited for by the next.
void run_two_kernels(const effort& e, posting how, side& a, side& b, connection_end& end_a,
                     connection_end& end_b, notes& n) {
  run_ahead(
      e, a, b,
      [&](cudaStream_t s, bool) {
        produce(s, e, end_a.out.get(), a, n);
        end_a.send(s, e, a, how);
        check(enqueue_wait(s, end_a.word(e, how), a.next_received(), a.port()), "wait");
        consume(s, e, end_a.in.get(), answer_mask, a, n);
      },
      [&](cudaStream_t s, bool) {
        check(enqueue_wait(s, end_b.word(e, how), b.next_received(), b.port()), "wait");
        answer(s, e, end_b.in.get(), end_b.out.get());
        end_b.send(s, e, b, how);
      });
}

/// The peer waits for the next message in the kernel that sends an answer: it needs a wait before
/// the first message, and one message after the last.
void run_one_kernel(const effort& e, side& a, side& b, connection_end& end_a, connection_end& end_b,
                    notes& n) {
  run_ahead(
      e, a, b,
      [&](cudaStream_t s, bool) {
        produce(s, e, end_a.out.get(), a, n);
        end_a.exchange(s, e, a);
        consume_early(s, e, end_a.in.get(), answer_mask, a, n);
      },
      [&](cudaStream_t s, bool first) {
        if (first)
          answer(s, e, end_b.in.get(), end_b.out.get());
        else
          answer_early(s, e, end_b.in.get(), end_b.out.get());
        end_b.exchange(s, e, b);
      },
      [&] {
        check(enqueue_wait(b.s, end_b.seqno.get(), b.next_received(), b.port()), "first wait");
      });
  end_a.send(a.s, e, a, posting::doorbell);
}

outcome software_nic_case(const effort& e, posting how) {
  side a, b;
  notes n{e};
  connection_end end_a{e}, end_b{e};
  mlx5::software_hca hca;
  end_a.connect(hca, end_b, 0x11);
  end_b.connect(hca, end_a, 0x22);
  {
    const helper_thread adapter{[&] { hca.step(); }};
    if (how == posting::exchange)
      run_one_kernel(e, a, b, end_a, end_b, n);
    else
      run_two_kernels(e, how, a, b, end_a, end_b, n);
    wait_for_both(a, b);
  }
  auto o = outcome_of(e, n, a, true);
  for (size_t q = 0; q < 2; ++q)
    if (const auto report = hca.report(q); report.error) {
      std::printf("adapter queue %zu: syndrome 0x%02x, %s\n", q, report.first_syndrome,
                  report.why.c_str());
      o.status = static_cast<uint32_t>(channel_status::queue_error);
    } else if (how == posting::blue_flame && report.pushes_taken == 0) {
      std::printf("adapter queue %zu: no push was ever taken whole\n", q);
      o.status = static_cast<uint32_t>(channel_status::queue_error);
    }
  return o;
}

double elapsed_ms(host_clock::time_point since) {
  return std::chrono::duration<double, std::milli>(host_clock::now() - since).count();
}

bool says(const char* what, bool good, double ms) {
  std::printf("%-66s %8.2f ms  %s\n", what, ms, good ? "ok" : "FAILED");
  return good;
}

/// A wait that nobody answers ends by itself, by the host's word, or because it is of the past; and
/// what comes behind it neither waits nor posts.
bool ends_of_a_wait() {
  bool good = true;
  device_buffer<uint64_t> word{1}, theirs{1};
  {
    side a;
    auto port = a.port();
    port.deadline_ns = 20'000'000;
    const auto start = host_clock::now();
    for (int i = 0; i < 4; ++i) check(enqueue_wait(a.s, word.get(), {1, nullptr}, port), "wait");
    check(enqueue_post(a.s, theirs.get(), {1, nullptr}, port), "post");
    a.s.wait();
    const auto ms = elapsed_ms(start);
    good &= says("a deadline of 20 ms ends a wait and the three behind it",
                 ms >= 20 && ms < 60
                     && a.control->status == static_cast<uint32_t>(channel_status::timeout),
                 ms);
    good &= says("a failed channel posts nothing", theirs.read()[0] == 0, 0);
  }
  {
    side a;
    check(enqueue_wait(a.s, word.get(), {1, nullptr}, a.port()), "wait");
    const auto start = host_clock::now();
    while (elapsed_ms(start) < 30) {
    }
    const bool hangs = cudaStreamQuery(a.s) == cudaErrorNotReady;
    const auto aborted = host_clock::now();
    std::atomic_ref<uint32_t>{a.control->abort}.store(1, std::memory_order_release);
    a.s.wait();
    const auto ms = elapsed_ms(aborted);
    good &= says("the abort word ends a hanging wait within 100 ms",
                 hangs && ms < 100
                     && a.control->status == static_cast<uint32_t>(channel_status::aborted),
                 ms);
  }
  {
    side a;
    word.write(lamella::gpu::make_seqno(3, 9));
    const auto start = host_clock::now();
    check(enqueue_wait(a.s, word.get(), {lamella::gpu::make_seqno(2, 5), nullptr}, a.port()),
          "wait");
    a.s.wait();
    good &=
        says("a newer epoch ends a wait of an older one",
             a.control->status == static_cast<uint32_t>(channel_status::stale), elapsed_ms(start));
  }
  return good;
}

__global__ void tick_kernel(uint64_t* smallest) {
  uint64_t last = global_ns(), least = ~uint64_t{0};
  for (int changes = 0; changes < 256;) {
    const auto now = global_ns();
    if (now == last) continue;
    least = now - last < least ? now - last : least;
    last = now;
    ++changes;
  }
  *smallest = least;
}

struct named_case {
  const char* name;
  std::function<outcome(const effort&)> run;
};

const std::vector<named_case> cases{
    {"A", resident_case},
    {"A2", stream_case},
    {"A3", early_case},
    {"B", host_answer_case},
    {"B2", host_payload_case},
    {"B-host", host_answer_baseline},
    {"C", [](const effort& e) { return software_nic_case(e, posting::doorbell); }},
    {"C-x", [](const effort& e) { return software_nic_case(e, posting::exchange); }},
    {"C-bf", [](const effort& e) { return software_nic_case(e, posting::blue_flame); }},
    {"D", [](const effort& e) { return host_driven_case(e, host_way::staged); }},
    {"D2", [](const effort& e) { return host_driven_case(e, host_way::in_place); }},
    {"D3", [](const effort& e) { return host_driven_case(e, host_way::in_place_graph); }},
    {"E", [](const effort& e) { return arrival_case(e, launched::ahead); }},
    {"E-early", [](const effort& e) { return arrival_case(e, launched::early); }},
    {"E-host", [](const effort& e) { return arrival_case(e, launched::by_host); }},
};

constexpr const char* legend = R"(
Round trip: end of the producing kernel to start of the kernel that consumes the answer, p50/p99 in
microseconds; every word of every message compared.
A   two resident kernels                        A2  streams of kernels, device memory
A3  A2, posts at the end of the writing kernel, next kernels made ready during the wait
B   streams, a CPU thread answers, no payload   B2  B with payload  B-host  B2 by copy, event, launch
C   kernels post mlx5 work requests to an adapter in software, payload through pinned memory
C-x C, send and wait in one kernel, next kernels made ready        C-bf C by BlueFlame
D   host-driven, staged copies    D2  host-driven, payload stays   D3  D2 with a graph
E   arrival of the seqno to the consumer's start: launched ahead, made ready, launched by the host
)";

/// p50 by name of the case.
using row = std::map<std::string, double>;

constexpr double limit_ms = 75'000;

/// Runs all cases on one size, prints them, and tells what went wrong.
std::string measure(size_t bytes, host_clock::time_point start, row& p50) {
  const auto e = effort_of(bytes);
  std::string mistakes;
  std::printf("%8zu", bytes);
  for (const auto& c : cases) {
    if (elapsed_ms(start) > limit_ms) return mistakes + "\n  stopped early: out of time\n";
    const auto o = c.run(e);
    p50[c.name] = o.time.p50_us;
    std::printf(" %7.2f/%7.2f", o.time.p50_us, o.time.p99_us);
    std::fflush(stdout);
    if (!o.good())
      mistakes += std::string{"  "} + c.name + ": " + std::to_string(o.wrong)
                  + " wrong words, status " + std::to_string(o.status) + "\n";
  }
  std::puts("");
  return mistakes;
}

/// A device-driven round trip and the host-driven ones it is held against: the best of them counts.
struct comparison {
  const char* device;
  std::vector<const char*> host;
  const char* what;
  const char* target = nullptr; ///< its name where it is one
  double least = 1;             ///< smallest saving up to 64 KiB, as a share
};
std::vector<comparison> comparisons{
    {"A2", {"D"}, "device to device, against copy, event and launch", "round-trip-device-saves"},
    {"A3", {"D"}, "the same, fewer kernels"},
    {"A2", {"D2", "D3"}, "device to device, against event and launch alone"},
    {"A3", {"D2", "D3"}, "the same, fewer kernels"},
    {"B2", {"B-host"}, "device to host, against copy, event and launch", "round-trip-host-saves"},
    {"C", {"D"}, "work requests to a software adapter, against copy, event and launch"},
    {"C-x", {"D"}, "the same, fewer kernels"},
};

void compare(size_t bytes, row& p50) {
  for (auto& c : comparisons) {
    double host = p50[c.host.front()];
    for (const char* name : c.host) host = std::min(host, p50[name]);
    if (bytes <= 65536) c.least = std::min(c.least, 1 - p50[c.device] / host);
  }
}

} // namespace

int main() {
  // A kernel that loads late would wait for one that polls.
  setenv("CUDA_MODULE_LOADING", "EAGER", 1);
  const auto start = host_clock::now();
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::puts("skipped: there is no CUDA device");
    return 77;
  }
  check(cudaSetDeviceFlags(cudaDeviceScheduleSpin | cudaDeviceMapHost), "flags");
  cudaDeviceProp device{};
  check(cudaGetDeviceProperties(&device, 0), "properties");
  device_buffer<uint64_t> tick{1};
  tick_kernel<<<1, 1>>>(tick.get());
  std::printf("%s, clock step %llu ns\n%s\n", device.name,
              static_cast<unsigned long long>(tick.read()[0]), legend);
  bool good = ends_of_a_wait();

  std::printf("\n%8s", "bytes");
  for (const auto& c : cases) std::printf(" %15s", c.name);
  std::puts("");
  for (const size_t bytes : {64u, 1024u, 4096u, 16384u, 65536u, 262144u, 1048576u, 4194304u}) {
    row p50;
    const auto mistakes = measure(bytes, start, p50);
    std::printf("%s", mistakes.c_str());
    if (mistakes.empty())
      compare(bytes, p50);
    else
      good = false;
  }
  if (good) std::puts("\nup to 64 KiB the p50 of a round trip is shorter by at least");
  for (const auto& c : comparisons)
    if (good) std::printf("  %5.1f %%  %-4s %s\n", 100 * c.least, c.device, c.what);
  for (const auto& c : comparisons)
    if (c.target != nullptr) print_target({c.target, 0.5, 0.75}, good ? c.least : 0);
  std::printf("no wire is included\n%s after %.1f s\n", good ? "PASSED" : "FAILED",
              elapsed_ms(start) / 1000);
  return good ? 0 : 1;
}
