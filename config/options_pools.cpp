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
  t.integer(
      key("members"), reload::restart, members_minimum, 64,
      "Number of " + what + ".", [field](settings & s) -> auto& { return field(s).members; });
  t.choice<placement>(
      key("placement"), reload::restart,
      {{placement::in_process, "in_process"},
       {placement::local, "local"},
       {placement::remote, "remote"}},
      "Where they run: in this process, as child processes, or on other hosts.",
      [field](settings & s) -> auto& { return field(s).placement; });
  auto& device = t.plain(
      key("device"), option_kind::text, reload::restart,
      "What they compute on: auto, host (processors) or cuda:N, of the machine they run on. Child "
      "processes take the devices from there on in turn, up to where another pool begins.",
      [field](settings & s) -> auto& { return field(s).device; });
  device.allowed = check_device;
  device.pattern = "^(auto|host|cuda:[0-9]{1,3})$";
  t.integer(
      key("spares"), reload::restart, 0, 16,
      "Members kept warm to take over a lost seat.", [field](settings & s) -> auto& {
        return field(s).spares;
      });
  t.integer(
      key("threads"), reload::restart, 1, 1024,
      "Threads per member; auto shares the processors out. Members of this process share those of "
      "pools.model.",
      [field](settings & s) -> auto& { return field(s).threads; });
}

} // namespace

void add_pools(table& t) {
  add_pool(
      t, "model", "model replicas, each with the whole weights", 1,
      [](settings & s) -> auto& { return s.pools.model; });
  t.integer(
      "pools.model.tensor_parallel", reload::restart, 1, 64,
      "Devices that are one replica together, each with its share of the heads and of the weights: "
      "of CUDA devices those from pools.model.device on. Divides the model's KV heads. Prefill "
      "workers with seats of their own are as many devices.",
      [](settings & s) -> auto& { return s.pools.model.tensor_parallel; });
  add_pool(
      t, "attention", "attention shards, which hold the KV cache", 1,
      [](settings & s) -> auto& { return s.pools.attention; });
  t.choice<partition>(
      "pools.attention.partition", reload::restart,
      {{partition::heads, "heads"}, {partition::requests, "requests"}},
      "What a shard holds: some KV heads of every request, or whole requests.",
      [](settings & s) -> auto& { return s.pools.attention.partition; });
  t.plain(
      "pools.attention.parity", option_kind::boolean, reload::restart,
      "One more member holds the parity of the others, so that the KV of a lost one need not be "
      "computed again; needs partition: heads and workers as processes.",
      [](settings & s) -> auto& { return s.pools.attention.parity; });
  t.bytes(
      "pools.attention.kv_bytes", reload::restart, mib, 64 * tib,
      "KV cache of one member; auto takes kv.bytes.",
      [](settings & s) -> auto& { return s.pools.attention.kv_bytes; });
  add_pool(
      t, "prefill", "prefill workers; 0 leaves prompts to the model replicas", 0,
      [](settings & s) -> auto& { return s.pools.prefill; });
  t.choice<prefill_attention>(
      "pools.prefill.attention", reload::restart,
      {{prefill_attention::automatic, "auto"},
       {prefill_attention::own, "own"},
       {prefill_attention::shards, "shards"}},
      "Who attends to prompts: a prefill worker with KV of its own, which the shards then pull, or "
      "the shards; auto takes its own where prefill workers are processes, on the host, and no "
      "pool has parity.",
      [](settings & s) -> auto& { return s.pools.prefill.attention; });
  t.bytes(
      "pools.prefill.kv_bytes", reload::restart, mib, 64 * tib,
      "KV of a prefill worker of its own; auto takes room for the longest prompt and some chunks.",
      [](settings & s) -> auto& { return s.pools.prefill.kv_bytes; });
  t.integer(
      "pools.prefill.serialize_below_tokens", reload::restart, 0, 16 * mib,
      "Prompts shorter than this are pulled when they are computed, others layer by layer "
      "meanwhile.",
      [](settings & s) -> auto& { return s.pools.prefill.serialize_below_tokens; });
}

} // namespace lamella::config
