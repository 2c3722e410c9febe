// Decode attention against the memory it must read: one layer, many shapes.
//
//   attention_bench [shapes] [tunings] [units] [prefill]     default: all
//
// Shapes end with a target: the worst of the LLaMA-3-70B shards with 8 rows and more, each of 4k
// positions and more, in runs of slots.
//
// Copy (bytes counted both ways) and read bandwidth are measured first, in the same process. Each
// shape runs as a CUDA graph of many layers that go round through caches far larger than L2; the
// table gives the best and the median of several replays, per layer. `step` is attend_previous,
// append_kv and attend_new together; GB/s count K and V of earlier positions only.
#include "gpu/cuda/bench/bench_support.cuh"
#include "gpu/cuda/bench/target.hpp"

#include <cstdio>
#include <cstring>

using namespace lamella::gpu;
using namespace lamella::gpu::cuda;
using namespace lamella::gpu::cuda::bench;

namespace {

enum class placing { consecutive, runs_of_16, random };
constexpr const char* names[] = {"consecutive", "16-runs", "random"};

struct workload {
  const char* name;
  uint32_t heads, group, dim;
  std::vector<uint32_t> lengths; ///< earlier positions of each row
  placing slots = placing::consecutive;
  uint32_t rows_per_span = 1;
  half_type type = half_type::f16; ///< of the cache
  size_t row_bytes() const { return kv_layer{nullptr, type, heads, dim}.row_bytes(); }
};

std::vector<uint32_t> same(uint32_t batch, uint32_t length) {
  return std::vector<uint32_t>(batch, length);
}

/// 128 … 32k, uniform in the logarithm, fixed.
std::vector<uint32_t> mixed(uint32_t batch) {
  std::vector<uint32_t> lengths(batch);
  uint64_t state = 42;
  for (auto& x : lengths) x = static_cast<uint32_t>(128 * std::exp2(8 * uniform(state)));
  return lengths;
}

/// One workload on the device: its plan, and as many caches as rotate past L2.
class prepared {
public:
  prepared(const workload& w, buffers& memory, uint32_t unit) : w_{w}, memory_{memory} {
    std::vector<attention_span> spans;
    std::vector<slot_run> runs;
    uint32_t rows = 0, slots = 0;
    for (auto length : w.lengths) {
      const auto count = length + w.rows_per_span;
      spans.push_back({rows, w.rows_per_span, length, static_cast<uint32_t>(runs.size()), 0});
      const auto step = w.slots == placing::random       ? 1
                        : w.slots == placing::runs_of_16 ? 16
                                                         : count;
      for (uint32_t at = 0; at < count; at += step)
        runs.push_back({slots + at, std::min(step, count - at)});
      spans.back().run_count = static_cast<uint32_t>(runs.size()) - spans.back().first_run;
      rows += w.rows_per_span;
      slots += (count + 15) / 16 * 16;
      positions_ += length;
    }
    if (w.slots != placing::consecutive) shuffle(runs);
    plan_ = plan_attention(spans, runs, w.group, {}, unit);
    memory.upload_plan(plan_);
    const auto cache_bytes = slots * w.row_bytes();
    caches_ = std::clamp<size_t>(rotated_bytes / cache_bytes, 1, 64);
    if (cache_bytes * caches_ > memory.pool_bytes) fail("the pool of caches is too small");
    for (size_t i = 0; i < caches_; ++i) {
      attention_device_args x;
      x.type = w.type;
      x.cache = memory.pool + i * cache_bytes;
      x.q = memory.wire, x.k_new = memory.wire + memory.wire_bytes / 4;
      x.v_new = memory.wire + memory.wire_bytes / 2;
      x.out = memory.wire + memory.wire_bytes / 4 * 3;
      if (size_t{rows} * w.heads * w.group * w.dim * 2 > memory.wire_bytes / 4)
        fail("room for queries is too small");
      x.plan = memory.plan, x.records = memory.records;
      x.capacity = plan_.capacity;
      x.kv_heads = w.heads, x.group = w.group, x.dim = w.dim;
      x.scale = 1 / std::sqrt(static_cast<float>(w.dim));
      if (attention_record_bytes(x.capacity, w.heads, w.group, w.dim) > memory.record_bytes)
        fail("room for records is too small");
      args_.push_back(x);
    }
    check(launch_expand_runs(plan_.capacity, memory.plan, memory.stream));
  }

  /// Times `step` of attention_device_args, per layer.
  template <class F> times measure(F step) const {
    // About 10 ms a graph; at least two rounds through the caches of small shapes.
    const double guess = bytes() / 3e12 + 8e-6;
    const auto layers = static_cast<int>(std::clamp(8e-3 / guess, 2.0, 400.0));
    return time_graph(memory_.stream, layers, 7, [&](int i) { step(args_[i % caches_]); });
  }
  double bytes() const { return double(positions_) * static_cast<double>(w_.row_bytes()); }

private:
  /// Gives the places of all full runs to other runs.
  static void shuffle(std::vector<slot_run>& runs) {
    uint64_t state = 7;
    for (size_t i = runs.size() - 1; i > 0; --i) {
      const auto j = static_cast<size_t>(uniform(state) * double(i + 1));
      if (runs[i].length == runs[j].length) std::swap(runs[i].first, runs[j].first);
    }
  }

  static constexpr size_t rotated_bytes = size_t{600} << 20;
  workload w_;
  buffers& memory_;
  attention_plan plan_;
  std::vector<attention_device_args> args_;
  size_t caches_ = 1;
  uint64_t positions_ = 0;
};

void print(const char* label, const workload& w, const times& previous, const times& step,
           double bytes, const limits& limit) {
  auto gb = [&](double seconds) { return bytes / seconds * 1e-9; };
  std::printf("%-26s %-11s %u x %-3u %3u | %8.1f %8.1f us %5.0f GB/s  %4.2f of copy %4.2f of read |"
              " step %8.1f us %4.2f\n",
              label, names[int(w.slots)], w.heads, w.dim, w.group, previous.best * 1e6,
              previous.median * 1e6, gb(previous.median), gb(previous.median) / limit.copy,
              gb(previous.median) / limit.read, step.median * 1e6, gb(step.median) / limit.copy);
  std::fflush(stdout);
}

/// The share of copying that the target is about; 0 before the first such shape.
double worst_share = 0;

bool counts_for_target(const workload& w) {
  return w.type == half_type::f16 && w.dim == 128 && w.group == 8 && w.slots != placing::random
         && w.lengths.size() >= 8 && *std::min_element(w.lengths.begin(), w.lengths.end()) >= 4096;
}

void run(const workload& w, buffers& memory, const limits& limit) {
  prepared x{w, memory, attention_unit};
  auto previous =
      x.measure([&](const auto& args) { check(launch_attend_previous(args, memory.stream)); });
  auto step = x.measure([&](const auto& args) {
    check(launch_attend_previous(args, memory.stream));
    check(launch_append_kv(args, memory.stream));
    check(launch_attend_new(args, memory.stream));
  });
  print(w.name, w, previous, step, x.bytes(), limit);
  const auto share = x.bytes() / previous.median * 1e-9 / limit.copy;
  if (counts_for_target(w) && (worst_share == 0 || share < worst_share)) worst_share = share;
}

/// A copy of a workload with other heads or places.
workload with(workload w, uint32_t heads, placing slots = placing::consecutive) {
  w.heads = heads;
  w.slots = slots;
  return w;
}

/// Or with a cache of q8.
workload in_q8(workload w, const char* name) {
  w.name = name;
  w.type = half_type::q8;
  return w;
}

const workload b64c4k{"64 x 4k", 8, 8, 128, same(64, 4096)};
const workload b128c8k{"128 x 8k", 8, 8, 128, same(128, 8192)};
const workload b64mixed{"64, 128..32k", 8, 8, 128, mixed(64)};
const workload b256c4k{"256 x 4k", 8, 8, 128, same(256, 4096)};

void shapes(buffers& memory, const limits& limit) {
  for (const auto& w :
       {workload{"1 x 8k", 8, 8, 128, same(1, 8192)},
        workload{"1 x 128k", 8, 8, 128, same(1, 131072)},
        workload{"8 x 4k", 8, 8, 128, same(8, 4096)},
        workload{"8 x 32k", 8, 8, 128, same(8, 32768)},
        workload{"64 x 1k", 8, 8, 128, same(64, 1024)}, b64c4k, b128c8k, b256c4k,
        workload{"512 x 2k", 8, 8, 128, same(512, 2048)}, b64mixed,
        workload{"64 x 4k, 8B", 8, 4, 128, same(64, 4096)},
        workload{"64 x 4k, MHA", 8, 1, 128, same(64, 4096)},
        workload{"64 x 4k, group 16", 8, 16, 128, same(64, 4096)},
        workload{"256 x 4k, SmolLM2", 3, 3, 64, same(256, 4096)}, in_q8(b64c4k, "64 x 4k, q8"),
        in_q8(b64mixed, "64, 128..32k, q8"), in_q8(with(b64c4k, 8, placing::random), "64 x 4k, q8"),
        in_q8({"", 3, 3, 64, same(256, 4096)}, "256 x 4k, SmolLM2, q8")})
    run(w, memory, limit);
  for (auto slots : {placing::runs_of_16, placing::random}) {
    run(with(b64c4k, 8, slots), memory, limit);
    run(with(b128c8k, 8, slots), memory, limit);
    run(with(b64mixed, 8, slots), memory, limit);
  }
  for (uint32_t heads : {4u, 2u, 1u}) {
    run(with(b64c4k, heads), memory, limit);
    run(with(b256c4k, heads), memory, limit);
    run(with(b64mixed, heads), memory, limit);
    run(with(b256c4k, heads, placing::runs_of_16), memory, limit);
    run(with(b256c4k, heads, placing::random), memory, limit);
  }
}

void tunings(buffers& memory, const limits& limit) {
  constexpr const char* hints[] = {"", "once"};
  std::printf("\ntunings: slots of a warp, warps of a multiprocessor, spare ones, hint to L2\n");
  for (const auto& w : {b64c4k, b128c8k, b64mixed, with(b256c4k, 1),
                        with(b256c4k, 1, placing::random), with(b64c4k, 8, placing::random)}) {
    prepared x{w, memory, attention_unit};
    for (const auto& tuning : attention_tunings) {
      auto previous = x.measure(
          [&](const auto& args) { check(launch_attend_previous(args, memory.stream, tuning)); });
      char label[64];
      std::snprintf(label, sizeof label, "%s: %d %d -%d %s", w.name, tuning.slots, tuning.warps,
                    tuning.spare, hints[static_cast<int>(tuning.hint)]);
      print(label, w, previous, previous, x.bytes(), limit);
    }
  }
}

void units(buffers& memory, const limits& limit) {
  std::printf("\nunits: positions of a record (part of the numerics)\n");
  for (const auto& w :
       {workload{"8 x 4k", 8, 8, 128, same(8, 4096)}, b64c4k, b128c8k, b64mixed, with(b256c4k, 1)})
    for (uint32_t unit : {256u, 512u, 1024u, 2048u}) {
      prepared x{w, memory, unit};
      auto previous =
          x.measure([&](const auto& args) { check(launch_attend_previous(args, memory.stream)); });
      auto step = x.measure([&](const auto& args) {
        check(launch_attend_previous(args, memory.stream));
        check(launch_append_kv(args, memory.stream));
        check(launch_attend_new(args, memory.stream));
      });
      char label[64];
      std::snprintf(label, sizeof label, "%s: %u", w.name, unit);
      print(label, w, previous, step, x.bytes(), limit);
    }
}

void prefill(buffers& memory) {
  std::printf(
      "\nprefill: spans of several rows, attend_new, TFLOP/s of 4 D per query and position\n");
  struct span_shape {
    uint32_t heads, group, dim, spans, rows, earlier;
  };
  for (auto [heads, group, dim, spans, rows, earlier] : {span_shape{8, 8, 128, 1, 2048, 0},
                                                         {8, 8, 128, 1, 512, 8192},
                                                         {8, 8, 128, 4, 1024, 4096},
                                                         {8, 4, 128, 1, 2048, 2048},
                                                         {3, 3, 64, 4, 1024, 1024}}) {
    workload w{"", heads, group, dim, same(spans, earlier), placing::runs_of_16, rows};
    prepared x{w, memory, attention_unit};
    auto t = x.measure([&](const auto& args) { check(launch_attend_new(args, memory.stream)); });
    const double pairs = double(spans) * rows * (earlier + (rows + 1) / 2.0);
    std::printf("%u x %4u rows after %5u, %u x %u, %u heads | %8.1f us %6.1f TFLOP/s\n", spans,
                rows, earlier, heads, group, dim, t.median * 1e6,
                pairs * 4 * dim * heads * group / t.median * 1e-12);
  }
}

} // namespace

int main(int argc, char** argv) {
  auto wanted = [&](const char* what) {
    for (int i = 1; i < argc; ++i)
      if (std::strcmp(argv[i], what) == 0) return true;
    return argc == 1;
  };
  buffers memory{size_t{5800} << 20};
  const auto limit = measure_limits(memory);
  std::printf("copy %.0f GB/s (both ways), read %.0f GB/s\n", limit.copy, limit.read);
  std::printf("shape                      slots       H x D     G |     best   median\n");
  if (wanted("shapes")) {
    shapes(memory, limit);
    print_target({"decode-attention-of-copy", 0.85, 0.93}, worst_share);
  }
  if (wanted("tunings")) tunings(memory, limit);
  if (wanted("units")) units(memory, limit);
  if (wanted("prefill")) prefill(memory);
}
