/// The table of a set with tiles. Included after `lanes` and `tile_unit`.
#pragma once

#include "gpu/kernels/sets.hpp"
#include "gpu/kernels/tiles/context.hpp"
#include "gpu/kernels/tiles/matmul.hpp"
#include "gpu/kernels/tiles/rows.hpp"

namespace lamella::gpu {
namespace {

/// Calls f with dim / 16 of the cache (0: any), and whether its elements fill vectors.
template <class F> void with_rows_of(const attention_args& args, F&& f) {
  if (args.kv.dim == 64)
    f.template operator()<4, true>();
  else if (args.kv.dim == 128)
    f.template operator()<8, true>();
  else if (args.kv.dim % 16 == 0)
    f.template operator()<0, true>();
  else
    f.template operator()<0, false>();
}

/// Tiles multiply bf16, so a cache of bf16 is what they attend to. Others are for `without_tiles`,
/// the set with the same lanes: split into high and low parts a decoded row takes longer to pack
/// than to attend.
template <const operators* (*without_tiles)()>
void attend_previous_on_tiles(const attention_args& args, kernel_context context) {
  if (args.kv.type != half_type::bf16) return without_tiles()->attend_previous(args, context);
  const attention_shape shape{args};
  with_rows_of(args, [&]<int vectors, bool exact>() {
    using work = context_on_tiles<vectors, exact>;
    attend_contexts(args, shape, context, work::floats(args, shape),
                    [&](const context_item& item, float* room) {
                      work{args, shape, room}.attend(item);
                    });
  });
}

template <const operators* (*without_tiles)()>
void attend_new_on_tiles(const attention_args& args, kernel_context context) {
  if (args.kv.type != half_type::bf16) return without_tiles()->attend_new(args, context);
  const attention_shape shape{args};
  const auto rows = rows_of_item(args, shape, context.workers.size());
  with_rows_of(args, [&]<int vectors, bool exact>() {
    using work = rows_on_tiles<vectors, exact>;
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
