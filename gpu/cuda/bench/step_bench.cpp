// Whole decode iterations on one CUDA device that is replica and attention shard at once, each role
// on a stream of its own, with random weights in the shape of a known model.
//
//   step_bench [--model 8b|1b] [--batch N] [--context N] [--iterations N] [--device N] [--trace N]
//              [--read-gb N] [--torch N]
//
// With --trace N the last N iterations are traced kind by kind; their times are left out of the
// rest. --read-gb: the device's read bandwidth in GB/s as attention_bench measured it in the same
// run; --torch: PyTorch's tokens/s in the same run: with them the targets for these are told too.
#include "gpu/cuda/bench/target.hpp"
#include "gpu/cuda/driver/trace.hpp"
#include "gpu/cuda/operators/matmuls.hpp"
#include "gpu/cuda/stream/launch_count.hpp"
#include "gpu/cuda_module.hpp"
#include "gpu/ring/device_ring.hpp"
#include "gpu/runners/attention_runner.hpp"
#include "gpu/runners/slice_runner.hpp"
#include "model/program/architectures.hpp"
#include "model/program/splitter.hpp"

#include <algorithm>
#include <cmath>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <vector>

using namespace lamella;

namespace {

struct options {
  std::string model = "8b";
  uint32_t batch = 64, context = 4096, iterations = 40, device = 0, traced = 0;
  double read_gb = 0, torch_tokens = 0;
};

model::model_spec shape_of(const std::string& name) {
  model::model_spec s;
  s.architecture = "llama";
  s.head_dim = 128;
  s.vocabulary = 128256;
  s.context_tokens = 131072;
  if (name == "8b") {
    s.layers = 32, s.hidden = 4096, s.feed_forward = 14336, s.heads = 32, s.kv_heads = 8;
  } else if (name == "1b") {
    s.layers = 16, s.hidden = 2048, s.feed_forward = 8192, s.heads = 32, s.kv_heads = 8;
    s.head_dim = 64;
  } else {
    throw std::runtime_error("unknown model '" + name + "'; known are 8b and 1b");
  }
  for (uint32_t i = 0; i < s.head_dim / 2; ++i)
    s.rope_frequencies.push_back(std::pow(500000.0, -2.0 * i / s.head_dim));
  return s;
}

uint16_t half_of(float x) {
  uint32_t bits = 0;
  std::memcpy(&bits, &x, 4);
  const uint32_t magnitude = bits & 0x7fffffff;
  const auto sign = static_cast<uint16_t>(bits >> 16 & 0x8000);
  if (magnitude < 0x38800000) return sign; // below the normal numbers: 0
  return static_cast<uint16_t>(sign | ((magnitude - 0x38000000 + 0x1000) >> 13));
}

/// Random f16 numbers, repeated: enough for any tensor at any offset.
class random_halves {
public:
  random_halves(size_t count, float scale) : values_(count) {
    std::mt19937 random{42};
    std::normal_distribution<float> normal{0, scale};
    const auto fresh = std::min<size_t>(count, size_t{1} << 24);
    for (size_t i = 0; i < fresh; ++i) values_[i] = half_of(normal(random));
    for (size_t i = fresh; i < count; ++i) values_[i] = values_[i - fresh];
  }
  std::span<const std::byte> bytes() const { return std::as_bytes(std::span{values_}); }

private:
  std::vector<uint16_t> values_;
};

/// Counts works as they end.
class finish_line {
public:
  gpu::stream::mark mark() {
    return [this](gpu::work_status status) {
      std::lock_guard lock{mutex_};
      if (status != gpu::work_status::done) bad_ = status;
      times_.push_back(gpu::clock::now());
      changed_.notify_all();
    };
  }
  void wait_for(size_t count) {
    std::unique_lock lock{mutex_};
    changed_.wait(lock, [&] { return times_.size() >= count || bad_; });
    if (bad_) throw std::runtime_error("a work failed: " + std::string{to_string(*bad_)});
  }
  std::vector<gpu::clock::time_point> times() {
    std::lock_guard lock{mutex_};
    return times_;
  }

private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<gpu::clock::time_point> times_;
  std::optional<gpu::work_status> bad_;
};

double milliseconds(gpu::clock::duration d) {
  return std::chrono::duration<double, std::milli>(d).count();
}

/// The value that `share` of them do not exceed.
double quantile(std::vector<double> x, double share) {
  std::sort(x.begin(), x.end());
  return x[std::min(x.size() - 1, static_cast<size_t>(share * static_cast<double>(x.size())))];
}
double median(std::vector<double> x) { return quantile(std::move(x), 0.5); }

void run(const options& o) {
  const auto spec = shape_of(o.model);
  auto graph = model::llama_architecture().trace(spec);
  const auto slices = model::split(graph);
  auto program =
      std::make_shared<model::model_program>(model::make_program(spec, std::move(graph), slices));

  auto began = gpu::clock::now();
  auto device = gpu::open_cuda_device(o.device);
  std::printf("%s, shapes of %s, batch %u, context %u; opened in %.1f s\n", device->name().c_str(),
              o.model.c_str(), o.batch, o.context, milliseconds(gpu::clock::now() - began) / 1000);

  size_t largest = 0;
  for (const auto& w : program->graph.weights)
    largest = std::max(largest, size_t{w.outputs} * w.inputs);
  const random_halves numbers{largest + 4096, 0.02f};
  std::map<std::string, model::tensor_view> views;
  for (const auto& w : program->graph.weights) {
    auto& v = views[w.name];
    v = {w.name, model::tensor_type::f16, w.inputs, w.outputs,
         numbers.bytes().subspan(views.size() % 1024 * 8, size_t{w.outputs} * w.inputs * 2)};
  }
  began = gpu::clock::now();
  auto weights = std::make_shared<gpu::packed_weights>(
      *program,
      [&](const model::weight_use& w) -> const model::tensor_view& { return views.at(w.name); },
      *device, [](uint64_t, uint64_t) {});
  const auto tuning = gpu::cuda::matmuls::of(static_cast<int>(o.device)).seconds_preparing();
  const auto load = milliseconds(gpu::clock::now() - began) / 1000 - tuning;
  const auto room = o.context + o.iterations + o.traced + 64;
  auto cache = std::make_shared<gpu::kv_cache>(*device, spec.layers, o.batch * room, spec.kv_heads,
                                               spec.head_dim, gpu::half_type::f16);
  const random_halves context{size_t{1} << 26, 1.0f};
  for (uint32_t l = 0; l < spec.layers; ++l) {
    const auto layer = cache->layer(l);
    const auto bytes = size_t{cache->slots()} * layer.row_bytes();
    for (size_t at = 0; at < bytes; at += context.bytes().size())
      device->write(layer.rows + at,
                    context.bytes().first(std::min(context.bytes().size(), bytes - at)));
  }
  const auto weight_bytes = weights->bytes();
  const auto kv_bytes = uint64_t{o.batch} * o.context * spec.kv_bytes_per_token(2);
  std::printf("weights %.2f GB in %.2f s, %.1f GB/s, and %.2f s to choose products; KV read per "
              "iteration %.2f GB\n",
              weight_bytes / 1e9, load, weight_bytes / 1e9 / load, tuning, kv_bytes / 1e9);

  auto model_stream = device->make_stream("model");
  auto attention_stream = device->make_stream("attention");
  gpu::ring_terms terms;
  terms.slots = 8;
  terms.slot_bytes =
      gpu::slot_room(size_t{o.batch} * std::max(spec.heads, 2 * spec.kv_heads) * spec.head_dim * 2);
  auto forth = gpu::make_device_ring(*device, *device, terms);
  auto back = gpu::make_device_ring(*device, *device, terms);
  auto state = std::make_shared<gpu::slice_stream_state>(*device);

  finish_line replica_line, shard_line;
  std::vector<std::shared_ptr<gpu::slice_runner>> replicas;
  std::vector<std::shared_ptr<gpu::attention_runner>> shards;
  const auto launch = [&](uint32_t i) {
    gpu::slice_launch x;
    gpu::attention_launch a;
    x.tag.iteration = a.tag.iteration = i + 1;
    a.rows = o.batch;
    a.group = spec.group();
    a.scale = spec.attention_scale();
    std::vector<uint32_t> all;
    for (uint32_t r = 0; r < o.batch; ++r) {
      x.tokens.push_back(i == 0 ? r : gpu::take_sampled);
      x.seats.push_back(r);
      x.positions.push_back(o.context + i);
      x.selected.push_back(r);
      x.samples.push_back({r, 42 + r, 0, i, 0, 0, 1, 0, 0, 0, 0});
      x.sample_seats.push_back(r);
      a.spans.push_back({r, 1, o.context + i, r, 1});
      a.runs.push_back({r * room, o.context + i + 1});
      all.push_back(r);
    }
    x.shares.push_back({forth.to, back.from, all, 0, spec.kv_heads});
    const auto deadline = gpu::clock::now() + std::chrono::seconds{60};
    shards.push_back(std::make_shared<gpu::attention_runner>(
        cache, device->ops(), a, std::vector{gpu::runner_link{forth.from, back.to}}));
    replicas.push_back(
        std::make_shared<gpu::slice_runner>(program, weights, device->ops(), std::move(x), state));
    attention_stream->launch(shards.back(), deadline, shard_line.mark());
    model_stream->launch(replicas.back(), deadline, replica_line.mark());
  };
  // One iteration ahead, as batches launch them.
  const auto run_to = [&](uint32_t from, uint32_t to) {
    for (uint32_t i = from; i < to; ++i) {
      if (i >= 2) replica_line.wait_for(i - 1);
      launch(i);
    }
    replica_line.wait_for(to);
    shard_line.wait_for(to);
  };
  run_to(0, 2); // what is launched once is not counted
  const auto launched = gpu::cuda::kernels_launched.load();
  run_to(2, o.iterations);
  const auto per_iteration =
      static_cast<double>(gpu::cuda::kernels_launched - launched) / (o.iterations - 2);
  const auto times = replica_line.times();
  std::vector<double> taken, model_busy, idle_us;
  for (size_t i = 8; i < times.size(); ++i) {
    taken.push_back(milliseconds(times[i] - times[i - 1]));
    model_busy.push_back(milliseconds(replicas[i]->busy()));
    if (const auto gap = replicas[i]->gap()) idle_us.push_back(1000 * milliseconds(*gap));
  }
  for (const auto& s : replicas.back()->sampled())
    if (!s.finite) throw std::runtime_error("logits are not finite");
  const auto best = *std::min_element(taken.begin(), taken.end()), middle = median(taken);
  std::printf("iteration %.3f ms best, %.3f median; first to last kernel %.3f median\n", best,
              middle, median(model_busy));
  std::printf("%.1f kernels per iteration, %.1f per layer\n", per_iteration,
              per_iteration / spec.layers);
  std::printf("%.0f tokens/s best, %.0f median; bytes per iteration %.2f GB, %.0f GB/s median\n",
              o.batch / best * 1000, o.batch / middle * 1000, (weight_bytes + kv_bytes) / 1e9,
              (weight_bytes + kv_bytes) / middle / 1e6);
  const auto gap_p50 = idle_us.empty() ? 0 : median(idle_us),
             gap_p99 = idle_us.empty() ? 0 : quantile(idle_us, 0.99);
  std::printf("gap between iterations on the model's stream: p50 %.2f us, p99 %.2f us\n", gap_p50,
              gap_p99);
  const auto named = [&](const char* what) {
    return std::string{what} + "-" + o.model + "-" + std::to_string(o.batch) + "x"
           + std::to_string(o.context);
  };
  gpu::cuda::bench::print_target({named("launch-gap-us").c_str(), 30, 10, true}, gap_p50);
  const auto floor_ms = o.read_gb > 0 ? (weight_bytes + kv_bytes) / (o.read_gb * 1e6) : 0;
  if (o.model == "8b") {
    gpu::cuda::bench::print_target({named("of-roofline").c_str(), 0.6, 0.8}, floor_ms / middle);
    gpu::cuda::bench::print_target({named("of-pytorch").c_str(), 2, 3},
                                   o.torch_tokens > 0 ? o.batch / middle * 1000 / o.torch_tokens
                                                      : 0);
  }
  if (o.traced == 0) return;
  gpu::cuda::start_trace(size_t{o.traced} * spec.layers * 64 + 4096);
  run_to(o.iterations, o.iterations + o.traced);
  std::printf("traced, per iteration: stream: kind, times, ms, us each\n");
  for (const auto& k : gpu::cuda::end_trace())
    std::printf("  %-36s %7.1f %9.3f %8.2f\n", k.what.c_str(),
                static_cast<double>(k.count) / o.traced, k.milliseconds / o.traced,
                k.milliseconds * 1000 / static_cast<double>(k.count));
}

} // namespace

int main(int argc, char** argv) {
  options o;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string name = argv[i];
    if (name == "--model")
      o.model = argv[i + 1];
    else if (name == "--batch")
      o.batch = static_cast<uint32_t>(std::stoul(argv[i + 1]));
    else if (name == "--context")
      o.context = static_cast<uint32_t>(std::stoul(argv[i + 1]));
    else if (name == "--iterations")
      o.iterations = static_cast<uint32_t>(std::max(12ul, std::stoul(argv[i + 1])));
    else if (name == "--trace")
      o.traced = static_cast<uint32_t>(std::stoul(argv[i + 1]));
    else if (name == "--read-gb")
      o.read_gb = std::stod(argv[i + 1]);
    else if (name == "--torch")
      o.torch_tokens = std::stod(argv[i + 1]);
    else if (name == "--device")
      o.device = static_cast<uint32_t>(std::stoul(argv[i + 1]));
    else
      return std::fprintf(stderr, "unknown option %s\n", argv[i]), 64;
  }
  try {
    run(o);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
