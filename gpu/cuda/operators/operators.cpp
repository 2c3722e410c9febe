#include "gpu/cuda/operators/operators.hpp"

#include "gpu/cuda/driver/queue.hpp"
#include "gpu/cuda/operators/attention_operators.hpp"
#include "gpu/cuda/operators/matmuls.hpp"
#include "gpu/cuda/operators/weight_loader.hpp"
#include "gpu/cuda/operators/wire_operators.hpp"
#include "gpu/cuda/rows/kv_checksum.hpp"
#include "gpu/cuda/rows/kv_copy.hpp"
#include "gpu/cuda/rows/rows.hpp"
#include "gpu/cuda/rows/sample.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

namespace lamella::gpu::cuda {

namespace {

dense_matrix dense(const packed_matrix& x) {
  return {dense_type_of(x.type), x.outputs, x.inputs, x.data};
}

class open_add final : public open_kernel {
public:
  explicit open_add(const add_args& x) : args{x} {}
  void launch(queue& on) override { check(launch_add(args, on.stream("add")), "add"); }
  add_args args;
};

/// The two products that a silu_mul is made of, launched as one by it; or as two, where something
/// else comes first.
class open_gate_and_up final : public open_kernel {
public:
  /// Two products of up to this many rows are left open. Of more the second is no loss, and the
  /// outputs of both side by side take room.
  static constexpr uint32_t rows_max = 256;

  /// x: a copy in the workspace.
  open_gate_and_up(const uint16_t* x, uint32_t rows, const gemm_part& gate, const gemm_part& up)
      : x_{x}, rows_{rows}, parts_{gate, up} {}

  void launch(queue& on) override { matmuls::of(on.device()).run(x_, rows_, parts_, on); }

  bool made_for(const silu_mul_args& x) const {
    return x.ends_inputs && x.gate == parts_[0].out && x.up == parts_[1].out && x.rows == rows_
           && x.width == parts_[0].weight.outputs;
  }

  /// out: [rows, 2 * outputs], gate and up of each row.
  void launch_as_one(const dense_matrix& weight, float* out, queue& on) const {
    const gemm_part both{weight, out, weight.outputs};
    matmuls::of(on.device()).run(x_, rows_, {&both, 1}, on);
  }

  std::optional<dense_matrix> both() const {
    return side_by_side(parts_[0].weight, parts_[1].weight);
  }

private:
  const uint16_t* x_;
  uint32_t rows_;
  std::array<gemm_part, 2> parts_;
};

/// Room for the copy of a whole output that is about to be written.
dense_copy copy_of(queue& q, const float* out, size_t count) {
  const auto type = q.matmuls_read;
  return {q.copies().write(out, count, count, type, q.workspace), type};
}

void embed(const embed_args& args, kernel_context) {
  auto& q = queue::current();
  const auto rows = static_cast<uint32_t>(args.tokens.size());
  if (rows == 0) return;
  q.copies().forget(args.out);
  check(launch_embed({dense(args.table), q.upload(args.tokens), q.upload(args.seats),
                      args.last_sampled, rows, args.out},
                     q.stream("embed")),
        "embed");
}

void rms_norm(const rms_norm_args& args, kernel_context) {
  if (args.rows == 0) return;
  auto& q = queue::current();
  const auto copy = copy_of(q, args.out, size_t{args.rows} * args.width);
  const auto* open = q.opened<open_add>();
  const bool of_sum = open != nullptr && open->args.out == args.x && args.out != args.x
                      && open->args.rows == args.rows && open->args.width == args.width;
  if (of_sum) {
    const auto sum = q.take<open_add>();
    check(launch_add_rms_norm(sum->args, args, copy, q.stream("add and rms_norm")),
          "add and rms_norm");
  } else {
    check(launch_rms_norm(args, copy, q.stream("rms_norm")), "rms_norm");
  }
}

void matmul(const matmul_args& args, kernel_context) {
  if (args.rows == 0) return;
  auto& q = queue::current();
  std::vector<gemm_part> parts;
  for (const auto& p : args.parts) {
    q.copies().forget(p.out);
    parts.push_back({dense(p.weight), p.out, p.out_stride});
  }
  q.matmuls_read = parts[0].weight.type;
  const auto* x =
      q.copies().of(args.x, size_t{args.rows} * parts[0].weight.inputs, parts[0].weight.type);
  if (parts.size() == 2 && x != nullptr && args.rows <= open_gate_and_up::rows_max
      && side_by_side(parts[0].weight, parts[1].weight))
    q.open(std::make_unique<open_gate_and_up>(x, args.rows, parts[0], parts[1]));
  else
    matmuls::of(q.device()).run(args.x, args.rows, parts, q);
}

void silu_mul(const silu_mul_args& args, kernel_context) {
  if (args.rows == 0) return;
  auto& q = queue::current();
  const auto copy = copy_of(q, args.out, size_t{args.rows} * args.width);
  silu_mul_rows rows{args.gate, args.up, args.rows, args.width, args.width, args.out, copy};
  if (const auto* open = q.opened<open_gate_and_up>(); open != nullptr && open->made_for(args)) {
    const auto products = q.take<open_gate_and_up>();
    auto* both = q.scratch.allocate<float>(size_t{args.rows} * 2 * args.width);
    products->launch_as_one(*products->both(), both, q);
    rows.gate = both;
    rows.up = both + args.width;
    rows.in_stride = 2 * args.width;
  }
  check(launch_silu_mul(rows, q.stream("silu_mul")), "silu_mul");
}

void add(const add_args& args, kernel_context) {
  if (args.rows == 0) return;
  auto& q = queue::current();
  q.copies().forget(args.out);
  q.open(std::make_unique<open_add>(args));
}

void add_bias(const add_bias_args& args, kernel_context) {
  if (args.rows == 0) return;
  auto& q = queue::current();
  q.copies().forget(args.out);
  check(launch_add_bias(args, q.stream("add_bias")), "add_bias");
}

void scale(const scale_args& args, kernel_context) {
  if (args.rows == 0) return;
  auto& q = queue::current();
  q.copies().forget(args.out);
  check(launch_scale(args, q.stream("scale")), "scale");
}

void gather_rows(const gather_rows_args& args, kernel_context) {
  const auto rows = static_cast<uint32_t>(args.row_index.size());
  if (rows == 0) return;
  auto& q = queue::current();
  q.copies().forget(args.out);
  check(launch_gather({args.x, q.upload(args.row_index), rows, args.width, args.out},
                      q.stream("gather_rows")),
        "gather_rows");
}

sampled_token token_of(const sampled_row& x) {
  sampled_token result{x.token, x.logprob, x.finite != 0, {}, x.rank};
  result.top.assign(x.top, x.top + std::min(x.top_count, top_logprobs_max));
  return result;
}

void sample(const sample_args& args, kernel_context) {
  const auto count = static_cast<uint32_t>(args.records.size());
  if (count == 0) return;
  auto& q = queue::current();
  auto* drawn = q.results<sampled_row>(count);
  const auto edited = edited_records(args.records);
  auto* room =
      q.scratch.allocate<float>(sample_scratch_bytes(edited, args.vocabulary) / sizeof(float));
  check(launch_sample({args.logits, args.rows, args.vocabulary, q.upload(args.records), count,
                       q.upload(args.edits), q.upload(args.masks), q.upload(args.seats),
                       args.last_sampled, room, drawn},
                      q.stream("sample")),
        "sample");
  q.at_end([drawn, out = args.out] {
    for (size_t i = 0; i < out.size(); ++i) out[i] = token_of(drawn[i]);
  });
}

} // namespace

const operators& cuda_operators() {
  static constexpr operators table{
      .name = "cuda",
      .packed_bytes = dense_weight_bytes,
      .pack = load_weight,
      .embed = embed,
      .rms_norm = rms_norm,
      .matmul = matmul,
      .rope = rope,
      .silu_mul = silu_mul,
      .add = add,
      .add_bias = add_bias,
      .scale = scale,
      .gather_rows = gather_rows,
      .to_wire = to_wire,
      .from_wire = from_wire,
      .parity_to_wire = parity_to_wire,
      .sample = sample,
      .attention_unsupported = attention_unsupported,
      .attention_state_floats = attention_state_floats,
      .attend_previous = attend_previous,
      .append_kv = append_kv,
      .attend_new = attend_new,
      .gather_kv = gather_kv,
      .scatter_kv = scatter_kv,
      .checksum_kv = checksum_kv,
  };
  return table;
}

} // namespace lamella::gpu::cuda
