#include "gpu/kernels/reference.hpp"
#include "gpu/kernels/scalar_math.hpp"

#include <algorithm>
#include <limits>

namespace lamella::gpu {

namespace {

/// Slots of positions [0, count) of a span, in order.
void expand_runs(const attention_args& args, const attention_span& span, uint32_t count,
                 uint32_t* slots) {
  uint32_t position = 0;
  for (const auto& run : args.runs.subspan(span.first_run, span.run_count))
    for (uint32_t i = 0; i < run.length && position < count; ++i) slots[position++] = run.first + i;
}

size_t query_offset(const attention_args& args, uint32_t head, uint32_t row, uint32_t g) {
  return ((size_t{head} * args.rows + row) * args.group + g) * args.kv.dim;
}

float* state_of(const attention_args& args, uint32_t row, uint32_t head, uint32_t g) {
  return args.state
         + ((size_t{row} * args.kv.kv_heads + head) * args.group + g) * (args.kv.dim + 2);
}

/// One row and query head over positions [0, count): writes accumulator [D], maximum and weight.
void attend(const attention_args& args, uint32_t row, uint32_t head, uint32_t g,
            const uint32_t* slots, uint32_t count, double* scores, double* sums) {
  auto dim = args.kv.dim;
  auto size = bytes_of(args.kv.type);
  const auto* q = args.q + query_offset(args, head, row, g) * bytes_of(args.wire);
  double highest = -std::numeric_limits<double>::infinity();
  for (uint32_t p = 0; p < count; ++p) {
    const auto* k = args.kv.rows + slots[p] * args.kv.row_bytes() + head * dim * size;
    double score = 0;
    for (uint32_t j = 0; j < dim; ++j) {
      auto scaled = load_widened(args.wire, q + j * bytes_of(args.wire)) * args.scale;
      score += static_cast<double>(scaled) * load_widened(args.kv.type, k + j * size);
    }
    scores[p] = score;
    highest = std::max(highest, score);
  }
  // The maximum goes through the state as a float: round it before, not after, it is used.
  auto maximum = static_cast<float>(highest);
  double weight = 0;
  std::fill_n(sums, dim, 0.0);
  for (uint32_t p = 0; p < count; ++p) {
    const auto* v =
        args.kv.rows + slots[p] * args.kv.row_bytes() + (args.kv.kv_heads + head) * dim * size;
    double w = exp_double(scores[p] - maximum);
    weight += w;
    for (uint32_t j = 0; j < dim; ++j) sums[j] += w * load_widened(args.kv.type, v + j * size);
  }
  float* state = state_of(args, row, head, g);
  for (uint32_t j = 0; j < dim; ++j) state[j] = static_cast<float>(sums[j]);
  state[dim] = maximum;
  state[dim + 1] = static_cast<float>(weight);
}

void attend_span(const attention_args& args, const attention_span& span, kernel_context context) {
  arena::scope scope{context.scratch};
  auto* slots = context.scratch.allocate<uint32_t>(span.first_position + span.rows);
  auto* scores = context.scratch.allocate<double>(span.first_position + span.rows);
  auto* sums = context.scratch.allocate<double>(args.kv.dim);
  expand_runs(args, span, span.first_position + span.rows, slots);
  for (uint32_t i = 0; i < span.rows; ++i)
    for (uint32_t head = 0; head < args.kv.kv_heads; ++head)
      for (uint32_t g = 0; g < args.group; ++g)
        attend(args, span.first_row + i, head, g, slots, span.first_position + i, scores, sums);
}

/// Merges the own position of one row and query head into its state and writes the output.
void finish(const attention_args& args, uint32_t row, uint32_t head, uint32_t g) {
  auto dim = args.kv.dim;
  auto size = bytes_of(args.wire);
  const auto* q = args.q + query_offset(args, head, row, g) * size;
  const auto* k = args.k_new + (size_t{head} * args.rows + row) * dim * size;
  const auto* v = args.v_new + (size_t{head} * args.rows + row) * dim * size;
  auto* out = args.out + query_offset(args, head, row, g) * size;
  auto as_cached = [&](const std::byte* p) {
    auto value = load_widened(args.wire, p);
    return args.kv.type == half_type::f16 ? from_half(to_half(value)) : value;
  };
  double score = 0;
  for (uint32_t j = 0; j < dim; ++j) {
    auto scaled = load_widened(args.wire, q + j * size) * args.scale;
    score += static_cast<double>(scaled) * as_cached(k + j * size);
  }
  const float* state = state_of(args, row, head, g);
  double highest = std::max<double>(state[dim], score);
  double previous = exp_double(state[dim] - highest), own = exp_double(score - highest);
  double weight = state[dim + 1] * previous + own;
  for (uint32_t j = 0; j < dim; ++j) {
    double sum = state[j] * previous + as_cached(v + j * size) * own;
    store_rounded(args.wire, static_cast<float>(sum / weight), out + j * size);
  }
}

} // namespace

void reference_attend_previous(const attention_args& args, kernel_context context) {
  for (const auto& span : args.spans)
    if (span.rows == 1) attend_span(args, span, context);
}

void reference_append_kv(const attention_args& args, kernel_context context) {
  auto dim = args.kv.dim;
  auto from = bytes_of(args.wire), to = bytes_of(args.kv.type);
  for (const auto& span : args.spans) {
    arena::scope scope{context.scratch};
    auto* slots = context.scratch.allocate<uint32_t>(span.first_position + span.rows);
    expand_runs(args, span, span.first_position + span.rows, slots);
    for (uint32_t i = 0; i < span.rows; ++i) {
      auto* row = args.kv.rows + slots[span.first_position + i] * args.kv.row_bytes();
      for (const auto* source : {args.k_new, args.v_new})
        for (uint32_t head = 0; head < args.kv.kv_heads; ++head)
          for (uint32_t j = 0; j < dim; ++j, row += to) {
            auto at = (size_t{head} * args.rows + span.first_row + i) * dim + j;
            store_rounded(args.kv.type, load_widened(args.wire, source + at * from), row);
          }
    }
  }
}

void reference_attend_new(const attention_args& args, kernel_context context) {
  for (const auto& span : args.spans)
    if (span.rows > 1) attend_span(args, span, context);
  for (uint32_t row = 0; row < args.rows; ++row)
    for (uint32_t head = 0; head < args.kv.kv_heads; ++head)
      for (uint32_t g = 0; g < args.group; ++g) finish(args, row, head, g);
}

} // namespace lamella::gpu
