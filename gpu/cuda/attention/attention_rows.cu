// attend_new, first half: rows of spans of several rows over their earlier positions.
//
// A block of threads takes some rows of a span and one head; its warps share tiles of K and V and
// divide the columns. Each column folds its units into its record as it goes, with the arithmetic
// that a row of its own goes through in attention_previous.cu and attention_finish.cu.
#include "gpu/cuda/attention/attention_launch.cuh"
#include "gpu/cuda/attention/attention_q8.cuh"

namespace lamella::gpu::cuda {

namespace {

constexpr int column_tiles = 2; ///< per warp
constexpr int warps = attention_columns / (column_tiles * 8);
constexpr int stages = 3; ///< tiles of K and V in flight

struct rows_args {
  plan_view plan;
  const std::byte* cache;
  const std::byte* q;
  record_view records;
  uint32_t heads, group, rows;
  float scale;
};

/// Loads of tiles of K and V, one after the other, by all threads together. The slots of a tile are
/// looked up while the one before is loaded.
template <int D> class shared_tiles {
public:
  using layout = tile_layout<D>;
  static constexpr uint32_t rows = warps * 32 / layout::pieces; ///< that one instruction loads
  static constexpr uint32_t passes = tile / rows;
  static_assert(tile % rows == 0 && rows % 8 == 0);

  __device__ shared_tiles(const rows_args& args, const uint32_t* table, uint32_t head,
                          uint32_t positions)
      : from_{args.cache + head * layout::row_bytes + threadIdx.x % layout::pieces * 16},
        v_offset_{args.heads * layout::row_bytes}, table_{table}, positions_{positions} {
    look_up();
  }

  /// Asks for the next tile, K and then V at `to`; nothing past the last one.
  __device__ void load(uint32_t to) {
    const uint32_t row = threadIdx.x / layout::pieces;
    to += layout::offset(row, threadIdx.x % layout::pieces);
    if (first_ < positions_) {
#pragma unroll
      for (uint32_t k = 0; k < passes; ++k) {
        const bool there = first_ + row + k * rows < positions_;
        const auto* from = from_ + uint64_t{slots_[k]} * (v_offset_ * 2);
        const uint32_t at = to + k * rows * layout::row_bytes;
        copy_async<load_hint::fetch_128>(at, from, there);
        copy_async<load_hint::fetch_128>(at + layout::bytes, from + v_offset_, there);
      }
      first_ += tile;
      look_up();
    }
    commit_copies();
  }

private:
  __device__ void look_up() {
#pragma unroll
    for (uint32_t k = 0; k < passes; ++k) {
      const uint32_t position = first_ + threadIdx.x / layout::pieces + k * rows;
      slots_[k] = position < positions_ ? table_[position] : 0;
    }
  }

  const std::byte* from_;
  uint32_t v_offset_;
  const uint32_t* table_;
  uint32_t positions_, first_ = 0;
  uint32_t slots_[passes];
};

/// The same of a cache of q8, whose rows have one piece more: threads take pieces in order, K and
/// then V.
template <int D> class shared_q8_tiles {
public:
  using layout = q8_layout<D>;
  static constexpr uint32_t row_pieces = layout::pieces + 1, all = 2 * tile * row_pieces;
  static constexpr uint32_t passes = (all + warps * 32 - 1) / (warps * 32);

  __device__ shared_q8_tiles(const rows_args& args, const uint32_t* table, uint32_t head,
                             uint32_t positions)
      : from_{args.cache + head * layout::row_bytes}, v_offset_{args.heads * layout::row_bytes},
        table_{table}, positions_{positions} {
    look_up();
  }

  __device__ void load(uint32_t to) {
    if (first_ < positions_) {
#pragma unroll
      for (uint32_t k = 0; k < passes; ++k) {
        const uint32_t i = piece_of(k), row = row_of(i), value = i / (tile * row_pieces);
        if (i >= all) continue;
        copy_async<load_hint::fetch_128>(to + i * 16,
                                         from_ + uint64_t{slots_[k]} * (v_offset_ * 2)
                                             + value * v_offset_ + i % row_pieces * 16,
                                         first_ + row < positions_);
      }
      first_ += tile;
      look_up();
    }
    commit_copies();
  }

private:
  __device__ static uint32_t piece_of(uint32_t k) { return threadIdx.x + k * (warps * 32); }
  __device__ static uint32_t row_of(uint32_t i) { return i / row_pieces % tile; }
  __device__ void look_up() {
#pragma unroll
    for (uint32_t k = 0; k < passes; ++k) {
      const uint32_t position = first_ + row_of(piece_of(k));
      slots_[k] = position < positions_ ? table_[position] : 0;
    }
  }

  const std::byte* from_;
  uint32_t v_offset_;
  const uint32_t* table_;
  uint32_t positions_, first_ = 0;
  uint32_t slots_[passes];
};

/// Shared memory of a block: the stages, and behind them room for the tiles of q8 it works on.
template <class math, int D> constexpr uint32_t block_bytes() {
  constexpr uint32_t room = math::quantised ? tile_layout<D>::bytes : 0;
  return 2 * (stages * stored_layout<math, D>::bytes + room);
}

/// The records of a warp's columns while their units are folded.
template <int D, int N> struct folded {
  float maximum[N][2], weight[N][2];
  uint32_t limit[N][2]; ///< positions that a column sees
  float* sums[N][2];    ///< null for a column of nobody

  /// Folds what the columns saw of one unit. A column that ended before it is left alone.
  template <class math> __device__ void add(const columns<math, D, N>& c, uint32_t unit_first) {
#pragma unroll
    for (int n = 0; n < N; ++n)
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        if (sums[n][j] == nullptr || (unit_first != 0 && limit[n][j] <= unit_first)) continue;
        const bool starts = unit_first == 0;
        const fold merge{maximum[n][j], c.maximum[n][j]};
#pragma unroll
        for (int i = 0; i < D / 16; ++i)
#pragma unroll
          for (int half = 0; half < 2; ++half) {
            auto& sum = sums[n][j][i * 16 + half * 8];
            const float later = c.sum[n][i][half * 2 + j];
            sum = starts ? later : merge(sum, later);
          }
        weight[n][j] = starts ? c.weight[n][j] : merge(weight[n][j], c.weight[n][j]);
        maximum[n][j] = starts ? c.maximum[n][j] : merge.maximum;
      }
  }
};

template <class math, int D>
__device__ void attend_block(const rows_args& args, const attention_work_block& block,
                             uint32_t head, uint32_t shared) {
  constexpr int N = column_tiles;
  constexpr uint32_t stage_bytes = stored_layout<math, D>::bytes * 2;
  const uint32_t lane = threadIdx.x % 32, first_column = threadIdx.x / 32 * (N * 8);
  const uint32_t used = block.rows * args.group;
  const uint32_t positions = block.position + block.rows - 1; // none sees the last row's own
  const uint32_t lowest = block.position + first_column / args.group;
  const uint32_t highest =
      first_column < used ? block.position + (min(first_column + N * 8, used) - 1) / args.group : 0;

  std::conditional_t<math::quantised, shared_q8_tiles<D>, shared_tiles<D>> tiles{
      args, args.plan.slots + block.first, head, positions};
  for (uint32_t t = 0; t < stages - 1; ++t) tiles.load(shared + t * stage_bytes);

  columns<math, D, N> c;
  folded<D, N> total;
  const auto& records = args.records;
  const auto record = args.plan.rows[block.row].record;
#pragma unroll
  for (int n = 0; n < N; ++n)
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      const uint32_t column = first_column + n * 8 + lane % 4 * 2 + j, row = column / args.group;
      const bool there = column < used;
      total.limit[n][j] = there ? block.position + row : 0;
      total.maximum[n][j] = -infinity(), total.weight[n][j] = 0;
      total.sums[n][j] =
          there
              ? records.sums + records.index(record + row, head, column % args.group) * D + lane / 4
              : nullptr;
    }
  const auto query = (size_t{head} * args.rows + block.row) * args.group + first_column;
  c.load_queries(reinterpret_cast<const typename math::element*>(args.q) + query * D,
                 static_cast<int>(used) - static_cast<int>(first_column));
  c.clear();

  const uint32_t unit = args.plan.header->unit_positions;
  uint32_t unit_first = 0;
  for (uint32_t t = 0, at = 0; t * tile < positions; ++t, at = at + 1 == stages ? 0 : at + 1) {
    if (t * tile == unit_first + unit) {
      c.close();
      total.add(c, unit_first);
      c.clear();
      unit_first += unit;
    }
    await_copies<stages - 2>();
    __syncthreads();
    const uint32_t free = at == 0 ? stages - 1 : at - 1;
    tiles.load(shared + free * stage_bytes);
    const auto k_tile = widened_by_block<math, D, warps * 32>(shared + at * stage_bytes,
                                                              shared + stages * stage_bytes);
    if (t * tile >= highest) continue;
    typename columns<math, D, N>::score_tile s;
    uint32_t p[N][2][2];
    c.score(k_tile, s);
    if ((t + 1) * tile > lowest) c.hide(s, total.limit, t * tile);
    c.weigh(s, args.scale, p);
    c.add_values(k_tile + tile_layout<D>::bytes, p);
  }
  await_copies<0>();
  c.close();
  total.add(c, unit_first);

#pragma unroll
  for (int n = 0; n < N; ++n)
#pragma unroll
    for (int j = 0; j < 2; ++j)
      if (lane / 4 == 0 && total.sums[n][j] != nullptr)
        records.ends[(total.sums[n][j] - records.sums) / D] = {total.maximum[n][j],
                                                               total.weight[n][j]};
}

template <class math, int D>
__global__ void __launch_bounds__(warps * 32, 1)
    rows_kernel(const __grid_constant__ rows_args args) {
  begin_kernel();
  __shared__ uint32_t taken;
  const auto shared = shared_memory();
  auto* header = args.plan.header;
  const uint32_t items = header->blocks * args.heads;
  while (true) {
    if (threadIdx.x == 0) taken = atomicAdd(&header->next_block, 1);
    __syncthreads();
    const uint32_t item = taken;
    if (item >= items) break;
    attend_block<math, D>(args, args.plan.blocks[item / args.heads], item % args.heads, shared);
    __syncthreads();
  }
  // The last block to find nothing leaves the counters as the next layer wants them.
  if (threadIdx.x == 0 && atomicAdd(&header->idle_blocks, 1) + 1 == gridDim.x) {
    header->next_block = 0;
    header->idle_blocks = 0;
  }
}

} // namespace

cudaError_t launch_attend_rows(const attention_device_args& args, cudaStream_t stream) {
  if (args.capacity.blocks == 0) return cudaSuccess;
  rows_args device{plan_view{args.capacity, args.plan},
                   args.cache,
                   args.q,
                   record_view{args},
                   args.kv_heads,
                   args.group,
                   args.capacity.rows,
                   args.scale * log2_e};
  const auto items = uint64_t{args.capacity.blocks} * args.kv_heads;
  return with_math(args.type, args.wire, [&](auto math) {
    return with_shape(args.dim, args.group, [&](auto dim, auto) {
      return launch_resident(rows_kernel<decltype(math), dim()>, warps * 32,
                             block_bytes<decltype(math), dim()>(), items, stream, device);
    });
  });
}

} // namespace lamella::gpu::cuda
