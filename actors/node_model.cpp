#include "actors/node_impl.hpp"

#include "actors/model_store.hpp"
#include "actors/sizing.hpp"
#include "scheduler/head_partition.hpp"

#include <spdlog/spdlog.h>

#include <fmt/format.h>

#include <filesystem>

namespace lamella::actors {

namespace {

/// Fewer slots than this serve nobody.
constexpr uint32_t slots_min = 128;

const char* name_of(config::operator_set set) {
  switch (set) {
  case config::operator_set::automatic:
    return "auto";
  case config::operator_set::reference:
    return "reference";
  case config::operator_set::portable:
    return "portable";
  case config::operator_set::avx2:
    return "avx2";
  case config::operator_set::avx512:
    return "avx512";
  }
  return "auto";
}

} // namespace

void node::impl::open_model(const load_progress& progress) {
  auto path = options.model.path;
  const bool is_default = path.empty();
  if (is_default) path = model::default_model_path();
  if (!std::filesystem::exists(path))
    throw start_error{66, "model file not found: " + path.string(),
                      is_default ? "run 'lamella model fetch', or give --model PATH"
                                 : "check the path given with --model or model.path"};
  progress("map", 0, 1);
  try {
    model = model::load_model(path);
  } catch (const model::file_error& e) {
    throw start_error{65, e.what()};
  }
  progress("map", 1, 1);
  const auto& spec = model.program->spec;
  const auto& pool = options.pools.attention;
  if (!pool.cells.empty())
    throw start_error{78, "pools.attention.cells: several pools are not available in this version",
                      "give the options of the one pool under pools.attention"};
  if (pool.partition == config::partition::heads)
    if (auto why = scheduler::refuse_partition(spec.kv_heads, pool.members))
      throw start_error{78, "pools.attention.members: " + *why};
  if (options.model.context_tokens && *options.model.context_tokens > spec.context_tokens)
    throw start_error{78, fmt::format("model.context_tokens: {} is more than the {} the model was "
                                      "trained for",
                                      *options.model.context_tokens, spec.context_tokens)};
}

void node::impl::choose_kernels() {
  std::string reason;
  const auto* ops = gpu::find_operators(name_of(options.numerics.operators), &reason);
  if (ops == nullptr) throw start_error{78, "numerics.operators: " + reason};
  // Without seats of its own this process only decides.
  const bool computes = options.pools.any(config::placement::in_process);
  const auto threads = computes ? options.pools.model.threads.value_or(usable_processors()) : 1;
  parts->engine = std::make_shared<gpu::host_engine>(threads, *ops);
  parts->devices = std::make_shared<device_set>(parts->engine);
  spdlog::info("host device kernels={} threads={}{}", ops->name, threads,
               reason.empty() ? "" : " (" + reason + ")");
  model_device = open_device("pools.model", options.pools.model.device, "host/loader");
  attention_device = open_device("pools.attention", options.pools.attention.device, "host/kv");
  if (const auto why = refuse_attention(*attention_device, options, model.program->spec);
      !why.empty())
    throw start_error{78, "pools.attention.device: " + attention_device->name() + ": " + why};
}

std::shared_ptr<gpu::device> node::impl::open_device(const char* pool, const std::string& option,
                                                     const char* name) {
  try {
    return parts->devices->get(option, name);
  } catch (const std::runtime_error& e) {
    throw start_error{69, fmt::format("{}.device: {}", pool, e.what()), "use host or auto"};
  }
}

/// For the caches of all shards: a share of the host's memory, most of a device's own less what the
/// weights will take of it.
uint64_t node::impl::cache_bytes() const {
  if (attention_device->on_host()) return memory_limit() / 4;
  auto free = attention_device->free_bytes();
  if (attention_device == model_device) {
    uint64_t weights = 0;
    for (const auto& w : model.program->graph.weights)
      weights += model_device->ops().packed_bytes(model.tensor(w).type, w.outputs, w.inputs);
    free -= std::min(free, weights);
  }
  return free / 10 * 8;
}

void node::impl::size_cache() {
  const auto& spec = model.program->spec;
  parts->slots = slots_for(options, spec, cache_bytes());
  if (parts->slots < slots_min)
    throw start_error{78,
                      fmt::format("kv.bytes: room for {} tokens, too small for one request; at "
                                  "least {} bytes ({} tokens) are needed",
                                  parts->slots, slots_min * slot_bytes(options, spec), slots_min)};
  if (!options.pools.prefill_owns_kv()) return;
  const auto longest =
      std::min(options.model.context_tokens.value_or(spec.context_tokens), parts->slots);
  if (const auto own = prefill_slots(options, spec, parts->slots); own < longest)
    throw start_error{
        78, fmt::format("pools.prefill.kv_bytes: room for {} tokens, a prompt may have {}", own,
                        longest)};
}

void node::impl::load_weights(const load_progress& progress) {
  if (!needs_weights()) return;
  const auto began = std::chrono::steady_clock::now();
  try {
    parts->weights = pack_weights(model, *model_device, [&](uint64_t done, uint64_t total) {
      const auto ratio = total == 0 ? 1.0 : static_cast<double>(done) / static_cast<double>(total);
      const auto spent =
          std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
      health->set_progress("weights", ratio, ratio > 0 ? spent / ratio * (1 - ratio) : 0);
      numbers->set_load_progress("weights", ratio);
      progress("weights", done, total);
    });
  } catch (const model::file_error& e) {
    throw start_error{65, e.what()};
  } catch (const std::bad_alloc&) {
    throw start_error{71, "not enough memory for the model's weights",
                      "use a smaller or more strongly quantised model"};
  } catch (const std::runtime_error& e) { // a shape or a device that refuses
    throw start_error{70, fmt::format("weights on {}: {}", model_device->name(), e.what())};
  }
}

} // namespace lamella::actors
