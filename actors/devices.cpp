#include "actors/devices.hpp"

#include "gpu/cuda_module.hpp"

#include <spdlog/spdlog.h>

#include <charconv>

namespace lamella::actors {

namespace {

constexpr std::string_view cuda_prefix = "cuda:";

gpu::half_type type_of(config::number_type x) {
  return x == config::number_type::f32 ? gpu::half_type::f32 : gpu::half_type::f16;
}

} // namespace

std::shared_ptr<gpu::device> device_set::get(const std::string& option, const std::string& name) {
  if (!option.starts_with(cuda_prefix)) return engine_->make_device(name);
  std::lock_guard lock{mutex_};
  auto& place = cuda_[option];
  if (!place) {
    unsigned index = 0;
    std::from_chars(option.data() + cuda_prefix.size(), option.data() + option.size(), index);
    place = gpu::open_cuda_device(index);
    spdlog::info("device opened device=\"{}\" free_bytes={}", place->name(), place->free_bytes());
  }
  return place;
}

std::string kernel_names(const gpu::operators& model, const gpu::operators& attention) {
  return model.name == attention.name ? std::string{model.name}
                                      : std::string{model.name} + "+" + std::string{attention.name};
}

std::string refuse_attention(const gpu::device& device, const config::settings& options,
                             const model::model_spec& spec) {
  const auto members = options.pools.attention.members;
  const bool by_request = options.pools.attention.partition == config::partition::requests;
  gpu::attention_args x{};
  x.kv = {nullptr, type_of(options.kv.dtype), by_request ? spec.kv_heads : spec.kv_heads / members,
          spec.head_dim};
  x.group = spec.group();
  x.wire = type_of(options.numerics.wire);
  const auto* why = device.ops().attention_unsupported(x);
  return why == nullptr ? std::string{} : why;
}

} // namespace lamella::actors
