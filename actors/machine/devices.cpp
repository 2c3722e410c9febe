#include "actors/machine/devices.hpp"

#include "actors/machine/sizing.hpp"
#include "actors/protocol/join.hpp"

#include "gpu/cuda_module.hpp"

#include <spdlog/spdlog.h>

namespace lamella::actors {

device_set::device_set(std::shared_ptr<gpu::host_engine> engine, opener open_cuda)
    : engine_{std::move(engine)}, open_cuda_{open_cuda ? std::move(open_cuda)
                                                       : opener{gpu::open_cuda_device}} {}

std::shared_ptr<gpu::device> device_set::get(const std::string& option, const std::string& name) {
  if (!config::is_cuda(option)) return engine_->make_device(name);
  std::lock_guard lock{mutex_};
  auto& place = cuda_[option];
  if (!place) {
    place = open_cuda_(config::cuda_index(option));
    spdlog::info("device opened device=\"{}\" free_bytes={}", place->name(), place->free_bytes());
    for (const auto& [other, device] : cuda_) {
      if (!device || other == option) continue;
      if (const auto why = gpu::why_apart(config::cuda_index(option), config::cuda_index(other));
          !why.empty())
        spdlog::warn("frames between devices are staged in host memory reason=\"{}\"", why);
    }
  }
  return place;
}

std::vector<std::shared_ptr<gpu::device>>
device_set::behind(const std::string& option, uint32_t ranks, const std::string& name) {
  std::vector<std::shared_ptr<gpu::device>> others;
  for (uint32_t r = 1; r < ranks; ++r)
    others.push_back(get(config::device_of_rank(option, r), name));
  return others;
}

std::optional<std::string> device_set::lost() const {
  std::lock_guard lock{mutex_};
  for (const auto& [option, device] : cuda_)
    if (device && device->lost()) return device->name();
  return {};
}

std::string kernel_names(const std::string& model, const std::string& attention) {
  return model == attention ? model : model + "+" + attention;
}

std::string numerics_of(const config::settings& options, const gpu::device_numerics& model,
                        const gpu::device_numerics& attention) {
  const auto both = [](const std::string& a, const std::string& b, const char* between) {
    return a == b ? a : a + between + b;
  };
  const auto ranks = options.pools.model.tensor_parallel;
  return both(model.kernels, attention.kernels, "+")
         + " wire=" + name_of(half_type_of(options.numerics.wire)) + " kv="
         + name_of(half_type_of(options.kv.dtype)) + " " + both(model.sizes, attention.sizes, " ")
         + (ranks > 1 ? " ranks=" + std::to_string(ranks) : "");
}

void check_alike(const gpu::device& first, std::span<const std::shared_ptr<gpu::device>> others) {
  for (const auto& other : others)
    if (other->numerics() != first.numerics())
      throw std::runtime_error{"ranks of one replica on " + first.name() + " and " + other->name()
                               + ": devices of different classes give different bits"};
}

std::string names_of(const gpu::device& first,
                     std::span<const std::shared_ptr<gpu::device>> others) {
  auto names = first.name();
  for (const auto& other : others) names += ", " + other->name();
  return names;
}

std::string why_no_device(const std::string& option) {
  return config::is_cuda(option) ? gpu::why_no_cuda_device(config::cuda_index(option))
                                 : std::string{};
}

gpu::attention_args attention_of(const config::settings& options, const model::model_spec& spec) {
  gpu::attention_args x{};
  x.kv = {nullptr, half_type_of(options.kv.dtype),
          spec.kv_heads / layout_of(options, spec, 0).fewest(), spec.head_dim};
  x.group = spec.group();
  x.wire = half_type_of(options.numerics.wire);
  return x;
}

gpu::attention_args attention_of(const worker_terms& terms, bool shared) {
  gpu::attention_args x{};
  x.kv = {nullptr, terms.kv, shared ? terms.kv_heads / terms.pool.layout.fewest() : terms.kv_heads,
          terms.head_dim};
  x.group = terms.group;
  x.wire = terms.wire;
  return x;
}

std::string refuse_attention(const gpu::device& device, const gpu::attention_args& shape) {
  const auto* why = device.ops().attention_unsupported(shape);
  return why == nullptr ? std::string{} : why;
}

} // namespace lamella::actors
