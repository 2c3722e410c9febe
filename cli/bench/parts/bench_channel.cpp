#include "cli/bench/parts/bench_channel.hpp"

#include "base/json_writer.hpp"
#include "cli/bench/parts/bench_channel_wire.hpp"
#include "net/rdma/open_verbs.hpp"
#include "net/rdma/verbs.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <stdexcept>

namespace lamella::cli {

namespace {

using clock = std::chrono::steady_clock;

constexpr size_t smallest = 64;
/// Distinct buffers that messages are copied from: as many as a link has slots, to be copied to.
constexpr size_t buffers = wire_slots;
constexpr size_t warm_up = 20;
/// Of each measurement of bandwidth: the best counts.
constexpr int passes = 3;

size_t round_trips(size_t bytes) { return std::clamp<size_t>((64u << 20) / bytes, 40, 2'000); }
size_t stream_messages(size_t bytes) {
  return std::clamp<size_t>((128u << 20) / bytes, 32, 10'000);
}

std::vector<size_t> sizes_up_to(size_t most) {
  std::vector<size_t> sizes;
  for (size_t bytes = smallest; bytes <= most; bytes *= 4) sizes.push_back(bytes);
  return sizes;
}

/// A line of memory: what is copied begins on one, as tensors do.
struct alignas(64) line {
  std::byte bytes[64];
};

/// Memory of whole lines, resident.
class lines {
public:
  explicit lines(size_t bytes) : lines_((bytes + 63) / 64), bytes_{bytes} {}
  std::byte* data() { return lines_.front().bytes; }
  std::byte& operator[](size_t i) { return data()[i]; }
  size_t size() const { return bytes_; }

private:
  std::vector<line> lines_;
  size_t bytes_;
};

/// What is sent, and room for what comes: messages of one size.
struct messages {
  explicit messages(size_t size) : bytes{size}, out(buffers * size), in(size) {
    for (size_t i = 0; i < out.size(); ++i) out[i] = static_cast<std::byte>(i * 7 + i / size);
  }
  /// Message n, marked with its number at both ends.
  std::span<const std::byte> make(size_t n) {
    auto* p = out.data() + n % buffers * bytes;
    std::memcpy(p, &n, sizeof n);
    std::memcpy(p + bytes - sizeof n, &n, sizeof n);
    return {p, bytes};
  }
  void expect(wire_end& wire, size_t n) {
    const auto got = wire.receive({in.data(), bytes});
    if (std::memcmp(got.data(), &n, sizeof n) != 0
        || std::memcmp(got.data() + bytes - sizeof n, &n, sizeof n) != 0)
      throw std::runtime_error("a message arrived with wrong content");
  }
  size_t bytes;
  lines out, in;
};

void answer(wire_end& wire, size_t bytes) {
  messages m{bytes};
  for (size_t n = 0; n < warm_up + round_trips(bytes); ++n) {
    m.expect(wire, n);
    wire.send(m.make(n));
  }
  for (int pass = 0; pass < passes; ++pass) {
    for (size_t n = 0; n < stream_messages(bytes); ++n) m.expect(wire, n);
    wire.send(m.make(0));
  }
}

bench_channel_row ask(wire_end& wire, size_t bytes) {
  messages m{bytes};
  std::vector<double> times;
  for (size_t n = 0; n < warm_up + round_trips(bytes); ++n) {
    const auto began = clock::now();
    wire.send(m.make(n));
    m.expect(wire, n);
    const std::chrono::duration<double, std::micro> took = clock::now() - began;
    if (n >= warm_up) times.push_back(took.count());
  }
  const auto count = stream_messages(bytes);
  double best = 0;
  for (int pass = 0; pass < passes; ++pass) {
    const auto began = clock::now();
    for (size_t n = 0; n < count; ++n) wire.send(m.make(n));
    m.expect(wire, 0);
    const std::chrono::duration<double> took = clock::now() - began;
    best = std::max(best, static_cast<double>(bytes * count) / took.count() / 1e9);
  }
  std::sort(times.begin(), times.end());
  return {"", "", bytes, times[times.size() / 2], times[times.size() * 99 / 100], best};
}

/// GB/s of copying between as many distinct buffers as a link has slots, with one thread: what
/// shared memory, where the sender copies into the ring, is to be held against.
double memcpy_gb_per_s(size_t bytes) {
  lines from{buffers * bytes}, to{buffers * bytes};
  const auto count = stream_messages(bytes);
  double best = 0;
  for (int pass = 0; pass < passes; ++pass) {
    const auto began = clock::now();
    for (size_t n = 0; n < count; ++n) {
      from[n % buffers * bytes] = static_cast<std::byte>(n);
      std::memcpy(to.data() + n % buffers * bytes, from.data() + n % buffers * bytes, bytes);
      asm volatile("" ::: "memory"); // somebody may read it
    }
    const std::chrono::duration<double> took = clock::now() - began;
    best = std::max(best, static_cast<double>(bytes * count) / took.count() / 1e9);
  }
  return best;
}

std::string as_json(const std::vector<bench_channel_row>& rows,
                    const std::vector<std::pair<size_t, double>>& copies) {
  json_writer out;
  out.begin_object().member("version", 1).key("rows").begin_array();
  for (const auto& r : rows)
    out.begin_object()
        .member("kind", r.kind)
        .member("tier", r.tier)
        .member("bytes", r.bytes)
        .member("p50_us", r.p50_us)
        .member("p99_us", r.p99_us)
        .member("gb_per_s", r.gb_per_s)
        .end_object();
  out.end_array().key("memcpy").begin_array();
  for (const auto& [bytes, speed] : copies)
    out.begin_object()
        .member("bytes", bytes)
        .member("gb_per_s", speed)
        .member("buffers", buffers)
        .member("threads", 1)
        .end_object();
  out.end_array().end_object();
  return out.take();
}

/// Those that were asked for, or those there are; what cannot be had is told before anything is
/// measured.
std::vector<std::string> tiers_to_measure(const bench_channel_options& options) {
  auto tiers = options.tiers;
  std::string why;
  if (tiers.empty()) {
    tiers = {"in_process", "shm", "tcp"};
    if (net::open_verbs(why))
      tiers.emplace_back("verbs_staged");
    else if (!options.json)
      std::printf("verbs_staged is not available here: %s\n", why.c_str());
  } else if (std::ranges::count(tiers, "verbs_staged") > 0 && !net::open_verbs(why)) {
    throw std::runtime_error("verbs_staged cannot be measured here: " + why);
  }
  return tiers;
}

} // namespace

int bench_channel(const bench_channel_options& options) {
  const auto tiers = tiers_to_measure(options);
  std::vector<bench_channel_row> rows;
  if (!options.json)
    std::printf("%-11s %9s %12s %12s %10s\n", "", "bytes", "p50 us", "p99 us", "GB/s");
  const auto report = [&](const bench_channel_row& r) {
    rows.push_back(r);
    if (options.json) return;
    std::printf("%-11s %9zu %12.2f %12.2f %10.2f\n", r.tier.c_str(), r.bytes, r.p50_us, r.p99_us,
                r.gb_per_s);
    std::fflush(stdout);
  };
  const auto run = [&](const std::string& kind, const std::string& tier) {
    for (const auto bytes : sizes_up_to(options.bytes_max)) {
      bench_channel_row row;
      run_over_wire(
          tier, bytes, [&](wire_end& wire) { row = ask(wire, bytes); },
          [&](wire_end& wire) { answer(wire, bytes); });
      row.kind = kind;
      row.tier = tier;
      report(row);
    }
  };
  // At both ends of the run, since machines change meanwhile: the better one counts.
  std::vector<std::pair<size_t, double>> copies;
  for (const auto bytes : sizes_up_to(options.bytes_max))
    copies.emplace_back(bytes, memcpy_gb_per_s(bytes));
  for (const auto& tier : tiers) run("tier", tier);
  for (const char* baseline : {"plain_tcp", "plain_unix"}) run("baseline", baseline);
  for (auto& [bytes, speed] : copies) {
    speed = std::max(speed, memcpy_gb_per_s(bytes));
    if (!options.json) std::printf("%-11s %9zu %12s %12s %10.2f\n", "memcpy", bytes, "", "", speed);
  }
  if (options.json) std::printf("%s\n", as_json(rows, copies).c_str());
  return 0;
}

} // namespace lamella::cli
