// The rules between options: check() of settings.hpp.
#include "config/cells.hpp"
#include "config/streams.hpp"

#include <algorithm>
#include <map>

namespace lamella::config {
namespace {

/// The parts of the language that this version cannot run yet. All in this one place: a part that
/// is built removes its lines here and nothing else.
void check_availability(const settings& x, std::vector<rule_violation>& found) {
  const auto pool = [&](const std::string& key, const pool_settings& p) {
    if (p.spares != 0 && p.placement == placement::in_process)
      found.push_back({{key + ".spares", key + ".placement"},
                       "a pool of this process cannot have spares: they would be lost with it",
                       "use placement local or remote, or spares 0"});
  };
  pool("pools.model", x.pools.model);
  for (const auto& [name, cell] : x.pools.attention.resolved())
    pool(x.pools.attention.key_of(name), cell);
  pool("pools.prefill", x.pools.prefill);
  check_cells(x.pools.attention, found);
  if (const auto& p = x.pools.prefill; is_cuda(p.device) && p.placement == placement::in_process)
    found.push_back(
        {{"pools.prefill.device"},
         p.device
             + " is not available in this version: prefill of this process runs on the replicas",
         "use pools.model.device"});
  if (const auto ranks = x.pools.model.tensor_parallel;
      ranks != 1 && x.pools.prefill.attention == prefill_attention::own)
    found.push_back({{"pools.model.tensor_parallel", "pools.prefill.attention"},
                     std::to_string(ranks)
                         + " with prefill workers that have KV of their own is not available in "
                           "this version",
                     "use pools.prefill.attention: shards"});
}

/// Pipelines that say how many batches there are, and replicas that have none.
void check_batches(const settings& x, std::vector<rule_violation>& found) {
  const auto replicas = std::max(x.pools.model.members, x.pools.model.most);
  if (x.batching.leaves_idle(replicas))
    found.push_back({{"batching.batches", "pools.model.members", "pools.model.max"},
                     std::to_string(x.batching.batches_for(replicas)) + " batches leave some of "
                         + std::to_string(replicas) + " replicas idle",
                     "set batching.batches to auto, or to one for each replica at least"});
  const bool chosen = x.batching.pipeline == pipeline::automatic;
  if (!x.batching.batches || (!chosen && x.batching.pipeline != pipeline::off)) return;
  found.push_back({{"batching.pipeline", "batching.batches"},
                   std::string{chosen ? "auto chooses the number of batches"
                                      : "off has one batch for each replica"}
                       + ", and " + std::to_string(*x.batching.batches) + " were asked for",
                   "leave batching.batches auto, or use pipeline fixed or rotational"});
}

/// What only prompts in the launches of batches allow.
void check_mixed_launches(const settings& x, std::vector<rule_violation>& found) {
  const auto& prefill = x.pools.prefill;
  if (x.batching.stand_backs > 0 && x.batching.launches != launches::mixed)
    found.push_back({{"batching.stand_backs", "batching.launches"},
                     "sequences stand back only for prompts in their launches",
                     "set batching.launches: mixed, or stand_backs to 0"});
  if (prefill.repurpose.count() > 0
      && (x.batching.launches != launches::mixed || !prefill.has_seats()))
    found.push_back({{"pools.prefill.repurpose_seconds", "batching.launches"},
                     "replicas change their pool only where prompts overflow from prefill workers "
                     "with seats into mixed launches",
                     "set batching.launches: mixed and pools.prefill.placement or attention: own, "
                     "or repurpose_seconds to 0"});
}

/// CUDA devices of worker processes: what is known of them here, and what must be like theirs.
void check_devices(const settings& x, std::vector<rule_violation>& found) {
  const auto& pools = x.pools;
  const auto& prefill = pools.prefill;
  const auto cells = pools.attention.resolved();
  const auto elsewhere = [&](const attention_pool_settings& cell) {
    return std::ranges::any_of(cells,
                               [&](const auto& y) { return y.second.device != cell.device; });
  };
  for (const auto& [name, cell] : cells) {
    if (!is_cuda(cell.device) || cell.kv_bytes || x.kv.bytes) continue;
    const bool here = cell.placement == placement::in_process;
    if (here && !elsewhere(cell)) continue;
    const auto key = pools.attention.key_of(name);
    found.push_back({{key + ".kv_bytes", key + ".device"},
                     here ? "cells on several devices share no memory"
                          : "the memory of " + cell.device
                                + " is unknown here: it is a device of other processes",
                     "set " + key + ".kv_bytes"});
  }
  if (!prefill.has_seats()) return;
  const bool of_this_process = prefill.placement == placement::in_process;
  if (of_this_process && is_cuda(pools.model.device)
      && pools.model.placement != placement::in_process)
    found.push_back({{"pools.prefill.placement", "pools.model.device"},
                     "prefill workers of this process use the device of the replicas, and "
                         + pools.model.device + " is a device of other processes",
                     "set pools.prefill.placement: local or remote"});
  const auto alike = [&](bool one, const std::string& other, const pool_settings& pool) {
    if (one == is_cuda(pool.device)) return;
    found.push_back(
        {{"pools.prefill.device", other + ".device"},
         "K and V must not depend on the device, but the kernels of CUDA devices and of the "
         "host round differently",
         "give both a CUDA device, or neither"});
  };
  const bool computes_on_cuda =
      of_this_process ? is_cuda(pools.model.device) : is_cuda(prefill.device);
  alike(computes_on_cuda, "pools.model", pools.model);
  if (pools.prefill_owns_kv())
    for (const auto& [name, cell] : pools.attention.resolved())
      alike(computes_on_cuda, pools.attention.key_of(name), cell);
}

/// Sizes between which the autoscaler may choose.
void check_bounds(const std::string& key, const pool_settings& p,
                  std::vector<rule_violation>& found) {
  if (p.least == 0)
    found.push_back({{key + ".min"},
                     "a pool keeps at least one member",
                     "set min to 1 or more; cells may have no members"});
  if (!p.autoscaled()) {
    if (p.least > 1)
      found.push_back({{key + ".min", key + ".max"},
                       "min has no effect without max: the pool keeps its members",
                       "set max, the members that the autoscaler may give the pool"});
    return;
  }
  check_members_between("pool", key, p, found);
}

/// What the autoscaler can change, and by which measures.
void check_autoscaling(const settings& x, std::vector<rule_violation>& found) {
  check_bounds("pools.model", x.pools.model, found);
  auto attention = x.pools.attention;
  attention.members = attention.all_members();
  check_bounds("pools.attention", attention, found);
  check_bounds("pools.prefill", x.pools.prefill, found);
  const auto& shards = x.pools.attention;
  const auto cells = shards.resolved();
  const bool no_more = std::ranges::any_of(cells, [](const auto& cell) {
    return cell.second.partition == partition::heads && !cell.second.kv_bytes;
  });
  if (shards.autoscaled() && no_more && !x.kv.bytes)
    found.push_back({{"pools.attention.max", "pools.attention.kv_bytes"},
                     "without a size of one shard's KV, more shards have no more slots than before",
                     "set pools.attention.kv_bytes"});
  if (x.pools.prefill.autoscaled() && !x.pools.prefill.has_seats())
    found.push_back({{"pools.prefill.max", "pools.prefill.placement"},
                     "prefill runs on the model replicas, so it has no members of its own",
                     "set pools.model.max, or pools.prefill.placement: local or remote"});
  if (x.autoscale.kv_low_percent >= x.autoscale.kv_high_percent)
    found.push_back({{"autoscale.kv_low_percent", "autoscale.kv_high_percent"},
                     std::to_string(x.autoscale.kv_low_percent) + " is not below "
                         + std::to_string(x.autoscale.kv_high_percent)
                         + ": a pool would be too large and too small at once",
                     "lower autoscale.kv_low_percent"});
}

/// The settings with each pool as large as it may become.
settings at_most(settings x) {
  for (pool_settings* p : {static_cast<pool_settings*>(&x.pools.model),
                           static_cast<pool_settings*>(&x.pools.attention),
                           static_cast<pool_settings*>(&x.pools.prefill)})
    p->members = std::max(p->members, p->most);
  const auto most = x.pools.attention.most;
  for (auto& [name, cell] : x.pools.attention.cells)
    cell.members = std::max(cell.members, cell.autoscaled() ? std::min(cell.most, most) : most);
  return x;
}

/// A kernel that waits must not stand in one queue before the one it waits for, so a CUDA device
/// takes no more streams than it has queues for (gpu/cuda/driver/driver.hpp).
constexpr uint32_t cuda_streams_max = 28;

/// Streams of a pool's executors in one process: served_streams() of each, and what shards need to
/// look after their KV and, with parity, to make lost KV of the others'. A worker process has one
/// executor or shard.
///
/// `shards_max`: members of all attention cells together, where each may have more.
void check_device_streams(const settings& x, uint32_t shards_max,
                          std::vector<rule_violation>& found) {
  const auto& pools = x.pools;
  const auto shards = std::min(pools.attention.all_members(), shards_max);
  const auto streams = served_streams(x);
  std::map<std::string, uint32_t> of_device;
  const auto ranks_of = [&](const pool_settings& pool) {
    return devices_of_ranks(pool.device, pools.model.tensor_parallel);
  };
  if (pools.model.placement == placement::in_process)
    for (const auto& device : ranks_of(pools.model)) of_device[device] += streams;
  std::map<std::string, uint32_t> shards_of;
  for (const auto& [name, cell] : pools.attention.resolved())
    if (cell.placement == placement::in_process) shards_of[cell.device] += cell.members;
  for (const auto& [device, count] : shards_of)
    of_device[device] += std::min(count, shards_max) * (streams + 1);
  const auto of_worker = [&](const pool_settings& pool, const std::set<std::string>& devices,
                             uint32_t count) {
    if (pool.placement == placement::in_process) return;
    for (const auto& device : devices) of_device[device] = std::max(of_device[device], count);
  };
  of_worker(pools.model, ranks_of(pools.model), streams);
  for (const auto& [name, cell] : pools.attention.resolved())
    of_worker(cell, {cell.device}, streams + (cell.parity ? 3 : 1));
  if (pools.prefill.has_seats()) // its replica, its own shard, and an offer to each other shard
    of_worker(pools.prefill, ranks_of(pools.prefill),
              2 * pools.prefill.members + prompt_batches(x) + shards);
  if (pools.prefill_owns_kv() && pools.prefill.placement == placement::in_process)
    of_device[pools.model.device] += pools.prefill.members * (1 + shards);
  for (const auto& [device, count] : of_device)
    if (is_cuda(device) && count > cuda_streams_max)
      found.push_back(
          {{"batching.batches", "pools.attention.members", "pools.prefill.members"},
           device + " would get " + std::to_string(count) + " streams and has queues for "
               + std::to_string(cuda_streams_max)
               + ": a waiting kernel could block the one it waits for",
           "lower batching.batches, or give pools.model and pools.attention devices of their own"});
}

/// Kernels read a cache of 16 bits as it was sent, or round to it from fp32 (gpu/kernels/sets.hpp).
void check_types(const settings& x, std::vector<rule_violation>& found) {
  const auto wire = x.numerics.wire, cache = x.kv.dtype;
  const auto has_16_bits = [](number_type t) {
    return t == number_type::f16 || t == number_type::bf16;
  };
  if (wire == cache || !has_16_bits(wire) || !has_16_bits(cache)) return;
  found.push_back({{"numerics.wire", "kv.dtype"},
                   "one is f16 and the other bf16: no kernel converts between the two",
                   "give numerics.wire and kv.dtype the same type"});
}

void check_listener(const std::string& section, const std::string& listen, bool has_keys,
                    std::vector<rule_violation>& found) {
  const auto address = parse_address(listen);
  if (!address || is_loopback(address->host) || has_keys) return;
  found.push_back(
      {{section + ".listen", section + ".api_keys_file"},
       listen + " can be reached from other hosts, but " + section + ".api_keys_file is not set",
       "listen on 127.0.0.1, or give a file with one key per line"});
}

void check_https(const settings& x, std::vector<rule_violation>& found) {
  if (x.http.tls_certificate.empty() == x.http.tls_key.empty()) return;
  found.push_back({{"http.tls_certificate", "http.tls_key"},
                   "HTTPS needs both; only one is set",
                   "set both of them or none"});
}

/// What parity is made of, and what it is for (decision 23).
void check_parity(const std::string& key, const attention_pool_settings& p,
                  std::vector<rule_violation>& found) {
  if (!p.parity) return;
  if (p.partition == partition::requests)
    found.push_back({{key + ".parity", key + ".partition"},
                     "parity needs partition: heads, where all shards write the same slot; here it "
                     "is requests",
                     "set partition: heads or parity: false"});
  if (p.placement == placement::in_process)
    found.push_back({{key + ".parity", key + ".placement"},
                     "shards of this process are lost together, and their parity with them",
                     "use placement local or remote, or parity: false"});
}

/// CAF's own protocol authenticates nobody: beyond loopback it needs mutual TLS (decision 18).
void check_control(const settings& x, std::vector<rule_violation>& found) {
  const auto& c = x.control;
  const auto given = !c.tls_certificate.empty() + !c.tls_key.empty() + !c.tls_ca.empty();
  if (given != 0 && given != 3)
    found.push_back({{"control.tls_certificate", "control.tls_key", "control.tls_ca"},
                     "mutual TLS needs all three; only " + std::to_string(given) + " is set",
                     "set all of them or none"});
  const auto address = parse_address(c.listen);
  if (address && !is_loopback(address->host) && !c.tls())
    found.push_back(
        {{"control.listen", "control.tls_certificate"},
         c.listen + " can be reached from other hosts, but mutual TLS is not configured",
         "listen on 127.0.0.1, or set control.tls_certificate, tls_key and tls_ca"});
  if (c.dead < 4 * c.heartbeat)
    found.push_back({{"control.dead_seconds", "control.heartbeat_seconds"},
                     "a worker would be declared dead after fewer than four heartbeats",
                     "raise control.dead_seconds or lower control.heartbeat_seconds"});
  if (!x.pools.any(placement::remote)) return;
  if (c.secret_file.empty())
    found.push_back({{"control.secret_file"},
                     "placement: remote needs a secret shared with the workers",
                     "create a file of mode 0400 with 'openssl rand -hex 32' and give it here"});
  if (address && address->port == 0)
    found.push_back({{"control.listen"},
                     "placement: remote needs a fixed port; here it is any",
                     "give control.listen a port"});
  // Links to seats of this host are asked for by those of others.
  const auto data = parse_address(x.net.listen);
  const bool seats_here =
      x.pools.model.placement != placement::remote || x.pools.attention.any(placement::in_process)
      || x.pools.attention.any(placement::local)
      || (x.pools.prefill.has_seats() && x.pools.prefill.placement != placement::remote);
  if (!seats_here || !address || is_loopback(address->host) || !data) return;
  const bool by_six = address->host.find(':') != std::string::npos;
  if (is_loopback(data->host))
    found.push_back({{"net.listen", "control.listen"},
                     "workers of other hosts cannot reach the seats of this one at " + x.net.listen,
                     "set net.listen to "
                         + (by_six ? "[" + address->host + "]:0, or [::]:0"
                                   : address->host + ":0, or 0.0.0.0:0")
                         + " for all addresses of this host"});
  if (by_six && address->host != "::" && data->host == "0.0.0.0")
    found.push_back({{"net.listen", "control.listen"},
                     "workers reach this host by an IPv6 address, but net.listen " + x.net.listen
                         + " accepts IPv4 only",
                     "set net.listen to [::]:0, which accepts both"});
}

} // namespace

std::vector<rule_violation> check(const settings& x) {
  std::vector<rule_violation> found;
  check_listener("http", x.http.listen, !x.http.api_keys_file.empty(), found);
  check_https(x, found);
  check_listener("admin", x.admin.listen, !x.admin.api_keys_file.empty(), found);
  const auto http = parse_address(x.http.listen);
  const auto admin = parse_address(x.admin.listen);
  if (http && admin && http->port == admin->port && http->port != 0 && http->host == admin->host)
    found.push_back({{"admin.listen", "http.listen"},
                     "both listeners are set to " + x.http.listen,
                     "give admin.listen a port of its own"});
  for (const auto& [name, cell] : x.pools.attention.resolved())
    check_parity(x.pools.attention.key_of(name), cell, found);
  if (x.http.connections_per_address_max > x.http.connections_max)
    found.push_back({{"http.connections_per_address_max", "http.connections_max"},
                     std::to_string(x.http.connections_per_address_max)
                         + " connections per address are more than the "
                         + std::to_string(x.http.connections_max) + " of a listener",
                     "lower http.connections_per_address_max"});
  if (const auto all = x.bodies_bytes(); x.http.max_body_bytes > all - all / 4)
    found.push_back({{"limits.bodies_bytes", "http.max_body_bytes"},
                     "large bodies share three quarters of " + std::to_string(all)
                         + " bytes, which is less than one body of "
                         + std::to_string(x.http.max_body_bytes),
                     "raise limits.bodies_bytes or lower http.max_body_bytes"});
  const auto& served = x.model.name;
  for (const auto& alias : x.model.aliases)
    if (alias == served || std::ranges::count(x.model.aliases, alias) > 1) {
      found.push_back({{"model.aliases", "model.name"},
                       "the name " + alias + " is given twice",
                       "name each alias once"});
      break;
    }
  check_control(x, found);
  if (x.pools.distributed() && x.net.transport == transport::in_process)
    found.push_back({{"net.transport"},
                     "in_process cannot connect the processes of pools.*.placement",
                     "use auto"});
  if (!x.pools.distributed() && x.net.transport != transport::automatic
      && x.net.transport != transport::in_process)
    found.push_back({{"net.transport", "pools.model.placement"},
                     "all pools are in this process: there is nothing to connect",
                     "use auto, or placement: local"});
  check_devices(x, found);
  const auto& attention = x.pools.attention;
  check_device_streams(at_most(x), std::max(attention.all_members(), attention.most), found);
  check_autoscaling(x, found);
  check_types(x, found);
  check_mixed_launches(x, found);
  check_batches(x, found);
  check_availability(x, found);
  return found;
}

} // namespace lamella::config
