#include "cli/bench/parts/bench_gemm.hpp"

#include "actors/machine/sizing.hpp"
#include "base/json_writer.hpp"
#include "cli/bench/parts/bench_machine.hpp"
#include "cli/commands.hpp"
#include "cli/machine_limits.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <random>
#include <span>
#include <stdexcept>

namespace lamella::cli {

namespace {

using gpu::packed_matrix;
using model::tensor_type;

/// Rows as they might lie in a file. Any two neighbouring bytes from 0x20 to 0x2f are an ordinary
/// half, bfloat16 or end of a float, wherever a type has them.
std::vector<std::byte> random_rows(tensor_type type, uint32_t outputs, uint32_t inputs) {
  std::vector<std::byte> rows(outputs * model::row_bytes(type, inputs));
  std::mt19937_64 random{1};
  for (size_t i = 0; i < rows.size(); i += 16) {
    auto word = random();
    for (size_t j = i; j < std::min(rows.size(), i + 16); ++j, word >>= 4)
      rows[j] = static_cast<std::byte>(0x20 | (word & 15));
  }
  return rows;
}

packed_matrix pack(const gpu::operators& ops, tensor_type type, std::span<const std::byte> rows,
                   uint32_t outputs, uint32_t inputs, bench_machine& on) {
  auto* data = on.data.allocate<std::byte>(ops.packed_bytes(type, outputs, inputs));
  ops.pack(type, rows.data(), outputs, inputs, data, on.workers);
  return {type, outputs, inputs, data};
}

/// The first outputs of one row by both sets: off by what activations of 8 bits may cost.
void check(const gpu::operators& ops, tensor_type type, std::span<const std::byte> rows,
           uint32_t inputs, const float* x, bench_machine& on) {
  constexpr uint32_t outputs = 16;
  std::vector<float> found(outputs), expected(outputs);
  const auto multiply = [&](const gpu::operators& set, std::vector<float>& out) {
    const gpu::matmul_part part{pack(set, type, rows, outputs, inputs, on), out.data(), outputs};
    set.matmul({x, 1, {&part, 1}}, on.context());
  };
  multiply(ops, found);
  multiply(gpu::reference_operators(), expected);
  double difference = 0, size = 0;
  for (uint32_t n = 0; n < outputs; ++n) {
    difference += std::pow(double{found[n]} - expected[n], 2);
    size += std::pow(double{expected[n]}, 2);
  }
  if (!(difference <= size * 0.05 * 0.05))
    throw std::runtime_error("matmuls with weights of type " + std::string{to_string(type)}
                             + " give wrong results");
}

double seconds_of(const gpu::operators& ops, const packed_matrix& weight, const float* x,
                  uint32_t rows, float* out, bench_machine& on) {
  const gpu::matmul_part part{weight, out, weight.outputs};
  const auto begin = std::chrono::steady_clock::now();
  ops.matmul({x, rows, {&part, 1}}, on.context());
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

std::vector<tensor_type> types_of(const bench_gemm_options& options) {
  if (!options.types.empty()) return options.types;
  std::vector<tensor_type> all;
  for (const auto& known : model::tensor_types) all.push_back(known.type);
  return all;
}

std::string as_json(const std::vector<bench_gemm_row>& rows, const bench_gemm_options& options,
                    std::string_view kernels, unsigned threads, double read, double int8) {
  json_writer out;
  out.begin_object().member("version", 1).member("kernels", kernels).member("threads", threads);
  out.member("outputs", options.outputs).member("inputs", options.inputs);
  out.key("limits").begin_object().member("read_gb_per_s", read);
  if (int8 > 0) out.member("int8_gops", int8);
  out.end_object().key("rows").begin_array();
  for (const auto& r : rows)
    out.begin_object()
        .member("type", to_string(r.type))
        .member("rows", r.rows)
        .member("bits_per_weight", r.bits_per_weight)
        .member("gflops_best", r.best_gflops)
        .member("gflops_median", r.median_gflops)
        .end_object();
  out.end_array().end_object();
  return out.take();
}

/// A line per type, a column per number of rows.
void print_table(const std::vector<bench_gemm_row>& rows, const bench_gemm_options& options) {
  std::printf("%-7s %7s", "type", "bits/w");
  for (const auto count : options.rows) std::printf("   %8u rows    ", count);
  std::printf("   (GFLOP/s, best / median)\n");
  for (size_t i = 0; i < rows.size(); i += options.rows.size()) {
    std::printf("%-7s %7.3f", std::string{to_string(rows[i].type)}.c_str(),
                rows[i].bits_per_weight);
    for (size_t j = i; j < i + options.rows.size(); ++j)
      std::printf("   %7.1f / %7.1f", rows[j].best_gflops, rows[j].median_gflops);
    std::printf("\n");
  }
}

} // namespace

std::vector<bench_gemm_row> measure_gemm(const bench_gemm_options& o, const gpu::operators& ops,
                                         unsigned threads) {
  bench_machine on{threads};
  const auto most = *std::max_element(o.rows.begin(), o.rows.end());
  std::vector<float> x(size_t{most} * o.inputs), out(size_t{most} * o.outputs);
  std::mt19937_64 random{2};
  std::normal_distribution<float> normal;
  for (auto& value : x) value = normal(random);

  std::vector<packed_matrix> weights;
  for (const auto type : types_of(o)) {
    if (o.inputs % model::block_elements(type) != 0)
      throw std::runtime_error("weights of type " + std::string{to_string(type)}
                               + " need inputs that are a multiple of "
                               + std::to_string(model::block_elements(type)));
    const auto rows = random_rows(type, o.outputs, o.inputs);
    check(ops, type, rows, o.inputs, x.data(), on);
    weights.push_back(pack(ops, type, rows, o.outputs, o.inputs, on));
  }

  std::vector<std::vector<double>> times(weights.size() * o.rows.size());
  for (uint32_t turn = 0; turn <= o.repeats; ++turn)
    for (size_t r = 0; r < o.rows.size(); ++r)
      for (size_t w = 0; w < weights.size(); ++w) {
        const auto s = seconds_of(ops, weights[w], x.data(), o.rows[r], out.data(), on);
        if (turn != 0) times[w * o.rows.size() + r].push_back(s); // first, what slept wakes up
      }

  std::vector<bench_gemm_row> result;
  const auto count = static_cast<double>(o.outputs) * o.inputs;
  for (size_t w = 0; w < weights.size(); ++w)
    for (size_t r = 0; r < o.rows.size(); ++r) {
      auto& all = times[w * o.rows.size() + r];
      std::sort(all.begin(), all.end());
      const auto work = 2e-9 * o.rows[r] * count;
      const auto type = weights[w].type;
      result.push_back(
          {type, o.rows[r],
           8.0 * static_cast<double>(ops.packed_bytes(type, o.outputs, o.inputs)) / count,
           work / all.front(), work / all[all.size() / 2]});
    }
  return result;
}

int bench_gemm(const bench_gemm_options& options) {
  std::string reason;
  const auto* ops = gpu::find_operators(options.kernels, &reason);
  if (ops == nullptr) throw command_error{exit_usage, "--kernels: " + reason};
  const auto threads = options.threads == 0 ? actors::usable_processors() : options.threads;
  const auto rows = measure_gemm(options, *ops, threads);
  const auto read = measure_read_bandwidth(threads), int8 = measure_int8_rate(threads);
  if (options.json) {
    std::printf("%s\n", as_json(rows, options, ops->name, threads, read, int8).c_str());
    return exit_success;
  }
  std::printf("%u x %u weights, kernels %s, %u threads\n", options.outputs, options.inputs,
              std::string{ops->name}.c_str(), threads);
  print_table(rows, options);
  std::printf("this machine, %u threads, same run: reading %.1f GB/s, int8 %.0f Gop/s\n", threads,
              read, int8);
  return exit_success;
}

} // namespace lamella::cli
