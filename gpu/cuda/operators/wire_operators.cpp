#include "gpu/cuda/operators/wire_operators.hpp"

#include "gpu/cuda/driver/queue.hpp"
#include "gpu/cuda/rows/wire.hpp"

#include <algorithm>
#include <numeric>

namespace lamella::gpu::cuda {

namespace {

class open_rope final : public open_kernel {
public:
  explicit open_rope(const rope_rows& args) : rows{args} {}
  void launch(queue& on) override { check(launch_rope(rows, on.stream("rope")), "rope"); }
  rope_rows rows;
};

class open_to_wire final : public open_kernel {
public:
  explicit open_to_wire(const wire_rows& args) : rows{args} {}
  void launch(queue& on) override { check(launch_to_wire(rows, on.stream("to_wire")), "to_wire"); }
  kernel_tail* tail() override { return &rows.tail; }
  wire_rows rows;
};

class open_from_wire final : public open_kernel {
public:
  explicit open_from_wire(const unwire_rows& args) : rows{args} {}
  void launch(queue& on) override {
    check(launch_from_wire(rows, on.stream("from_wire")), "from_wire");
  }
  kernel_tail* tail() override { return &rows.tail; }
  unwire_rows rows;
};

/// All rows of a launch, in order.
bool in_order(std::span<const uint32_t> index) {
  for (uint32_t i = 0; i < index.size(); ++i)
    if (index[i] != i) return false;
  return true;
}

/// Cosines and sines of an iteration's positions: worked out for the first layer that asks.
const float2* angles_of(queue& q, const rope_args& args) {
  const auto pairs = static_cast<uint32_t>(args.frequencies.size());
  return q.of_work<const float2*>(args.positions.data(), [&] {
    auto* out = q.workspace.allocate<float2>(size_t{args.rows} * pairs);
    check(launch_angles({q.upload(args.positions), q.upload(args.frequencies), args.rows, pairs,
                         out, args.magnitude},
                        q.stream("angles")),
          "angles");
    return out;
  });
}

/// The rotation of what to_wire takes, if it is all of what was rotated: then it can be done on the
/// way.
std::unique_ptr<open_rope> rotation_of(queue& q, const to_wire_args& args) {
  const auto* x = q.opened<open_rope>();
  if (x == nullptr) return nullptr;
  const auto& r = x->rows;
  const bool all = r.out == args.x && r.stride == args.stride && args.first_head == 0
                   && args.head_count * args.width == r.heads * r.turn.dim
                   && args.width % r.turn.dim == 0 && r.rows == args.row_index.size()
                   && in_order(args.row_index);
  return all ? q.take<open_rope>() : nullptr;
}

} // namespace

void rope(const rope_args& args, kernel_context) {
  if (args.rows == 0) return;
  auto& q = queue::current();
  q.copies().forget(args.out);
  const auto pairs = static_cast<uint32_t>(args.frequencies.size());
  q.open(
      std::make_unique<open_rope>(rope_rows{args.x,
                                            args.out,
                                            args.rows,
                                            args.heads,
                                            args.stride,
                                            {angles_of(q, args), args.dim, pairs, args.pairing}}));
}

void to_wire(const to_wire_args& args, kernel_context) {
  const auto rows = static_cast<uint32_t>(args.row_index.size());
  if (rows == 0 || args.head_count == 0) return;
  auto& q = queue::current();
  const auto* index = q.upload(args.row_index);
  wire_part part{args.x, args.stride, args.first_head, args.head_count, args.width, args.out};
  if (auto turned = rotation_of(q, args)) {
    part.x = turned->rows.x;
    part.rotated = turned->rows.out;
    part.turn = turned->rows.turn;
  }
  if (auto* open = q.opened<open_to_wire>()) {
    auto& frame = open->rows;
    if (!frame.tail.posts() && frame.count < wire_rows::parts_max && frame.row_index == index
        && frame.rows == rows && frame.wire == args.wire && part.turn.angles == nullptr) {
      frame.parts[frame.count++] = part;
      return;
    }
  }
  wire_rows frame{{part}, 1, index, rows, args.wire};
  q.open(std::make_unique<open_to_wire>(frame));
}

void parity_to_wire(const parity_to_wire_args& args, kernel_context) {
  auto& q = queue::current();
  const auto* index = q.upload(args.row_index);
  check(launch_parity_to_wire({args.x, args.stride, args.shards, args.head_count, args.dim,
                               args.out, index, static_cast<uint32_t>(args.row_index.size()),
                               args.wire, args.cache},
                              q.stream("parity_to_wire")),
        "parity_to_wire");
}

void from_wire(const from_wire_args& args, kernel_context) {
  const auto rows = static_cast<uint32_t>(args.row_index.size());
  if (rows == 0 || args.head_count == 0) return;
  auto& q = queue::current();
  unwire_rows frame{args.in,
                    args.out,
                    args.stride,
                    args.first_head,
                    args.head_count,
                    args.width,
                    q.upload(args.row_index),
                    rows,
                    args.wire};
  if (in_order(args.row_index)) {
    const auto written = size_t{rows} * args.head_count * args.width;
    frame.copy.type = q.matmuls_read;
    frame.copy.out = q.copies().write(args.out, size_t{rows} * args.stride, written,
                                      frame.copy.type, q.workspace);
  } else {
    q.copies().forget(args.out);
  }
  q.open(std::make_unique<open_from_wire>(frame));
}

} // namespace lamella::gpu::cuda
