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

/// Room for one row and query head.
struct attend_room {
  double *scores, *sums; ///< [positions], [D]
  float* widened;        ///< [D]
};

/// One row and query head over positions [0, count): writes accumulator [D], maximum and weight.
void attend(const attention_args& args, uint32_t row, uint32_t head, uint32_t g,
            const uint32_t* slots, uint32_t count, const attend_room& room) {
  auto dim = args.kv.dim;
  auto* scores = room.scores;
  auto* sums = room.sums;
  const float* widened = room.widened;
  const auto* q = args.q + query_offset(args, head, row, g) * bytes_of(args.wire);
  double highest = -std::numeric_limits<double>::infinity();
  for (uint32_t p = 0; p < count; ++p) {
    load_head(args.kv.type, args.kv.rows + slots[p] * args.kv.row_bytes() + args.kv.k_offset(head),
              dim, room.widened);
    double score = 0;
    for (uint32_t j = 0; j < dim; ++j) {
      auto scaled = load_widened(args.wire, q + j * bytes_of(args.wire)) * args.scale;
      score += static_cast<double>(scaled) * widened[j];
    }
    scores[p] = score;
    highest = std::max(highest, score);
  }
  // The maximum goes through the state as a float: round it before, not after, it is used.
  auto maximum = static_cast<float>(highest);
  double weight = 0;
  std::fill_n(sums, dim, 0.0);
  for (uint32_t p = 0; p < count; ++p) {
    load_head(args.kv.type, args.kv.rows + slots[p] * args.kv.row_bytes() + args.kv.v_offset(head),
              dim, room.widened);
    double w = exp_double(scores[p] - maximum);
    weight += w;
    for (uint32_t j = 0; j < dim; ++j) sums[j] += w * widened[j];
  }
  float* state = state_of(args, row, head, g);
  for (uint32_t j = 0; j < dim; ++j) state[j] = static_cast<float>(sums[j]);
  state[dim] = maximum;
  state[dim + 1] = static_cast<float>(weight);
}

void attend_span(const attention_args& args, const attention_span& span, kernel_context context) {
  arena::scope scope{context.scratch};
  auto* slots = context.scratch.allocate<uint32_t>(span.first_position + span.rows);
  const attend_room room{context.scratch.allocate<double>(span.first_position + span.rows),
                         context.scratch.allocate<double>(args.kv.dim),
                         context.scratch.allocate<float>(args.kv.dim)};
  expand_runs(args, span, span.first_position + span.rows, slots);
  for (uint32_t i = 0; i < span.rows; ++i)
    for (uint32_t head = 0; head < args.kv.kv_heads; ++head)
      for (uint32_t g = 0; g < args.group; ++g)
        attend(args, span.first_row + i, head, g, slots, span.first_position + i, room);
}

/// K or V of one row and head as its cache holds it. `head`: room for that.
void as_cached(const attention_args& args, const std::byte* from, std::byte* head, float* out) {
  for (uint32_t j = 0; j < args.kv.dim; ++j)
    out[j] = load_widened(args.wire, from + j * bytes_of(args.wire));
  store_head(args.kv.type, out, args.kv.dim, head);
  load_head(args.kv.type, head, args.kv.dim, out);
}

/// Merges the own position of one row and query head into its state and writes the output.
void finish(const attention_args& args, uint32_t row, uint32_t head, uint32_t g, const float* k,
            const float* v) {
  auto dim = args.kv.dim;
  auto size = bytes_of(args.wire);
  const auto* q = args.q + query_offset(args, head, row, g) * size;
  auto* out = args.out + query_offset(args, head, row, g) * size;
  double score = 0;
  for (uint32_t j = 0; j < dim; ++j) {
    auto scaled = load_widened(args.wire, q + j * size) * args.scale;
    score += static_cast<double>(scaled) * k[j];
  }
  const float* state = state_of(args, row, head, g);
  double highest = std::max<double>(state[dim], score);
  double previous = exp_double(state[dim] - highest), own = exp_double(score - highest);
  double weight = state[dim + 1] * previous + own;
  for (uint32_t j = 0; j < dim; ++j) {
    double sum = state[j] * previous + v[j] * own;
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
  const auto wire_bytes = head_bytes_of(args.wire, dim);
  for (const auto& span : args.spans) {
    arena::scope scope{context.scratch};
    auto* widened = context.scratch.allocate<float>(dim);
    auto* slots = context.scratch.allocate<uint32_t>(span.first_position + span.rows);
    expand_runs(args, span, span.first_position + span.rows, slots);
    for (uint32_t i = 0; i < span.rows; ++i) {
      auto* row = args.kv.rows + slots[span.first_position + i] * args.kv.row_bytes();
      for (const auto* source : {args.k_new, args.v_new})
        for (uint32_t head = 0; head < args.kv.kv_heads; ++head, row += args.kv.head_bytes()) {
          const auto* from = source + (size_t{head} * args.rows + span.first_row + i) * wire_bytes;
          if (args.wire == args.kv.type) {
            std::memcpy(row, from, wire_bytes);
            continue;
          }
          load_head(args.wire, from, dim, widened);
          store_head(args.kv.type, widened, dim, row);
        }
    }
  }
}

void reference_attend_new(const attention_args& args, kernel_context context) {
  for (const auto& span : args.spans)
    if (span.rows > 1) attend_span(args, span, context);
  arena::scope scope{context.scratch};
  auto* stored = context.scratch.allocate<std::byte>(args.kv.head_bytes());
  auto* k = context.scratch.allocate<float>(args.kv.dim);
  auto* v = context.scratch.allocate<float>(args.kv.dim);
  for (uint32_t row = 0; row < args.rows; ++row)
    for (uint32_t head = 0; head < args.kv.kv_heads; ++head) {
      const auto at = (size_t{head} * args.rows + row) * args.kv.dim * bytes_of(args.wire);
      as_cached(args, args.k_new + at, stored, k);
      as_cached(args, args.v_new + at, stored, v);
      for (uint32_t g = 0; g < args.group; ++g) finish(args, row, head, g, k, v);
    }
}

} // namespace lamella::gpu
