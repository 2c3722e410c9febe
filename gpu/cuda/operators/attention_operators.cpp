#include "gpu/cuda/operators/attention_operators.hpp"

#include "gpu/cuda/attention/attention.hpp"
#include "gpu/cuda/driver/queue.hpp"

#include <stdexcept>

namespace lamella::gpu::cuda {

namespace {

/// The plan of a work's iteration, and where the device has it.
struct placed_plan {
  attention_plan plan;
  std::byte* device = nullptr; ///< in the stream's workspace, from the first layer on
};

/// A parity shard is sent what its cache is to hold, of q8 too, and stores it as any other wire.
attention_args stored_as_sent(attention_args x) {
  if (x.wire == half_type::q8 && x.q == nullptr && x.kv.type == x.wire) x.wire = half_type::f16;
  return x;
}

placed_plan& plan_of(queue& q, const attention_args& args) {
  return q.of_work<placed_plan>(args.spans.data(), [&] {
    if (const auto* why = attention_unsupported(stored_as_sent(args)))
      throw std::runtime_error{why};
    return placed_plan{plan_attention(args.spans, args.runs, args.group), nullptr};
  });
}

/// Uploads the plan before the first layer that needs it.
attention_device_args ready(queue& q, placed_plan& x, const attention_args& args) {
  if (x.device == nullptr) {
    x.device = q.workspace.allocate<std::byte>(x.plan.capacity.device_bytes());
    q.copy(x.plan.bytes, x.device);
    check(launch_expand_runs(x.plan.capacity, x.device, q.stream("slots of the iteration")),
          "slots of the iteration");
  }
  attention_device_args out;
  out.type = args.kv.type;
  out.wire = args.wire;
  out.cache = args.kv.rows;
  out.kv_heads = args.kv.kv_heads;
  out.dim = args.kv.dim;
  out.group = args.group;
  out.scale = args.scale;
  out.q = args.q;
  out.k_new = args.k_new;
  out.v_new = args.v_new;
  out.out = args.out;
  out.capacity = x.plan.capacity;
  out.plan = x.device;
  out.failed = q.failed_word();
  out.records = reinterpret_cast<std::byte*>(args.state);
  return out;
}

class open_append final : public open_kernel {
public:
  explicit open_append(const attention_device_args& x) : args{x} {}
  void launch(queue& on) override {
    check(launch_append_kv(args, on.stream("append_kv")), "append_kv");
  }
  attention_device_args args;
};

class open_attend_new final : public open_kernel {
public:
  open_attend_new(const attention_device_args& x, bool append) : args{x}, end{append} {}
  void launch(queue& on) override {
    check(launch_attend_new(args, end, on.stream("attend_new")), "attend_new");
  }
  kernel_tail* tail() override { return &end.tail; }
  attention_device_args args;
  attention_end end;
};

} // namespace

const char* attention_unsupported(const attention_args& args) {
  return attention_unsupported(args.kv.kv_heads, args.kv.dim, args.group, args.kv.type, args.wire);
}

size_t attention_state_floats(const attention_args& args) {
  const auto& plan = plan_of(queue::current(), args).plan;
  const auto bytes =
      attention_record_bytes(plan.capacity, args.kv.kv_heads, args.group, args.kv.dim);
  return (bytes + sizeof(float) - 1) / sizeof(float);
}

void attend_previous(const attention_args& args, kernel_context) {
  auto& q = queue::current();
  auto& x = plan_of(q, args);
  const auto device = ready(q, x, args);
  if (x.plan.has_units)
    check(launch_attend_previous(device, q.stream("attend_previous")), "attend_previous");
}

void append_kv(const attention_args& args, kernel_context) {
  auto& q = queue::current();
  auto& x = plan_of(q, args);
  const auto device = ready(q, x, args);
  q.open(std::make_unique<open_append>(device));
}

void attend_new(const attention_args& args, kernel_context) {
  auto& q = queue::current();
  auto& x = plan_of(q, args);
  const auto device = ready(q, x, args);
  const auto* open = q.opened<open_append>();
  const bool append = open != nullptr && device.capacity.blocks == 0
                      && open->args.cache == device.cache && open->args.k_new == device.k_new
                      && open->args.v_new == device.v_new && open->args.plan == device.plan;
  if (append) q.take<open_append>();
  q.open(std::make_unique<open_attend_new>(device, append));
}

} // namespace lamella::gpu::cuda
