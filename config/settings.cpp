#include "config/settings.hpp"

#include <algorithm>
#include <charconv>

namespace lamella::config {
namespace {

/// The parts of the language that this version cannot run yet. All in this one place: a part that
/// is built removes its lines here and nothing else.
void check_availability(const settings& x, std::vector<rule_violation>& found) {
  // A cell repeats what its base says; only what it says differently is reported again.
  const auto pool = [&](const std::string& key, const pool_settings& p, const pool_settings* base) {
    if (p.device.starts_with("cuda") && p.placement != placement::in_process
        && !(base && base->device == p.device))
      found.push_back({{key + ".device", key + ".placement"},
                       p.device + " of a worker process is not available in this version",
                       "use placement in_process, or device host"});
    if (p.spares != 0 && p.placement == placement::in_process
        && !(base && base->spares == p.spares))
      found.push_back({{key + ".spares", key + ".placement"},
                       "a pool of this process has no spares: what ends it ends them",
                       "use placement local or remote, or spares 0"});
  };
  pool("pools.model", x.pools.model, nullptr);
  pool("pools.attention", x.pools.attention, nullptr);
  for (const auto& [name, cell] : x.pools.attention.cells)
    pool("pools.attention.cells." + name, cell, &x.pools.attention);
  pool("pools.prefill", x.pools.prefill, nullptr);
  if (const auto& p = x.pools.prefill;
      p.device.starts_with("cuda") && p.placement == placement::in_process)
    found.push_back(
        {{"pools.prefill.device"},
         p.device + " is not available in this version: prompts of this process run on replicas",
         "use pools.model.device"});
  if (x.pools.model.tensor_parallel != 1)
    found.push_back(
        {{"pools.model.tensor_parallel"},
         std::to_string(x.pools.model.tensor_parallel) + " is not available in this version",
         "use 1"});
  if (x.batching.pipeline != pipeline::fixed)
    found.push_back(
        {{"batching.pipeline"}, "rotational is not available in this version", "use fixed"});
  const auto tier = x.net.transport;
  if (tier != transport::automatic && tier != transport::in_process && tier != transport::shm
      && tier != transport::tcp && tier != transport::verbs_staged)
    found.push_back(
        {{"net.transport"},
         "only auto, in_process, shm, verbs_staged and tcp are available in this version",
         "use auto"});
}

void check_listener(const std::string& section, const std::string& listen, bool has_keys,
                    std::vector<rule_violation>& found) {
  const auto address = parse_address(listen);
  if (!address || is_loopback(address->host) || has_keys) return;
  found.push_back(
      {{section + ".listen", section + ".api_keys_file"},
       listen + " can be reached from other hosts, but " + section + ".api_keys_file is not set",
       "listen on 127.0.0.1, or name a file with one key per line"});
}

/// What parity is made of, and what it is for (decision 23).
void check_parity(const std::string& key, const attention_pool_settings& p, const settings& x,
                  std::vector<rule_violation>& found) {
  if (!p.parity) return;
  if (p.partition == partition::requests)
    found.push_back(
        {{key + ".parity", key + ".partition"},
         "parity needs partition: heads, where all members write the same slot; here it "
         "is requests",
         "set partition: heads or parity: false"});
  if (p.placement == placement::in_process)
    found.push_back({{key + ".parity", key + ".placement"},
                     "members of this process are lost together: parity would be lost with them",
                     "use placement local or remote, or parity: false"});
  if (x.pools.prefill.attention == prefill_attention::own)
    found.push_back({{key + ".parity", "pools.prefill.attention"},
                     "parity is made of what is sent to the shards; K and V that shards pull from "
                     "prefill workers have none",
                     "set pools.prefill.attention: shards or parity: false"});
  if (x.numerics.wire != x.kv.dtype)
    found.push_back({{key + ".parity", "numerics.wire", "kv.dtype"},
                     "parity needs K and V in the cache as they are on the wire",
                     "give numerics.wire and kv.dtype the same type, or set parity: false"});
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
                     "placement: remote needs a secret that the workers know",
                     "make one with 'openssl rand -hex 32', mode 0400, and name it here"});
  if (address && address->port == 0)
    found.push_back({{"control.listen"},
                     "placement: remote needs a port that the workers know; here it is any",
                     "give control.listen a port"});
}

} // namespace

std::map<std::string, attention_pool_settings> attention_pools_settings::resolved() const {
  if (!cells.empty()) return cells;
  return {{"main", *this}};
}

std::vector<rule_violation> check(const settings& x) {
  std::vector<rule_violation> found;
  check_listener("http", x.http.listen, !x.http.api_keys_file.empty(), found);
  check_listener("admin", x.admin.listen, !x.admin.api_keys_file.empty(), found);
  const auto http = parse_address(x.http.listen);
  const auto admin = parse_address(x.admin.listen);
  if (http && admin && http->port == admin->port && http->port != 0 && http->host == admin->host)
    found.push_back({{"admin.listen", "http.listen"},
                     "both listeners are told to use " + x.http.listen,
                     "give admin.listen a port of its own"});
  // Without cells of their own, the options beside them are the pool that is built.
  for (const auto& [name, cell] : x.pools.attention.cells)
    check_parity("pools.attention.cells." + name, cell, x, found);
  if (x.pools.attention.cells.empty()) check_parity("pools.attention", x.pools.attention, x, found);
  if (x.http.connections_per_address_max > x.http.connections_max)
    found.push_back({{"http.connections_per_address_max", "http.connections_max"},
                     std::to_string(x.http.connections_per_address_max)
                         + " connections per address are more than the "
                         + std::to_string(x.http.connections_max) + " in total",
                     "lower http.connections_per_address_max"});
  const auto& served = x.model.name;
  for (const auto& alias : x.model.aliases)
    if (alias == served || std::ranges::count(x.model.aliases, alias) > 1) {
      found.push_back({{"model.aliases", "model.name"},
                       "the name " + alias + " is there twice",
                       "name each alias once"});
      break;
    }
  if (x.metrics.compat_deprecated && std::ranges::count(x.metrics.compat, "vllm") == 0)
    found.push_back({{"metrics.compat_deprecated", "metrics.compat"},
                     "the old names belong to the vllm set, which is off",
                     "add vllm to metrics.compat or turn metrics.compat_deprecated off"});
  check_control(x, found);
  if (x.pools.distributed() && x.net.transport == transport::in_process)
    found.push_back({{"net.transport"},
                     "in_process cannot connect the processes that pools.*.placement asks for",
                     "use auto"});
  if (!x.pools.distributed()
      && (x.net.transport == transport::shm || x.net.transport == transport::tcp
          || x.net.transport == transport::verbs_staged))
    found.push_back({{"net.transport", "pools.model.placement"},
                     "all pools are in this process, so there is nothing to connect",
                     "use auto, or placement: local"});
  check_availability(x, found);
  return found;
}

std::optional<host_and_port> parse_address(const std::string& text) {
  const auto colon = text.rfind(':');
  if (colon == std::string::npos || colon == 0) return std::nullopt;
  std::string host = text.substr(0, colon);
  if (host.front() == '[') {
    if (host.size() < 4 || host.back() != ']') return std::nullopt;
    host = host.substr(1, host.size() - 2);
    if (host.find_first_not_of("0123456789abcdefABCDEF:.") != std::string::npos
        || host.find(':') == std::string::npos)
      return std::nullopt;
  } else if (host.size() > 253
             || host.find_first_not_of(
                    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_")
                    != std::string::npos) {
    return std::nullopt;
  }
  uint16_t port = 0;
  const char* first = text.data() + colon + 1;
  const char* last = text.data() + text.size();
  const auto [end, failure] = std::from_chars(first, last, port);
  if (failure != std::errc{} || end != last) return std::nullopt;
  return host_and_port{host, port};
}

bool is_loopback(const std::string& host) {
  if (host == "localhost" || host == "::1") return true;
  // 127.0.0.0/8, written as four numbers; "127.example.org" is a name and not meant.
  return host.starts_with("127.") && host.find_first_not_of("0123456789.") == std::string::npos;
}

} // namespace lamella::config
