// Choosing algorithms: everything the library offers and every own tile is run on random rows; what
// has the bytes of the fixed arithmetic at several numbers and offsets of rows is timed, and the
// fastest is taken. Rows are compared at offsets because a row's place in a tile must not matter.
#include "gpu/cuda/driver/memory.hpp"
#include "gpu/cuda/gemm/gemm.hpp"
#include "gpu/cuda/gemm/gemm_check.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>

namespace lamella::gpu::cuda {

namespace {

constexpr int offers_per_class = 8;
constexpr uint64_t seed = 0x5eed;

/// Null where there is no room.
std::shared_ptr<std::byte> allocate(size_t bytes) {
  try {
    return device_memory(bytes);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

struct event_pair {
  cudaEvent_t from{}, to{};
  event_pair() {
    cudaEventCreate(&from);
    cudaEventCreate(&to);
  }
  ~event_pair() {
    cudaEventDestroy(from);
    cudaEventDestroy(to);
  }
  event_pair(const event_pair&) = delete;
  event_pair& operator=(const event_pair&) = delete;
};

/// The inputs, room and questions of one shape's tuning.
class bench {
public:
  bench(gemm& matmuls, std::span<const dense_matrix> weights, const gemm_plan& plan,
        cudaStream_t stream)
      : matmuls_{matmuls}, weights_{weights}, plan_{plan}, stream_{stream} {
    const auto& w = weights[0];
    x_ = allocate(dense_bytes(plan.rows_max, w.inputs));
    expected_ = allocate(output_bytes(plan.rows_max));
    actual_ = allocate(output_bytes(plan.rows_max));
    scratch_size_ = gemm::scratch_bytes(plan.rows_max, w.outputs, w.inputs);
    scratch_ = allocate(scratch_size_);
    differences_ = allocate(sizeof(unsigned long long));
    tickets_ = allocate(split_tickets_most * sizeof(uint32_t));
  }

  bool has_room() const {
    return x_ && expected_ && actual_ && scratch_ && differences_ && tickets_;
  }

  cudaError_t fill() {
    const auto& w = weights_[0];
    const auto error =
        cudaMemsetAsync(tickets_.get(), 0, split_tickets_most * sizeof(uint32_t), stream_);
    if (error != cudaSuccess) return error;
    return launch_fill_random(w.type, x_.get(), size_t{plan_.rows_max} * w.inputs, seed, stream_);
  }

  product rows(uint32_t first, uint32_t count, float* out) const {
    const auto& w = weights_[0];
    return {w.type, count,    w.outputs, w.inputs, w.data, x_.get() + dense_bytes(first, w.inputs),
            out,    w.outputs};
  }

  cudaError_t expect(const algorithm& fixed) {
    return run(fixed, rows(0, plan_.rows_max, reinterpret_cast<float*>(expected_.get())));
  }

  /// Does it write the expected bytes of `count` rows from `first`? False also where it cannot run.
  bool agrees(const algorithm& a, uint32_t first, uint32_t count) {
    auto* actual = reinterpret_cast<float*>(actual_.get());
    auto* counter = reinterpret_cast<unsigned long long*>(differences_.get());
    // All bits set is a NaN that no product writes.
    cudaMemsetAsync(actual, 0xff, output_bytes(count), stream_);
    cudaMemsetAsync(counter, 0, sizeof *counter, stream_);
    if (run(a, rows(first, count, actual)) != cudaSuccess) {
      cudaGetLastError(); // a kernel of another device class
      return false;
    }
    const size_t outputs = weights_[0].outputs;
    launch_count_differences(actual,
                             reinterpret_cast<const float*>(expected_.get()) + first * outputs,
                             count * outputs, counter, stream_);
    unsigned long long found = 1;
    cudaMemcpyAsync(&found, counter, sizeof found, cudaMemcpyDeviceToHost, stream_);
    return cudaStreamSynchronize(stream_) == cudaSuccess && found == 0;
  }

  /// At the class's ends, alone within it, and shifted.
  bool agrees_in_class(const algorithm& a, uint32_t least, uint32_t most) {
    return agrees(a, 0, most) && agrees(a, 0, least) && agrees(a, 1, most - 1)
           && agrees(a, 3, most - 5);
  }

  /// Microseconds of one product over rotating weights, best of three; 0: it does not run.
  double time(const algorithm& a, uint32_t count, double not_above) {
    constexpr int matmuls = 4;
    auto p = rows(0, count, reinterpret_cast<float*>(actual_.get()));
    double best = 0;
    for (int repetition = 0; repetition < 4; ++repetition) {
      cudaEventRecord(events_.from, stream_);
      for (int i = 0; i < matmuls; ++i) {
        p.w = weights_[next_++ % weights_.size()].data;
        if (run(a, p) != cudaSuccess) {
          cudaGetLastError();
          return 0;
        }
      }
      cudaEventRecord(events_.to, stream_);
      if (cudaEventSynchronize(events_.to) != cudaSuccess) return 0;
      float milliseconds = 0;
      cudaEventElapsedTime(&milliseconds, events_.from, events_.to);
      const double each = milliseconds * 1000.0 / matmuls;
      if (repetition == 0 && each > not_above) return each;
      if (repetition > 0 && (best == 0 || each < best)) best = each;
    }
    return best;
  }

private:
  size_t output_bytes(uint32_t rows) const { return size_t{rows} * weights_[0].outputs * 4; }
  cudaError_t run(const algorithm& a, const product& p) {
    return matmuls_.run_one(a, p, plan_.splits, scratch_.get(), scratch_size_, stream_,
                            {reinterpret_cast<uint32_t*>(tickets_.get()), split_tickets_most});
  }

  gemm& matmuls_;
  std::span<const dense_matrix> weights_;
  const gemm_plan& plan_;
  cudaStream_t stream_;
  std::shared_ptr<std::byte> x_, expected_, actual_, scratch_, differences_, tickets_;
  size_t scratch_size_ = 0, next_ = 0;
  event_pair events_;
};

/// Every own kernel, and every algorithm that the library offers at any number of rows: at few rows
/// it likes to cut K, which is not allowed here, and what it offers for more rows then serves
/// better.
std::vector<algorithm> candidates(bench& trial, gemm& matmuls, arithmetic fixed,
                                  const gemm_plan& plan, const algorithm& anchor) {
  std::vector<algorithm> all;
  for (uint32_t variant = 0; variant < mma_variants(); ++variant)
    all.push_back({.variant = variant});
  if (anchor.library) all.push_back(anchor);
  const bool any = fixed == arithmetic::fastest;
  for (auto rows : row_classes) {
    if (rows > plan.rows_max) break;
    for (const auto& a :
         matmuls.offers(trial.rows(0, rows, nullptr), plan.splits, any, offers_per_class)) {
      const auto same = [&](const algorithm& b) {
        return b.library && std::memcmp(&a.choice, &b.choice, sizeof a.choice) == 0;
      };
      if (std::none_of(all.begin(), all.end(), same)) all.push_back(a);
    }
  }
  return all;
}

/// Everything is timed, then compared from the fastest on, until one has the right bytes: most of
/// them have, and comparing takes longer than timing.
void choose(bench& trial, std::span<const algorithm> all, arithmetic fixed, uint32_t least,
            uint32_t most, class_choice& result) {
  struct timed {
    double microseconds;
    const algorithm* with;
  };
  std::vector<timed> order;
  double fastest = 0;
  for (const auto& a : all) {
    result.offered += a.library ? 1 : 0;
    // Whoever takes twice the best so far is not measured again.
    const auto took = trial.time(a, most, fastest > 0 ? 2 * fastest : 1e9);
    if (took <= 0) continue;
    order.push_back({took, &a});
    if (fastest == 0 || took < fastest) fastest = took;
  }
  std::stable_sort(order.begin(), order.end(),
                   [](const timed& a, const timed& b) { return a.microseconds < b.microseconds; });
  for (const auto& [took, with] : order) {
    const bool wanted = result.microseconds == 0,
               own_wanted = !with->library && result.own_microseconds == 0;
    if (!wanted && !own_wanted) continue;
    if (fixed != arithmetic::fastest && !trial.agrees_in_class(*with, least, most)) {
      result.refused += wanted ? 1 : 0;
      continue;
    }
    if (own_wanted) {
      result.own_microseconds = took;
      result.own_best = with->variant;
    }
    if (wanted) {
      result.microseconds = took;
      result.best = *with;
    }
  }
}

std::string describe(const weight_shape& s) {
  return std::to_string(s.outputs) + " x " + std::to_string(s.inputs)
         + (s.type == dense_type::f16 ? " f16" : " bf16");
}

} // namespace

std::optional<std::string> gemm::tune(std::span<const dense_matrix> weights, cudaStream_t stream) {
  const weight_shape shape{weights[0].type, weights[0].outputs, weights[0].inputs};
  gemm_plan plan;
  plan.splits = splits_of(shape.outputs, shape.inputs);
  plan.rows_max = rows_max_of(shape.outputs);
  bench trial{*this, weights, plan, stream};
  if (!trial.has_room()) {
    cudaGetLastError(); // the failed allocation is answered for
    if (fixed_ == arithmetic::own) return std::nullopt;
    return "no memory to choose algorithms for weights of " + describe(shape);
  }
  algorithm anchor{.variant = default_mma_variant(plan.rows_max, shape.outputs, shared_most_)};
  if (fixed_ == arithmetic::library) {
    auto offered = offers(trial.rows(0, 256, nullptr), plan.splits, false, 1);
    if (offered.empty()) return "the library has no algorithm for weights of " + describe(shape);
    anchor = offered[0];
  }
  auto error = trial.fill();
  if (error == cudaSuccess) error = trial.expect(anchor);
  if (error == cudaSuccess) error = cudaStreamSynchronize(stream);
  if (error != cudaSuccess)
    return "matmuls of " + describe(shape) + ": " + cudaGetErrorString(error);
  const auto all = candidates(trial, *this, fixed_, plan, anchor);
  uint32_t least = 1;
  for (size_t c = 0; c < row_classes.size() && row_classes[c] <= plan.rows_max; ++c) {
    auto& found = plan.classes[c];
    choose(trial, all, fixed_, least, row_classes[c], found);
    if (found.microseconds == 0)
      return "no algorithm repeats its own bytes for weights of " + describe(shape) + " at "
             + std::to_string(row_classes[c]) + " rows";
    least = row_classes[c] + 1;
  }
  plans_[shape] = plan;
  return std::nullopt;
}

} // namespace lamella::gpu::cuda
