#include "config/device_option.hpp"
#include "config/option_table.hpp"

namespace lamella::config {

std::string check_device(const std::string& text) {
  if (text == "auto" || text == "host") return {};
  if (is_cuda(text) && text.size() > 5 && text.size() <= 8
      && text.find_first_not_of("0123456789", 5) == std::string::npos)
    return {};
  return "is not a device: use auto, host or cuda:N";
}

namespace {

/// The options that pools of every kind have.
template <class F>
void add_pool(table& t, const std::string& pool, const std::string& what, uint64_t members_minimum,
              F field) {
  const auto key = [&](const char* name) { return "pools." + pool + "." + name; };
  const bool has_cells = pool == "attention";
  t.integer(
      key("members"), reload::live, members_minimum, 64,
      "Number of " + what + ".", [field](settings & s) -> auto& { return field(s).members; });
  t.integer(
      key("min"), reload::live, has_cells ? 0 : 1, 64,
      "Members that the autoscaler leaves at least"
          + std::string{has_cells ? ", of all cells together; a cell may have a min of its own."
                                  : "."},
      [field](settings & s) -> auto& { return field(s).least; });
  t.integer(
      key("max"), reload::live, 0, 64,
      "Members that the autoscaler may give the pool; 0: no autoscaling of this pool."
          + std::string{has_cells ? " Of all cells together; a cell may have a max of its own."
                                  : ""},
      [field](settings & s) -> auto& { return field(s).most; });
  t.choice<placement>(
      key("placement"), reload::restart,
      {{placement::in_process, "in_process"},
       {placement::local, "local"},
       {placement::remote, "remote"}},
      "Where the pool runs: in this process, as child processes, or on other hosts.",
      [field](settings & s) -> auto& { return field(s).placement; });
  auto& device = t.plain(
      key("device"), option_kind::text, reload::restart,
      "Device of the pool on its own machine: auto, host (processors) or cuda:N. Child processes "
      "take successive devices from N on, up to the first device of another pool.",
      [field](settings & s) -> auto& { return field(s).device; });
  device.allowed = check_device;
  device.pattern = "^(auto|host|cuda:[0-9]{1,3})$";
  t.integer(
      key("spares"), reload::restart, 0, 16,
      "Warm standby workers that take over a lost seat.", [field](settings & s) -> auto& {
        return field(s).spares;
      });
  t.integer(
      key("threads"), reload::restart, 1, 1024,
      "Threads per worker; auto divides the processors. Workers of this process share the threads "
      "of pools.model.",
      [field](settings & s) -> auto& { return field(s).threads; });
}

void add_prefill_pool(table& t) {
  add_pool(
      t, "prefill",
      "prefill workers; 0: model replicas run prefill. Without seats of their own, "
      "in_process and not attention: own, another number needs a restart",
      0, [](settings & s) -> auto& { return s.pools.prefill; });
  t.choice<prefill_attention>(
      "pools.prefill.attention", reload::restart,
      {{prefill_attention::automatic, "auto"},
       {prefill_attention::own, "own"},
       {prefill_attention::shards, "shards"}},
      "Attention of prefill: own (the prefill worker has KV, which the shards then pull) or "
      "shards; "
      "auto: own where prefill workers are processes on the host with one rank each and no pool "
      "has "
      "parity.",
      [](settings & s) -> auto& { return s.pools.prefill.attention; });
  t.bytes(
      "pools.prefill.kv_bytes", reload::live, mib, 64 * tib,
      "Own KV of a prefill worker; auto: room for the longest prompt and some chunks.",
      [](settings & s) -> auto& { return s.pools.prefill.kv_bytes; });
  t.integer(
      "pools.prefill.serialize_below_tokens", reload::restart, 0, 16 * mib,
      "KV of prompts shorter than this is transferred in one piece after prefill, that of longer "
      "ones layer by layer during it.",
      [](settings & s) -> auto& { return s.pools.prefill.serialize_below_tokens; });
  t.integer(
      "pools.prefill.overflow_tokens", reload::restart, 0, 1024 * mib,
      "Prompt tokens that wait for each prefill worker; prompts beyond them run on model replicas, "
      "beside decoding. 0: they wait, and workers with own KV do not decode in a burst either.",
      [](settings & s) -> auto& { return s.pools.prefill.overflow_tokens; });
  t.seconds(
      "pools.prefill.repurpose_seconds", reload::restart, 0, 86'400'000,
      "A replica or prefill worker that was mixed for so long changes its pool: a replica computes "
      "prompts and takes no new sequences, a prefill worker decodes, until it has been mixed as "
      "long again; mixed launches only. 0: never.",
      [](settings & s) -> auto& { return s.pools.prefill.repurpose; });
}

} // namespace

void add_pools(table& t) {
  add_pool(
      t, "model", "model replicas, each with the whole weights", 1,
      [](settings & s) -> auto& { return s.pools.model; });
  t.integer(
      "pools.model.tensor_parallel", reload::restart, 1, 64,
      "Tensor parallelism: devices per replica, each with its share of heads and weights; CUDA "
      "devices are counted from pools.model.device on. Must divide the model's KV heads. Prefill "
      "workers with own seats use as many devices.",
      [](settings & s) -> auto& { return s.pools.model.tensor_parallel; });
  add_pool(
      t, "attention", "attention shards, which hold the KV cache; a cell may have none", 0,
      [](settings & s) -> auto& { return s.pools.attention; });
  t.choice<partition>(
      "pools.attention.partition", reload::live,
      {{partition::heads, "heads"}, {partition::requests, "requests"}},
      "What a shard holds: some KV heads of every request (heads), or whole requests. Cells may "
      "differ, and change it while they serve; without cells a change needs a restart.",
      [](settings & s) -> auto& { return s.pools.attention.partition; });
  t.plain(
      "pools.attention.parity", option_kind::boolean, reload::restart,
      "Adds a shard with the XOR parity of the others, so that lost KV is reconstructed instead of "
      "recomputed; needs partition: heads and workers as processes. With cells: one more in each, "
      "or in those that say so themselves.",
      [](settings & s) -> auto& { return s.pools.attention.parity; });
  t.bytes(
      "pools.attention.kv_bytes", reload::live, mib, 64 * tib,
      "KV cache of one shard; auto: kv.bytes. A change moves the KV in use to new caches while "
      "requests run.",
      [](settings & s) -> auto& { return s.pools.attention.kv_bytes; });
  add_prefill_pool(t);
}

void add_autoscale(table& t) {
  t.integer(
      "autoscale.kv_high_percent", reload::restart, 1, 100,
      "KV slots in use, in percent, above which the pool with the KV gets members.",
      [](settings & s) -> auto& { return s.autoscale.kv_high_percent; });
  t.integer(
      "autoscale.kv_low_percent", reload::restart, 0, 99,
      "KV slots in use, in percent, below which the pool with the KV may lose members.",
      [](settings & s) -> auto& { return s.autoscale.kv_low_percent; });
  t.seconds(
      "autoscale.cool_down_up_seconds", reload::restart, second, 3600 * second,
      "Time from the end of one change of a pool to the next one that adds members.",
      [](settings & s) -> auto& { return s.autoscale.cool_up; });
  t.seconds(
      "autoscale.cool_down_down_seconds", reload::restart, second, 86'400 * second,
      "Time from the end of one change of a pool to the next one that removes members.",
      [](settings & s) -> auto& { return s.autoscale.cool_down; });
  t.integer(
      "autoscale.tbt_target_ms", reload::restart, 0, 60 * second,
      "Milliseconds between two tokens (TBT, 99th percentile) above which a pool gets members; 0: "
      "no target.",
      [](settings & s) -> auto& { return s.autoscale.tbt_target; });
  t.integer(
      "autoscale.ttft_target_ms", reload::restart, 0, 600 * second,
      "Milliseconds to the first token (TTFT, 99th percentile) above which a pool gets members; 0: "
      "no target.",
      [](settings & s) -> auto& { return s.autoscale.ttft_target; });
  t.plain(
      "autoscale.trace_file", option_kind::path, reload::restart,
      "File that gets what the autoscaler sees, one JSON object per second, for `lamella simulate "
      "--scaling-trace`.",
      [](settings & s) -> auto& { return s.autoscale.trace_file; });
}

} // namespace lamella::config
