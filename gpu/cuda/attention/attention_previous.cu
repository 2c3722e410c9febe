// attend_previous: rows of spans of one row over their earlier positions.
//
// Every warp works alone: it takes a unit of one head from a counter, keeps a ring of slots of K
// and V tiles filled with cp.async, and writes one record. Nothing in it waits for another warp, so
// the loads of the warps of a multiprocessor overlap, and the heads of a unit, which are neighbours
// in memory, are read by neighbours in the counter.
#include "gpu/cuda/attention/attention_launch.cuh"
#include "gpu/cuda/attention/attention_q8.cuh"

namespace lamella::gpu::cuda {

namespace {

struct previous_args {
  plan_view plan;
  const std::byte* cache;
  const std::byte* q;
  record_view records;
  uint32_t heads, group, rows;
  float scale;
};

/// How many warps of each block should work: units are mostly of one length, so a last round with
/// few of them leaves memory idle. Fewer warps, down to half, are taken where that saves a
/// sixteenth.
__device__ inline uint32_t useful_warps(uint32_t items, uint32_t blocks, uint32_t warps) {
  uint32_t best = warps, best_room = UINT32_MAX;
  for (uint32_t w = warps; w > warps / 2; --w) {
    const uint32_t round = w * blocks, room = (items + round - 1) / round * round;
    if (room < best_room - best_room / 16) best = w, best_room = room;
  }
  return best;
}

/// The tiles of one warp, unit after unit: K and V in turn through a ring of slots. Loads run
/// slots / 2 tiles ahead of their use, into the next unit too, so that memory does not rest between
/// units.
template <class layout, int slots, load_hint hint> class tile_stream {
public:
  static constexpr int ahead = slots / 2; ///< tiles

  __device__ tile_stream(const previous_args& args, uint32_t shared)
      : args_{args}, shared_{shared}, items_{args.plan.header->units * args.heads},
        warps_{useful_warps(items_, gridDim.x, blockDim.x / 32) * gridDim.x},
        row_bytes_{args.heads * layout::row_bytes * 2} {
    // The first items are dealt out evenly, the others go to whoever is ready.
    const uint32_t warp = threadIdx.x / 32 * gridDim.x + blockIdx.x;
    open(warp < warps_ ? warp : items_);
#pragma unroll
    for (int i = 0; i < ahead; ++i) {
      pending_[i] = {item_, t_};
      load(0);
      load(v_offset());
      step();
    }
  }

  /// A tile: of which item (unit * H + head), and which of its tiles.
  struct place {
    uint32_t item, t;
  };
  __device__ bool more() const { return pending_[0].item < items_; }
  /// The tile that next() gives: K, then V.
  __device__ place now() const { return pending_[0]; }

  /// Waits for the oldest slot and says where it is. The warp may read it until refill.
  __device__ uint32_t next() {
    await_copies<slots - 1>();
    __syncwarp();
    return shared_ + at_ * layout::bytes;
  }
  /// Gives the slot of K back and asks for that of a later tile.
  __device__ void refill_k() {
    __syncwarp();
    load(0);
  }
  /// The same for V; now() is then the next tile.
  __device__ void refill_v() {
    __syncwarp();
    load(v_offset());
#pragma unroll
    for (int i = 0; i + 1 < ahead; ++i) pending_[i] = pending_[i + 1];
    pending_[ahead - 1] = {item_, t_};
    step();
  }

  /// Once, at the end: the last warp leaves the counters as the next layer wants them.
  __device__ void close() const {
    await_copies<0>();
    if (one_round()) return;
    auto* header = args_.plan.header;
    const uint32_t all = gridDim.x * (blockDim.x / 32);
    if (threadIdx.x % 32 == 0 && atomicAdd(&header->idle_units, 1) + 1 == all) {
      header->next_unit = 0;
      header->idle_units = 0;
    }
  }

private:
  static constexpr uint32_t rows = 32 / layout::pieces; ///< that one instruction loads

  /// Every item was dealt out at the start: the counters are not needed.
  __device__ bool one_round() const { return items_ <= warps_; }
  __device__ uint32_t v_offset() const { return args_.heads * layout::row_bytes; }
  /// The slot of one position of tile t. The lanes that load a row find it in a lane of theirs:
  /// lane l loads piece l % pieces of rows l / pieces, l / pieces + rows, ….
  __device__ uint32_t slot_of(uint32_t t) const {
    const uint32_t lane = threadIdx.x % 32;
    const uint32_t position = t * tile + lane % layout::pieces * rows + lane / layout::pieces;
    return position < length_ ? table_[position] : 0;
  }

  /// Turns to the first tile of an item; a unit without positions has one empty tile.
  __device__ void open(uint32_t item) {
    item_ = item;
    t_ = 0;
    if (item >= items_) return;
    const auto unit = args_.plan.units[item / args_.heads];
    const uint32_t head = item % args_.heads;
    from_ = args_.cache + head * layout::row_bytes + threadIdx.x % layout::pieces * 16;
    table_ = args_.plan.slots + unit.first;
    length_ = unit.length;
    slot_ = slot_of(0);
    following_ = slot_of(1);
  }
  /// Turns to the next tile to load.
  __device__ void step() {
    if (item_ >= items_) return;
    ++t_;
    slot_ = following_;
    if (t_ * tile < length_) {
      following_ = slot_of(t_ + 1);
      return;
    }
    if (one_round()) return open(items_);
    uint32_t item = 0;
    if (threadIdx.x % 32 == 0) item = warps_ + atomicAdd(&args_.plan.header->next_unit, 1);
    open(__shfl_sync(whole_warp, item, 0));
  }

  /// Asks for a tile of K (offset 0) or V.
  __device__ void load(uint32_t offset) {
    if (item_ < items_) {
      if ((t_ + 1) * tile <= length_)
        load_rows<true>(offset);
      else
        load_rows<false>(offset);
    }
    commit_copies();
    at_ = at_ + 1 == slots ? 0 : at_ + 1;
  }
  template <bool full> __device__ void load_rows(uint32_t offset) {
    const uint32_t lane = threadIdx.x % 32, first = lane / layout::pieces;
    const uint32_t to =
        shared_ + at_ * layout::bytes + layout::offset(first, lane % layout::pieces);
    const auto* from = from_ + offset;
#pragma unroll
    for (uint32_t i = 0; i < tile; i += rows) {
      const uint32_t slot = __shfl_sync(whole_warp, slot_, i / rows, layout::pieces);
      copy_async<hint>(layout::later(to, i), from + uint64_t{slot} * row_bytes_,
                       full || t_ * tile + i + first < length_);
    }
    if constexpr (requires { layout::scale_piece; }) {
      // Of the row whose slot this lane found.
      const uint32_t row = lane % layout::pieces * rows + first;
      copy_async<hint>(shared_ + at_ * layout::bytes + layout::offset(row, layout::scale_piece),
                       from + (layout::scale_piece - lane % layout::pieces) * 16
                           + uint64_t{slot_} * row_bytes_,
                       full || t_ * tile + row < length_);
    }
  }

  const previous_args& args_;
  uint32_t shared_, items_;
  uint32_t warps_; ///< that work
  uint32_t row_bytes_;
  place pending_[ahead]; ///< tiles that are in the ring, oldest first
  uint32_t at_ = 0;      ///< slot that is loaded next, and read next: the ring is full in between
  uint32_t item_, t_;    ///< tile to load next
  const std::byte* from_ = nullptr;
  const uint32_t* table_ = nullptr;
  uint32_t length_ = 0, slot_ = 0, following_ = 0;
};

template <class math, int D, int N>
__device__ void store(const previous_args& args, const columns<math, D, N>& c, uint32_t record,
                      uint32_t head) {
  const uint32_t lane = threadIdx.x % 32;
  const auto& records = args.records;
#pragma unroll
  for (int n = 0; n < N; ++n)
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      const uint32_t g = n * 8 + lane % 4 * 2 + j;
      if (g >= args.group) continue;
      const auto index = records.index(record, head, g);
#pragma unroll
      for (int i = 0; i < D / 16; ++i)
#pragma unroll
        for (int half = 0; half < 2; ++half)
          records.sums[index * D + i * 16 + lane / 4 + half * 8] = c.sum[n][i][half * 2 + j];
      if (lane / 4 == 0) records.ends[index] = {c.maximum[n][j], c.weight[n][j]};
    }
}

/// Warps of a block: as many as rings of this many slots find room for.
constexpr int most_warps = 8;

/// Shared memory of a warp: its ring, and behind it room for the tile of q8 that it works on.
template <class math, int D, int slots> constexpr uint32_t warp_bytes() {
  constexpr uint32_t room = math::quantised ? tile_layout<D>::bytes : 0;
  return slots * stored_layout<math, D>::bytes + room;
}

template <class math, int D, int N, int slots, load_hint hint>
__global__ void __launch_bounds__(most_warps * 32, 1)
    previous_kernel(const __grid_constant__ previous_args args) {
  begin_kernel();
  using stored = stored_layout<math, D>;
  const auto shared = shared_memory() + threadIdx.x / 32 * warp_bytes<math, D, slots>();
  const auto room = shared + slots * stored::bytes;
  columns<math, D, N> c;
  attention_work_unit unit{};
  for (tile_stream<stored, slots, hint> tiles{args, shared};; tiles.refill_v()) {
    if (!tiles.more()) return tiles.close();
    const auto [item, t] = tiles.now();
    const uint32_t head = item % args.heads;
    if (t == 0) {
      unit = args.plan.units[item / args.heads];
      const auto query = (size_t{head} * args.rows + unit.row) * args.group;
      c.load_queries(reinterpret_cast<const typename math::element*>(args.q) + query * D,
                     args.group);
      c.clear();
    }
    typename columns<math, D, N>::score_tile s;
    uint32_t p[N][2][2], limit[N][2];
    c.score(widened_by_warp<math, D>(tiles.next(), room), s);
    tiles.refill_k();
#pragma unroll
    for (int n = 0; n < N; ++n) limit[n][0] = limit[n][1] = unit.length;
    if ((t + 1) * tile > unit.length) c.hide(s, limit, t * tile);
    c.weigh(s, args.scale, p);
    c.add_values(widened_by_warp<math, D>(tiles.next(), room), p);
    if ((t + 1) * tile >= unit.length) {
      c.close();
      store(args, c, unit.record, head);
    }
  }
}

template <class math, int D, int N, int slots, load_hint hint>
cudaError_t launch(const previous_args& args, uint64_t items, cudaStream_t stream, int warps,
                   int spare) {
  constexpr int per_warp = warp_bytes<math, D, slots>();
  int most = 0;
  if (auto error = device_limit(cudaDevAttrMaxSharedMemoryPerBlockOptin, most);
      error != cudaSuccess)
    return error;
  warps = std::min({warps, most / per_warp, most_warps});
  if (warps == 0) return cudaErrorInvalidConfiguration;
  // Few items are spread over all multiprocessors.
  int processors = 0;
  if (auto error = device_limit(cudaDevAttrMultiProcessorCount, processors); error != cudaSuccess)
    return error;
  const auto all = static_cast<uint64_t>(processors);
  const bool one_round = items <= all * warps;
  if (one_round) warps = static_cast<int>((items + all - 1) / all);
  const auto blocks = one_round ? all : all - std::min<uint64_t>(spare, all / 2);
  return launch_resident(previous_kernel<math, D, N, slots, hint>, warps * 32,
                         size_t(warps) * per_warp, blocks, stream, args);
}

/// `slots`: of 128 elements. Half as long rows, twice as many slots: as many bytes in flight.
template <class math, int slots, load_hint hint>
cudaError_t launch(const attention_device_args& args, const previous_args& device,
                   cudaStream_t stream, const attention_tuning& tuning) {
  return with_shape(args.dim, args.group, [&](auto dim, auto tiles) {
    return launch<math, dim(), tiles(), slots * 128 / dim(), hint>(
        device, uint64_t{args.capacity.units} * args.kv_heads, stream, tuning.warps, tuning.spare);
  });
}

} // namespace

cudaError_t launch_attend_previous(const attention_device_args& args, cudaStream_t stream,
                                   const attention_tuning& tuning) {
  if (args.capacity.units == 0) return cudaSuccess;
  previous_args device{plan_view{args.capacity, args.plan},
                       args.cache,
                       args.q,
                       record_view{args},
                       args.kv_heads,
                       args.group,
                       args.capacity.rows,
                       args.scale * log2_e};
  const bool once = tuning.hint == load_hint::read_once;
  if (tuning.slots == 4 && !once)
    return with_math(args.type, args.wire, [&](auto math) {
      return launch<decltype(math), 4, load_hint::fetch_128>(args, device, stream, tuning);
    });
  if (args.type != half_type::f16) return cudaErrorInvalidValue;
  if (tuning.slots == 4)
    return launch<f16_math, 4, load_hint::read_once>(args, device, stream, tuning);
  if (tuning.slots == 6 && !once)
    return launch<f16_math, 6, load_hint::fetch_128>(args, device, stream, tuning);
  return cudaErrorInvalidValue;
}

cudaError_t launch_attend_previous(const attention_device_args& args, cudaStream_t stream) {
  return launch_attend_previous(args, stream, attention_tunings[0]);
}

} // namespace lamella::gpu::cuda
