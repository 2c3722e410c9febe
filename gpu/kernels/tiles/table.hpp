/// The table of a set with tiles. Included after `lanes` and `tile_unit`.
#pragma once

#include "gpu/kernels/sets.hpp"
#include "gpu/kernels/tiles/context.hpp"
#include "gpu/kernels/tiles/matmul.hpp"
#include "gpu/kernels/tiles/rows.hpp"

namespace lamella::gpu {
namespace {

/// Calls f with a type of the cache, its dim / 16 (0: any), and whether its elements fill vectors.
template <class F> void with_rows_of(const attention_args& args, F&& f) {
  with_shape(args.kv.type, args.kv.dim, [&]<half_type type, int vectors>() {
    // A cache of fp32 is not for tiles.
    if constexpr (type != half_type::f32) {
      if (vectors != 0 || args.kv.dim % 16 == 0)
        f.template operator()<type, vectors, true>();
      else if constexpr (vectors == 0)
        f.template operator()<type, 0, false>();
    }
  });
}

/// `without_tiles`: the set with the same lanes. A cache of fp32 keeps its precision there.
template <const operators* (*without_tiles)()>
void attend_previous_on_tiles(const attention_args& args, kernel_context context) {
  if (args.kv.type == half_type::f32) return without_tiles()->attend_previous(args, context);
  const attention_shape shape{args};
  with_rows_of(args, [&]<half_type type, int vectors, bool exact>() {
    using work = context_on_tiles<type, vectors, exact>;
    attend_contexts(args, shape, context, work::floats(args, shape),
                    [&](const context_item& item, float* room) {
                      work{args, shape, room}.attend(item);
                    });
  });
}

template <const operators* (*without_tiles)()>
void attend_new_on_tiles(const attention_args& args, kernel_context context) {
  if (args.kv.type == half_type::f32) return without_tiles()->attend_new(args, context);
  const attention_shape shape{args};
  const auto rows = rows_of_item(args, shape, context.workers.size());
  with_rows_of(args, [&]<half_type type, int vectors, bool exact>() {
    using work = rows_on_tiles<type, vectors, exact>;
    attend_blocks(args, shape, context, rows, work::floats(shape, rows),
                  [&](const row_item& item, float* room) {
                    work{shape, rows, room}.attend(args, item);
                  });
  });
  finish_rows(args, shape, context);
}

/// The set without tiles, but for its products and attention.
template <const operators* (*without_tiles)()>
const operators* operators_with_tiles(std::string_view name) {
  static const operators table = [&] {
    auto set = *without_tiles();
    set.name = name;
    set.matmul = tile_matmul<without_tiles>;
    set.attend_previous = attend_previous_on_tiles<without_tiles>;
    set.attend_new = attend_new_on_tiles<without_tiles>;
    return set;
  }();
  return &table;
}

} // namespace
} // namespace lamella::gpu
