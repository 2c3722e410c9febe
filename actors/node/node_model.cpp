#include "actors/node/node_impl.hpp"

#include "actors/machine/model_store.hpp"
#include "actors/machine/sizing.hpp"
#include "actors/machine/topology.hpp"
#include "scheduler/head_partition.hpp"

#include <spdlog/spdlog.h>

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

namespace lamella::actors {

namespace {

const char* operator_set_name(config::operator_set set) {
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
  case config::operator_set::amx:
    return "amx";
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
  } catch (const file_error& e) {
    throw start_error{65, e.what()};
  }
  progress("map", 1, 1);
  make_replica_program();
  const auto& spec = model.program->spec;
  const auto& pool = options.pools.attention;
  for (const auto& [name, cell] : pool.resolved())
    if (cell.partition == config::partition::heads && cell.members > 0)
      if (auto why = scheduler::refuse_partition(spec.kv_heads, cell.members))
        throw start_error{78, "pools.attention." + (pool.cells.empty() ? "" : "cells." + name + ".")
                                  + "members: " + *why};
  if (pool.partition == config::partition::heads && pool.cells.empty())
    if (auto why = scheduler::refuse_partition(spec.kv_heads, std::max(1u, pool.most)))
      throw start_error{78, "pools.attention.max: " + *why};
  if (options.model.context_tokens && *options.model.context_tokens > spec.context_tokens)
    throw start_error{78, fmt::format("model.context_tokens: {} is more than the {} {}",
                                      *options.model.context_tokens, spec.context_tokens,
                                      spec.context_bound())};
  if (spec.context_tokens < spec.trained_tokens)
    spdlog::info("the model uses sliding-window attention: contexts are limited to its {} "
                 "tokens, of {} it was trained for",
                 spec.context_tokens, spec.trained_tokens);
}

/// From here on the program is that of one rank of a replica (L-M03), in the order configured.
void node::impl::make_replica_program() {
  const auto ranks = options.pools.model.tensor_parallel;
  const auto order = query_order_of(options.batching.early_q);
  if (ranks == 1 && order == model::query_order::early) return; // that it was loaded with
  try {
    model.program = model::rank_program(model, ranks, order);
  } catch (const std::invalid_argument& e) {
    throw start_error{78, std::string{"pools.model.tensor_parallel: "} + e.what()};
  }
}

/// Of other processes it only looks whether they are there.
void node::impl::open_rank_devices() {
  for (uint32_t r = 1; r < options.pools.model.tensor_parallel; ++r) {
    auto of = options.pools.model;
    of.device = config::device_of_rank(of.device, r);
    if (auto device = open_device("pools.model", of, "host/loader"))
      rank_devices.push_back(std::move(device));
  }
  try {
    if (model_device) check_alike(*model_device, rank_devices);
  } catch (const std::runtime_error& e) {
    throw start_error{69, std::string{"pools.model.tensor_parallel: "} + e.what()};
  }
}

void node::impl::choose_kernels() {
  std::string reason;
  const auto* ops = gpu::find_operators(operator_set_name(options.numerics.operators), &reason);
  if (ops == nullptr) throw start_error{78, "numerics.operators: " + reason};
  // Without seats of its own this process only decides.
  const bool computes = options.pools.any(config::placement::in_process);
  const auto threads = computes ? options.pools.model.threads.value_or(usable_processors()) : 1;
  const auto nodes = computes ? spread_memory() : 1; // before anything is allocated there
  parts->engine = std::make_shared<gpu::host_engine>(threads, *ops);
  parts->devices = std::make_shared<device_set>(parts->engine);
  spdlog::info("host device kernels={} threads={}{}{}", ops->name, threads,
               nodes > 1 ? " numa_nodes=" + std::to_string(nodes) : "",
               reason.empty() ? "" : " (" + reason + ")");
  const auto& pools = options.pools;
  model_device = open_device("pools.model", pools.model, "host/loader");
  open_rank_devices();
  open_attention_devices();
  if (pools.prefill.placement == config::placement::local)
    for (const auto& device :
         config::devices_of_ranks(pools.prefill.device, pools.model.tensor_parallel)) {
      config::pool_settings of = pools.prefill;
      of.device = device;
      open_device("pools.prefill", of, "host/loader");
    }
  // Workers say what theirs are when they join.
  const gpu::device_numerics unknown{"cuda", {}};
  model_numerics = model_device ? model_device->numerics() : unknown;
  attention_numerics = attention_device ? attention_device->numerics() : unknown;
}

void node::impl::open_attention_devices() {
  const auto& pool = options.pools.attention;
  for (const auto& [name, cell] : pool.resolved()) {
    auto device = open_device(pool.key_of(name), cell, "host/kv");
    if (!device) continue;
    if (const auto why = refuse_attention(*device, attention_of(options, model.program->spec));
        !why.empty())
      throw start_error{78, pool.key_of(name) + ".device: " + device->name() + ": " + why};
    if (!attention_device) attention_device = std::move(device);
  }
}

/// A device of this process; of child processes it only looks whether it is there.
std::shared_ptr<gpu::device> node::impl::open_device(const std::string& pool,
                                                     const config::pool_settings& of,
                                                     const char* name) {
  const auto refuse = [&](const std::string& why) {
    throw start_error{69, fmt::format("{}.device: {}", pool, why), "use host or auto"};
  };
  if (of.placement != config::placement::in_process && config::is_cuda(of.device)) {
    const bool here = of.placement == config::placement::local;
    if (const auto why = here ? why_no_device(of.device) : std::string{}; !why.empty()) refuse(why);
    return nullptr;
  }
  try {
    return parts->devices->get(of.device, name);
  } catch (const std::runtime_error& e) {
    refuse(e.what());
  }
  return nullptr;
}

/// For the caches of all shards: a share of the host's memory, most of a device's own less what the
/// weights will take of it.
uint64_t node::impl::cache_bytes() const {
  // Of a device of other processes nothing is known here: its pool says how much.
  if (!attention_device || attention_device->on_host()) return memory_limit() / 4;
  auto free = attention_device->free_bytes();
  if (attention_device == model_device || std::ranges::count(rank_devices, attention_device) > 0) {
    const auto ranks = model.program->ranks();
    uint64_t weights = 0;
    for (const auto& w : model.program->graph.weights)
      weights += model_device->ops().packed_bytes(model.tensor(w).type, w.outputs_of_rank(ranks),
                                                  w.inputs_of_rank(ranks));
    free -= std::min(free, weights);
  }
  return free / 10 * 8;
}

void node::impl::size_cache() {
  const auto& spec = model.program->spec;
  parts->layout = layout_of(options, spec, cache_bytes());
  if (auto why = why_too_small(options, spec, parts->layout); !why.empty())
    throw start_error{78, why};
  if (auto why = why_too_large(options, model.file->file_bytes(), token_bytes(options, spec),
                               parts->layout);
      !why.empty())
    throw start_error{78, "kv.bytes: " + why, "lower kv.bytes or set it to auto"};
}

void node::impl::load_weights(const load_progress& progress) {
  if (!needs_weights()) {
    metrics->set_load_progress("weights", 1);
    return;
  }
  const auto began = std::chrono::steady_clock::now();
  const auto ranks = model.program->ranks();
  const auto pack = [&](gpu::device& where, uint32_t rank) {
    auto packed = pack_weights(
        model, where,
        [&](uint64_t done, uint64_t total) {
          done += rank * total;
          total *= ranks;
          const auto ratio =
              total == 0 ? 1.0 : static_cast<double>(done) / static_cast<double>(total);
          const auto spent =
              std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
          health->set_progress("weights", ratio,
                               ratio > 0 ? std::optional{spent / ratio * (1 - ratio)}
                                         : std::nullopt);
          metrics->set_load_progress("weights", ratio);
          progress("weights", done, total);
        },
        rank);
    for (const auto& x : where.remarks())
      spdlog::warn("device warning device=\"{}\" text=\"{}\"", where.name(), x);
    return packed;
  };
  try {
    parts->weights = pack(*model_device, 0);
    for (uint32_t r = 1; r < ranks; ++r)
      parts->other_weights.push_back(pack(*rank_devices[r - 1], r));
  } catch (const file_error& e) {
    throw start_error{65, e.what()};
  } catch (const std::bad_alloc&) {
    throw start_error{71, "not enough memory for the model's weights",
                      "use a smaller model or a stronger quantisation"};
  } catch (const std::runtime_error& e) { // a shape or a device that refuses
    throw start_error{70, fmt::format("weights on {}: {}", model_device->name(), e.what())};
  }
}

} // namespace lamella::actors
