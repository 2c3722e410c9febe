/// What the tests of attention share: sequences cut into pieces, and the steps of a set over them.
#pragma once

#include "tests/gpu/kernels/kernel_support.hpp"

#include <algorithm>
#include <numeric>

namespace lamella::gpu::test {

struct shape {
  uint32_t heads, group, dim;
  half_type wire = half_type::f16, cache = half_type::f16;
};

/// Q, K and V of every position of one sequence, fp32.
struct sequence {
  sequence(const shape& s, uint32_t length, randomness& random)
      : q{random.normals(size_t{length} * s.heads * s.group * s.dim)},
        k{random.normals(size_t{length} * s.heads * s.dim)}, v{random.normals(size_t{length}
                                                                              * s.heads * s.dim)} {}
  std::vector<float> q, k, v; ///< [position][head][group][dim]
};

/// Rows [first, first + rows) of a sequence in one call.
struct piece {
  const sequence* of;
  uint32_t first, rows;
  std::vector<slot_run> runs; ///< of positions [0, first + rows)
};

/// `length` slots of a pool, cut into runs: lengths drawn from [1, longest], places at random. The
/// pool must have room for several times as many.
inline std::vector<slot_run> scattered(uint32_t length, uint32_t longest, std::vector<bool>& used,
                                       randomness& random) {
  std::vector<slot_run> runs;
  auto slots = static_cast<uint32_t>(used.size());
  while (length != 0) {
    auto n = std::min(length, longest == 1 ? 1 : 1 + random.below(longest));
    auto first = random.below(slots - n + 1);
    while (std::any_of(used.begin() + first, used.begin() + first + n, [](bool u) { return u; }))
      first = (first + 1) % (slots - n + 1);
    std::fill_n(used.begin() + first, n, true);
    runs.push_back({first, n});
    length -= n;
  }
  return runs;
}

inline std::vector<std::byte> to_wire(const operators& set, machine& on,
                                      const std::vector<float>& x,
                                      const std::vector<uint32_t>& rows, uint32_t heads,
                                      uint32_t width, half_type wire) {
  std::vector<std::byte> out(rows.size() * heads * width * bytes_of(wire), std::byte{0xff});
  set.to_wire({x.data(), heads * width, rows, 0, heads, width, wire, out.data()}, on.context());
  return out;
}

struct result {
  std::vector<std::vector<std::byte>> outputs; ///< of each piece, [head][row][group][dim] of wire
  std::vector<std::byte> cache;
};

/// Fills a poisoned cache with the pieces' earlier positions and runs the three steps.
inline result attend(const operators& set, machine& on, const shape& s,
                     const std::vector<piece>& pieces, uint32_t slots) {
  kv_layer kv{nullptr, s.cache, s.heads, s.dim};
  result r;
  r.cache.assign(slots * kv.row_bytes(), std::byte{0xff}); // NaN in all types
  kv.rows = r.cache.data();
  auto out_row = size_t{s.group} * s.dim * bytes_of(s.wire);

  auto call = [&](const std::vector<piece>& batch, bool append_only) {
    std::vector<attention_span> spans;
    std::vector<slot_run> runs;
    std::vector<float> q, k, v;
    uint32_t rows = 0;
    auto take = [](std::vector<float>& to, const std::vector<float>& from, size_t width,
                   const piece& p) {
      to.insert(to.end(), from.begin() + p.first * width,
                from.begin() + (p.first + p.rows) * width);
    };
    for (const auto& p : batch) {
      spans.push_back({rows, p.rows, p.first, static_cast<uint32_t>(runs.size()),
                       static_cast<uint32_t>(p.runs.size())});
      runs.insert(runs.end(), p.runs.begin(), p.runs.end());
      rows += p.rows;
      take(q, p.of->q, size_t{s.heads} * s.group * s.dim, p);
      take(k, p.of->k, size_t{s.heads} * s.dim, p);
      take(v, p.of->v, size_t{s.heads} * s.dim, p);
    }
    std::vector<uint32_t> index(rows);
    std::iota(index.begin(), index.end(), 0u);
    auto qw = to_wire(set, on, q, index, s.heads, s.group * s.dim, s.wire);
    auto kw = to_wire(set, on, k, index, s.heads, s.dim, s.wire);
    auto vw = to_wire(set, on, v, index, s.heads, s.dim, s.wire);
    std::vector<std::byte> out(qw.size(), std::byte{0xff});
    auto state = poisoned(size_t{rows} * s.heads * s.group * (s.dim + 2));
    attention_args args{
        kv,     rows,      s.group,      1.0f / std::sqrt(static_cast<float>(s.dim)),
        s.wire, qw.data(), nullptr,      nullptr,
        spans,  runs,      state.data(), out.data()};
    if (!append_only) set.attend_previous(args, on.context());
    args.k_new = kw.data();
    args.v_new = vw.data();
    set.append_kv(args, on.context());
    if (append_only) return;
    set.attend_new(args, on.context());
    for (const auto& span : spans) {
      std::vector<std::byte> mine;
      for (uint32_t h = 0; h < s.heads; ++h) {
        auto begin =
            out.begin() + static_cast<std::ptrdiff_t>((h * rows + span.first_row) * out_row);
        mine.insert(mine.end(), begin, begin + static_cast<std::ptrdiff_t>(span.rows * out_row));
      }
      r.outputs.push_back(std::move(mine));
    }
  };
  std::vector<piece> history;
  for (const auto& p : pieces)
    if (p.first != 0) history.push_back({p.of, 0, p.first, p.runs});
  if (!history.empty()) call(history, true);
  call(pieces, false);
  return r;
}

inline std::vector<float> as_floats(const std::vector<std::byte>& bytes, half_type type) {
  std::vector<float> out(bytes.size() / bytes_of(type));
  team one{1};
  arena scratch;
  std::vector<uint32_t> row{0};
  auto width = static_cast<uint32_t>(out.size());
  reference_operators().from_wire({bytes.data(), row, 0, 1, width, type, out.data(), width},
                                  {one, scratch});
  return out;
}

/// Bytes of row `row` of a piece with `rows` rows, all heads.
inline std::vector<std::byte> row_of(const shape& s, const std::vector<std::byte>& out,
                                     uint32_t rows, uint32_t row) {
  auto bytes = size_t{s.group} * s.dim * bytes_of(s.wire);
  std::vector<std::byte> result;
  for (uint32_t h = 0; h < s.heads; ++h) {
    auto begin = out.begin() + static_cast<std::ptrdiff_t>((size_t{h} * rows + row) * bytes);
    result.insert(result.end(), begin, begin + static_cast<std::ptrdiff_t>(bytes));
  }
  return result;
}

inline const shape shapes[] = {
    {3, 3, 64},
    {1, 1, 64},
    {2, 8, 128},
    {1, 4, 128, half_type::f32, half_type::f32},
    {2, 2, 80, half_type::f16, half_type::f32},
    {1, 5, 40, half_type::f32, half_type::f16},
    {3, 1, 7},
    {1, 7, 96, half_type::f32, half_type::f32},
    {2, 4, 64, half_type::bf16, half_type::bf16},
    {1, 3, 40, half_type::f32, half_type::bf16},
    {1, 2, 128, half_type::bf16, half_type::f32},
    {3, 3, 64, half_type::f16, half_type::q8},
    {1, 5, 128, half_type::f32, half_type::q8},
    {2, 2, 40, half_type::bf16, half_type::q8},
    {1, 1, 7, half_type::f16, half_type::q8},
    {3, 3, 64, half_type::f16, half_type::q4},
    {1, 5, 128, half_type::f32, half_type::q4},
    {2, 2, 40, half_type::bf16, half_type::q4},
    {1, 2, 48, half_type::f16, half_type::q4},
    {1, 1, 7, half_type::f16, half_type::q4},
    {3, 3, 64, half_type::f32, half_type::bf16},
    {1, 5, 128, half_type::bf16, half_type::bf16},
    {2, 8, 48, half_type::f32, half_type::bf16},
};
constexpr size_t first_q8 = 11, first_q4 = 15, first_tiled = 20; ///< of the shapes

/// Whether a set attends on tiles: only to a cache of bf16.
inline bool on_tiles(const operators& set, const shape& s) {
  return (set.name.starts_with("amx") || set.name.ends_with("-twin")) && s.cache == half_type::bf16;
}

} // namespace lamella::gpu::test
