#include "cli/bench/parts/bench_attention.hpp"

#include "actors/machine/sizing.hpp"
#include "base/json_writer.hpp"
#include "cli/bench/parts/bench_machine.hpp"
#include "cli/commands.hpp"
#include "cli/machine_limits.hpp"
#include "gpu/host/host_engine.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <random>
#include <span>
#include <stdexcept>

namespace lamella::cli {

namespace {

using gpu::half_type;

constexpr uint32_t layers_max = 4'096;
/// Of one cache: a shape's caches of all types are in memory at once, and slots have 32 bits.
constexpr size_t bytes_max = size_t{2} << 30;

/// The shape of one call, without its numbers.
struct attention_shape {
  half_type cache;
  uint32_t batch, context, queries, kv_heads, group, dim;

  /// What Q, K and V come in: of the cache's type, where they can.
  half_type wire() const { return gpu::has_scales(cache) ? half_type::f16 : cache; }
  gpu::kv_layer layer() const { return {nullptr, cache, kv_heads, dim}; }
  uint32_t rows() const { return batch * queries; }
  size_t slots() const { return size_t{batch} * (context + queries); }
  size_t layer_bytes() const { return slots() * layer().row_bytes(); }
};

/// One call over one layer after the other.
class attention_case {
public:
  /// `cache` holds layers of the shape, each of layer_bytes(); `numbers`: ordinary ones of the
  /// wire.
  attention_case(const gpu::operators& ops, const attention_shape& shape, std::byte* cache,
                 std::span<const std::byte> numbers, bench_machine& on)
      : ops_{ops}, on_{on}, shape_{shape}, cache_{cache} {
    for (uint32_t i = 0; i < shape.batch; ++i) {
      spans_.push_back({i * shape.queries, shape.queries, shape.context, i, 1});
      runs_.push_back({i * (shape.context + shape.queries), shape.context + shape.queries});
    }
    args_.kv = shape.layer();
    args_.rows = shape.rows();
    args_.group = shape.group;
    args_.scale = 1 / std::sqrt(static_cast<float>(shape.dim));
    args_.wire = shape.wire();
    args_.spans = spans_;
    args_.runs = runs_;
    if (const auto* why = ops.attention_unsupported(args_)) throw std::runtime_error{why};
    const auto bytes = size_t{shape.kv_heads} * shape.rows() * shape.dim * bytes_of(shape.wire());
    args_.q = repeated(numbers, bytes * shape.group);
    args_.k_new = repeated(numbers, bytes);
    args_.v_new = repeated(numbers.subspan(64), bytes);
    out_.resize(bytes * shape.group);
    args_.out = out_.data();
    state_.resize(ops.attention_state_floats(args_));
    args_.state = state_.data();
  }

  void run(uint32_t layer) {
    args_.kv.rows = cache_ + layer * shape_.layer_bytes();
    ops_.attend_previous(args_, on_.context());
    ops_.append_kv(args_, on_.context());
    ops_.attend_new(args_, on_.context());
  }

  double seconds(uint32_t layers) {
    const auto begin = std::chrono::steady_clock::now();
    for (uint32_t i = 0; i < layers; ++i) run(i);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() / layers;
  }

  const std::vector<std::byte>& out() const { return out_; }

private:
  const std::byte* repeated(std::span<const std::byte> numbers, size_t bytes) {
    auto& x = inputs_.emplace_back(bytes);
    for (size_t at = 0; at < bytes; at += numbers.size())
      std::memcpy(x.data() + at, numbers.data(), std::min(numbers.size(), bytes - at));
    return x.data();
  }

  const gpu::operators& ops_;
  bench_machine& on_;
  attention_shape shape_;
  std::byte* cache_;
  std::vector<gpu::attention_span> spans_;
  std::vector<gpu::slot_run> runs_;
  std::vector<std::vector<std::byte>> inputs_;
  std::vector<std::byte> out_;
  std::vector<float> state_;
  gpu::attention_args args_{};
};

/// Standard normal numbers.
std::vector<std::byte> normal_numbers(half_type type, const gpu::operators& ops,
                                      bench_machine& on) {
  constexpr uint32_t count = 1 << 16;
  std::vector<float> x(count);
  std::mt19937_64 random{3};
  std::normal_distribution<float> normal;
  for (auto& value : x) value = normal(random);
  std::vector<std::byte> out(count * bytes_of(type));
  const uint32_t row = 0;
  ops.to_wire({x.data(), count, {&row, 1}, 0, 1, count, type, out.data()}, on.context());
  return out;
}

/// Writes all slots of a layer: as new rows of one sequence.
void fill(const gpu::operators& ops, const attention_shape& shape, std::byte* layer,
          std::span<const std::byte> numbers, bench_machine& on) {
  constexpr size_t rows_max = 4'096; // K and V of a call take memory
  const auto row_bytes = shape.layer().row_bytes();
  for (size_t first = 0; first < shape.slots(); first += rows_max) {
    const auto rows = static_cast<uint32_t>(std::min(rows_max, shape.slots() - first));
    const gpu::attention_span span{0, rows, 0, 0, 1};
    const gpu::slot_run run{0, rows};
    std::vector<std::byte> kv(size_t{rows} * shape.kv_heads * shape.dim * bytes_of(shape.wire()));
    for (size_t at = 0; at < kv.size(); at += numbers.size())
      std::memcpy(kv.data() + at, numbers.data(), std::min(numbers.size(), kv.size() - at));
    gpu::attention_args args{};
    args.kv = shape.layer();
    args.kv.rows = layer + first * row_bytes;
    args.rows = rows;
    args.group = shape.group;
    args.wire = shape.wire();
    args.k_new = args.v_new = kv.data();
    args.spans = {&span, 1};
    args.runs = {&run, 1};
    ops.append_kv(args, on.context());
  }
}

/// A small call by both sets: off by what fp32 sums in another order and halves may cost.
void check(const gpu::operators& ops, attention_shape shape, std::span<const std::byte> numbers,
           bench_machine& on) {
  shape.batch = 2;
  shape.context = std::min(shape.context, 70u);
  shape.queries = std::min(shape.queries, 3u);
  std::vector<std::byte> cache(shape.layer_bytes());
  fill(gpu::reference_operators(), shape, cache.data(), numbers, on);
  const auto by = [&](const gpu::operators& set) {
    attention_case x{set, shape, cache.data(), numbers, on};
    x.run(0);
    std::vector<float> wide(x.out().size() / bytes_of(shape.wire()));
    std::vector<uint32_t> row{0};
    set.from_wire({x.out().data(), row, 0, 1, static_cast<uint32_t>(wide.size()), shape.wire(),
                   wide.data(), static_cast<uint32_t>(wide.size())},
                  on.context());
    return wide;
  };
  const auto found = by(ops), expected = by(gpu::reference_operators());
  double difference = 0, size = 0;
  for (size_t i = 0; i < found.size(); ++i) {
    difference += std::pow(double{found[i]} - expected[i], 2);
    size += std::pow(double{expected[i]}, 2);
  }
  if (!(difference <= size * 0.01 * 0.01))
    throw std::runtime_error("attention over " + std::string{name_of(shape.cache)}
                             + " gives wrong results");
}

uint32_t layers_of(const attention_shape& x, size_t bytes) {
  return static_cast<uint32_t>(std::clamp<size_t>(bytes / x.layer_bytes(), 1, layers_max));
}

std::string as_json(const std::vector<bench_attention_row>& rows, const bench_attention_options& o,
                    std::string_view kernels, unsigned threads, double read) {
  json_writer out;
  out.begin_object().member("version", 1).member("kernels", kernels).member("threads", threads);
  out.member("kv_heads", o.kv_heads).member("group", o.group).member("dim", o.dim);
  out.member("queries", o.queries);
  out.key("limits").begin_object().member("read_gb_per_s", read).end_object();
  out.key("rows").begin_array();
  for (const auto& r : rows)
    out.begin_object()
        .member("kv", name_of(r.cache))
        .member("batch", r.batch)
        .member("context", r.context)
        .member("us_best", r.best_us)
        .member("us_median", r.median_us)
        .member("gb_per_s_best", r.best_gb_per_s())
        .member("gflops_best", r.best_gflops())
        .end_object();
  out.end_array().end_object();
  return out.take();
}

void print_table(const std::vector<bench_attention_row>& rows, double read) {
  std::printf("%-5s %6s %8s %24s %8s %11s %9s\n", "kv", "batch", "context",
              "us/layer best / median", "GB/s", "of reading", "GFLOP/s");
  for (const auto& r : rows)
    std::printf("%-5s %6u %8u %12.1f / %9.1f %8.1f %11.2f %9.1f\n",
                std::string{name_of(r.cache)}.c_str(), r.batch, r.context, r.best_us, r.median_us,
                r.best_gb_per_s(), r.best_gb_per_s() / read, r.best_gflops());
}

/// Q with K and the weights with V: each query's positions, its own included.
double operations_of(const attention_shape& x) {
  const auto q = static_cast<double>(x.queries);
  const auto positions = q * x.context + q * (q + 1) / 2;
  return 4.0 * x.batch * positions * x.kv_heads * x.group * x.dim;
}

} // namespace

std::string_view name_of(half_type type) {
  switch (type) {
  case half_type::f32:
    return "f32";
  case half_type::f16:
    return "f16";
  case half_type::bf16:
    return "bf16";
  case half_type::q8:
    return "q8";
  case half_type::q4:
    break;
  }
  return "q4";
}

std::vector<bench_attention_row> measure_attention(const bench_attention_options& o,
                                                   const gpu::operators& ops, unsigned threads) {
  bench_machine on{threads};
  gpu::host_engine engine{1, ops};
  const auto memory_of_caches = engine.make_device("bench"); // huge pages, as shards have them
  std::vector<bench_attention_row> result;
  for (const auto batch : o.batches)
    for (const auto context : o.contexts) {
      std::vector<std::unique_ptr<gpu::memory>> memories;
      std::vector<attention_case> cases;
      std::vector<uint32_t> layers;
      for (const auto cache : o.caches) {
        const attention_shape shape{cache, batch, context, o.queries, o.kv_heads, o.group, o.dim};
        const auto numbers = normal_numbers(shape.wire(), ops, on);
        check(ops, shape, numbers, on);
        if (shape.layer_bytes() > bytes_max)
          throw std::runtime_error{"a batch of " + std::to_string(batch) + " with a context of "
                                   + std::to_string(context) + " needs "
                                   + std::to_string(shape.layer_bytes() >> 20)
                                   + " MB per KV type, at most " + std::to_string(bytes_max >> 20)
                                   + " are possible; lower --batch or --context"};
        layers.push_back(layers_of(shape, o.cache_bytes));
        memories.push_back(memory_of_caches->allocate(shape.layer_bytes() * layers.back()));
        auto* data = memories.back()->data();
        for (uint32_t i = 0; i < layers.back(); ++i)
          fill(ops, shape, data + i * shape.layer_bytes(), numbers, on);
        cases.emplace_back(ops, shape, data, numbers, on);
        result.push_back({cache, batch, context, 0, 0,
                          static_cast<double>(size_t{batch} * context * shape.layer().row_bytes()),
                          operations_of(shape)});
      }
      std::vector<std::vector<double>> times(cases.size());
      for (uint32_t turn = 0; turn <= o.repeats; ++turn)
        for (size_t i = 0; i < cases.size(); ++i) {
          const auto s = cases[i].seconds(layers[i]);
          if (turn != 0) times[i].push_back(s); // first, what slept wakes up
        }
      for (size_t i = 0; i < cases.size(); ++i) {
        auto& row = result[result.size() - cases.size() + i];
        std::sort(times[i].begin(), times[i].end());
        row.best_us = times[i].front() * 1e6;
        row.median_us = times[i][times[i].size() / 2] * 1e6;
      }
    }
  return result;
}

int bench_attention(const bench_attention_options& options) {
  std::string reason;
  const auto* ops = gpu::find_operators(options.kernels, &reason);
  if (ops == nullptr) throw command_error{exit_usage, "--kernels: " + reason};
  const auto threads = options.threads == 0 ? actors::usable_processors() : options.threads;
  const auto rows = measure_attention(options, *ops, threads);
  const auto read = measure_read_bandwidth(threads);
  if (options.json) {
    std::printf("%s\n", as_json(rows, options, ops->name, threads, read).c_str());
    return exit_success;
  }
  std::printf(
      "%u KV heads of %u, %u queries each, %u token%s per sequence, kernels %s, %u threads\n",
      options.kv_heads, options.dim, options.group, options.queries,
      options.queries == 1 ? "" : "s", std::string{ops->name}.c_str(), threads);
  print_table(rows, read);
  std::printf("this machine, %u threads, same run: reading %.1f GB/s\n", threads, read);
  return exit_success;
}

} // namespace lamella::cli
