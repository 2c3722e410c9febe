/// The three steps of attention in the vectorised sets. Included after `lanes`.
///
/// Spans of one row are cut along the context, so that one long sequence keeps every thread busy:
/// an item is some chunks of a span, with all heads, because a slot's row holds all heads side by
/// side. Spans of several rows are cut into blocks of rows and heads, which share each widened
/// chunk.
#pragma once

#include "gpu/kernels/attention_rows.hpp"

#include <new>

namespace lamella::gpu {
namespace {

constexpr uint32_t chunks_per_item = 4;

/// Some consecutive chunks of a span of one row.
struct context_item {
  const attention_span* span;
  slot_cursor slots;    ///< at the first position
  uint32_t first, last; ///< positions
  float* states;        ///< [chunks, H, G, state_stride]
};

constexpr uint32_t chunks_of(uint32_t positions) {
  return (positions + chunk_positions - 1) / chunk_positions;
}

template <half_type type, int vectors>
void attend_context(const attention_args& args, const attention_shape& shape,
                    const context_item& item, float* room) {
  constexpr uint32_t most = chunks_per_item * chunk_positions;
  const std::byte* rows[most + tile_positions];
  auto count = item.last - item.first;
  {
    std::byte* taken[most];
    auto slots = item.slots;
    slots.take(count, taken);
    for (uint32_t i = 0; i < count; ++i) rows[i] = taken[i];
    for (uint32_t i = 0; i < tile_positions; ++i) rows[count + i] = taken[count - 1];
  }
  auto queries = shape.heads * shape.group;
  float* q = room;
  for (uint32_t h = 0; h < shape.heads; ++h)
    load_queries(args, shape, h, item.span->first_row, 0, shape.group,
                 q + size_t{h} * shape.group * shape.padded_dim);
  [[maybe_unused]] widened_tile copy{room + size_t{queries} * shape.padded_dim, {}};
  bool exact = shape.dim == shape.padded_dim;

  // Units of work are (tile, head); memory is asked for some units ahead.
  auto head_bytes = static_cast<uint32_t>(shape.head_bytes);
  uint32_t ahead = lanes::prefetch_bytes / (head_bytes * 2 * tile_positions);
  if (ahead == 0) ahead = 1;

  for (uint32_t chunk = 0; chunk * chunk_positions < count; ++chunk) {
    float* states = item.states + size_t{chunk} * queries * shape.state_stride;
    for (uint32_t i = 0; i < queries; ++i)
      clear_state(states + i * shape.state_stride, shape.padded_dim);
    auto end = (chunk + 1) * chunk_positions < count ? (chunk + 1) * chunk_positions : count;
    for (auto at = chunk * chunk_positions; at < end; at += tile_positions) {
      auto n = end - at < tile_positions ? end - at : tile_positions;
      for (uint32_t h = 0; h < shape.heads; ++h) {
        query_block block{q + size_t{h} * shape.group * shape.padded_dim,
                          states + size_t{h} * shape.group * shape.state_stride, shape.padded_dim,
                          shape.state_stride, shape.padded_dim};
        auto next_head = (h + ahead) % shape.heads;
        auto next_at = at + (h + ahead) / shape.heads * tile_positions;
        tile_prefetch next{rows + (next_at < count ? next_at : at), args.kv.k_offset(next_head),
                           args.kv.v_offset(next_head), next_at < count ? head_bytes : 0};
        if (exact) {
          tile_source source{rows + at, args.kv.k_offset(h), args.kv.v_offset(h),
                             scales_at(type, shape.dim)};
          attend_tile_all<type, vectors>(block, 0, shape.group, source, n, next);
        } else {
          next.bytes = 0;
          auto source = copy.fill(args, shape, rows + at, n, h);
          attend_tile_all<half_type::f32, vectors>(block, 0, shape.group, source, n, next);
        }
      }
    }
  }
}

/// Cuts the contexts of all spans of one row into items.
struct context_plan {
  context_item* items;
  size_t count = 0;

  context_plan(const attention_args& args, const attention_shape& shape, kernel_context context) {
    size_t chunks = 0;
    for (const auto& span : args.spans)
      if (span.rows == 1) chunks += chunks_of(span.first_position);
    auto per_item = chunks / (size_t{context.workers.size()} * 8);
    auto step = static_cast<uint32_t>(per_item < 1                 ? 1
                                      : per_item > chunks_per_item ? chunks_per_item
                                                                   : per_item);
    items = static_cast<context_item*>(context.scratch.allocate_bytes(chunks * sizeof *items));
    auto floats = size_t{shape.heads} * shape.group * shape.state_stride;
    auto* states = context.scratch.allocate<float>(chunks * floats);
    for (const auto& span : args.spans) {
      if (span.rows != 1) continue;
      slot_cursor slots{args, span};
      for (uint32_t at = 0; at < span.first_position; at += step * chunk_positions) {
        auto left = span.first_position - at;
        auto length = left < step * chunk_positions ? left : step * chunk_positions;
        new (items + count++) context_item{&span, slots, at, at + length, states};
        states += chunks_of(length) * floats;
        if (length < left) slots.skip(length);
      }
    }
  }
};

/// Merges the chunks of one span, which follow each other, for all its queries.
void merge_context(const attention_args& args, const attention_shape& shape,
                   const attention_span& span, float* states) {
  auto queries = shape.heads * shape.group;
  auto* kept = kept_state(args, shape, span.first_row, 0, 0);
  for (uint32_t i = 0; i < queries; ++i, kept += shape.dim + 2) {
    auto* first = states + i * shape.state_stride;
    for (uint32_t c = 1; c < chunks_of(span.first_position); ++c)
      merge_state(first, first + size_t{c} * queries * shape.state_stride, shape.padded_dim);
    keep_state(shape, first, kept);
  }
}

/// State of a query without earlier positions.
void keep_empty(const attention_args& args, const attention_shape& shape, uint32_t row) {
  auto* kept = kept_state(args, shape, row, 0, 0);
  for (uint32_t i = 0; i < shape.heads * shape.group; ++i, kept += shape.dim + 2) {
    for (uint32_t j = 0; j < shape.dim; ++j) kept[j] = 0;
    kept[shape.dim] = no_score;
    kept[shape.dim + 1] = 0;
  }
}

/// Attends to the contexts of all spans of one row by attend(item, room), `room` of `floats`.
template <class F>
void attend_contexts(const attention_args& args, const attention_shape& shape,
                     kernel_context context, size_t floats, F&& attend) {
  arena::scope scope{context.scratch};
  const context_plan plan{args, shape, context};
  for_each_with_room(context, plan.count, floats,
                     [&](size_t i, float* own) { attend(plan.items[i], own); });
  for_pieces(context, plan.count, 4, [&](size_t first, size_t last) {
    for (auto i = first; i < last; ++i)
      if (const auto& item = plan.items[i]; item.first == 0)
        merge_context(args, shape, *item.span, item.states);
  });
  for (const auto& span : args.spans)
    if (span.rows == 1 && span.first_position == 0) keep_empty(args, shape, span.first_row);
}

inline void attend_previous(const attention_args& args, kernel_context context) {
  const attention_shape shape{args};
  const auto room =
      size_t{shape.heads} * shape.group * shape.padded_dim + widened_tile::floats(shape);
  with_shape(args.kv.type, shape.dim, [&]<half_type type, int vectors>() {
    attend_contexts(args, shape, context, room, [&](const context_item& item, float* own) {
      attend_context<type, vectors>(args, shape, item, own);
    });
  });
}

inline void append_kv(const attention_args& args, kernel_context context) {
  arena::scope scope{context.scratch};
  attention_shape shape{args};
  for_each_with_room(context, args.spans.size(), shape.dim, [&](size_t s, float* own) {
    const auto& span = args.spans[s];
    slot_cursor slots{args, span};
    slots.skip(span.first_position);
    auto wire_bytes = head_bytes_of(args.wire, shape.dim);
    for (uint32_t i = 0; i < span.rows; ++i) {
      std::byte* row;
      slots.take(1, &row);
      for (const auto* source : {args.k_new, args.v_new})
        for (uint32_t h = 0; h < shape.heads; ++h, row += shape.head_bytes)
          to_cache(args.wire, source + (size_t{h} * args.rows + span.first_row + i) * wire_bytes,
                   args.kv.type, row, shape.dim, own);
    }
  });
}

/// Merges the own position of one row and head, a part of its own with weight 1, and rounds to the
/// wire.
void finish_row(const attention_args& args, const attention_shape& shape, uint32_t row,
                uint32_t head, float* room) {
  auto wire_bytes = size_t{shape.dim} * bytes_of(args.wire);
  float* q = room;
  float* k = q + size_t{shape.group} * shape.padded_dim;
  float* v = k + shape.padded_dim;
  float* result = v + shape.padded_dim;
  load_queries(args, shape, head, row, 0, shape.group, q);
  auto at = (size_t{head} * args.rows + row) * wire_bytes;
  auto as_cached = [&](const std::byte* from, float* to) {
    widen(from, shape.dim, args.wire, to);
    if (args.wire != args.kv.type && args.kv.type != half_type::f32) {
      auto* rounded = reinterpret_cast<std::byte*>(result);
      narrow(to, shape.dim, args.kv.type, rounded);
      widen(rounded, shape.dim, args.kv.type, to);
    }
    for (auto j = shape.dim; j < shape.padded_dim; ++j) to[j] = 0;
  };
  as_cached(args.k_new + at, k);
  as_cached(args.v_new + at, v);
  for (uint32_t g = 0; g < shape.group; ++g) {
    vec sum = lanes::zero();
    for (uint32_t j = 0; j < shape.padded_dim; j += 16)
      sum = lanes::fma(lanes::load(k + j), lanes::load(q + g * shape.padded_dim + j), sum);
    float score = lanes::sum(sum);
    const float* kept = kept_state(args, shape, row, head, g);
    float earlier = kept[shape.dim];
    float highest = earlier > score ? earlier : score;
    float keep = exp_one(earlier - highest), own = exp_one(score - highest);
    auto inverse = lanes::set(1.0f / (kept[shape.dim + 1] * keep + own));
    for (uint32_t j = 0; j < shape.dim; j += 16) {
      auto n = shape.dim - j < 16 ? shape.dim - j : 16;
      auto total = lanes::fma(lanes::load(v + j), lanes::set(own),
                              lanes::mul(lanes::load_first(kept + j, n), lanes::set(keep)));
      lanes::store(result + j, lanes::mul(total, inverse));
    }
    if (args.kv.type == half_type::q4) q4_rotate(result, shape.dim, q4_block(shape.dim));
    narrow(result, shape.dim, args.wire, args.out + at * shape.group + g * wire_bytes);
  }
}

/// Attends to the earlier positions of all spans of several rows by attend(item, room), `room` of
/// `floats`, with at most `per_item` rows of each.
template <class F>
void attend_blocks(const attention_args& args, const attention_shape& shape, kernel_context context,
                   uint32_t per_item, size_t floats, F&& attend) {
  arena::scope scope{context.scratch};
  size_t count = 0;
  for (const auto& span : args.spans)
    if (span.rows > 1) count += size_t{shape.heads} * ((span.rows + per_item - 1) / per_item);
  auto* items = context.scratch.allocate<row_item>(count);
  auto* item = items + count; // later rows, which take longer, first
  for (const auto& span : args.spans)
    if (span.rows > 1)
      for (uint32_t row = 0; row < span.rows; row += per_item)
        for (uint32_t h = 0; h < shape.heads; ++h)
          *--item = {&span, row, span.rows - row < per_item ? span.rows - row : per_item, h};
  for_each_with_room(context, count, floats, [&](size_t i, float* own) { attend(items[i], own); });
}

/// The own positions of all rows.
void finish_rows(const attention_args& args, const attention_shape& shape, kernel_context context) {
  arena::scope scope{context.scratch};
  constexpr size_t rows_per_finish = 16;
  auto pieces = (size_t{args.rows} * shape.heads + rows_per_finish - 1) / rows_per_finish;
  auto finish_room = size_t{shape.group + 3} * shape.padded_dim;
  for_each_with_room(context, pieces, finish_room, [&](size_t piece, float* own) {
    auto end = (piece + 1) * rows_per_finish;
    for (auto i = piece * rows_per_finish; i < end && i < size_t{args.rows} * shape.heads; ++i)
      finish_row(args, shape, static_cast<uint32_t>(i / shape.heads),
                 static_cast<uint32_t>(i % shape.heads), own);
  });
}

inline void attend_new(const attention_args& args, kernel_context context) {
  const attention_shape shape{args};
  const auto per_item = rows_of_item(args, shape, context.workers.size());
  with_shape(half_type::f32, shape.dim, [&]<half_type, int vectors>() {
    attend_blocks(
        args, shape, context, per_item, rows_room::floats(shape, per_item),
        [&](const row_item& item, float* own) { attend_rows<vectors>(args, shape, item, own); });
  });
  finish_rows(args, shape, context);
}

} // namespace
} // namespace lamella::gpu
