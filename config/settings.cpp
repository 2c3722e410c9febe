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
    if (p.placement != placement::in_process && !(base && base->placement == p.placement))
      found.push_back({{key + ".placement"},
                       std::string{p.placement == placement::local ? "local" : "remote"}
                           + " is not available in this version",
                       "use in_process"});
    if (p.device.starts_with("cuda") && !(base && base->device == p.device))
      found.push_back(
          {{key + ".device"}, p.device + " is not available in this version", "use host or auto"});
    if (p.spares != 0 && !(base && base->spares == p.spares))
      found.push_back({{key + ".spares"},
                       std::to_string(p.spares) + " is not available in this version",
                       "use 0"});
  };
  const auto attention = [&](const std::string& key, const attention_pool_settings& p,
                             const attention_pool_settings* base) {
    pool(key, p, base);
    if (p.parity != 0 && p.partition == partition::heads && !(base && base->parity == p.parity))
      found.push_back({{key + ".parity"},
                       std::to_string(p.parity) + " is not available in this version",
                       "use 0"});
  };
  pool("pools.model", x.pools.model, nullptr);
  attention("pools.attention", x.pools.attention, nullptr);
  for (const auto& [name, cell] : x.pools.attention.cells)
    attention("pools.attention.cells." + name, cell, &x.pools.attention);
  pool("pools.prefill", x.pools.prefill, nullptr);
  if (x.pools.model.tensor_parallel != 1)
    found.push_back(
        {{"pools.model.tensor_parallel"},
         std::to_string(x.pools.model.tensor_parallel) + " is not available in this version",
         "use 1"});
  if (x.batching.pipeline != pipeline::fixed)
    found.push_back(
        {{"batching.pipeline"}, "rotational is not available in this version", "use fixed"});
  if (x.net.transport != transport::automatic && x.net.transport != transport::in_process)
    found.push_back(
        {{"net.transport"}, "only auto and in_process are available in this version", "use auto"});
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
  const auto parity = [&](const std::string& key, const attention_pool_settings& p) {
    if (p.parity != 0 && p.partition == partition::requests)
      found.push_back(
          {{key + ".parity", key + ".partition"},
           "parity needs partition: heads, where all members write the same slot; here it is "
           "requests",
           "set partition: heads or parity: 0"});
  };
  // Without cells of their own, the options beside them are the pool that is built.
  for (const auto& [name, cell] : x.pools.attention.cells)
    parity("pools.attention.cells." + name, cell);
  if (x.pools.attention.cells.empty()) parity("pools.attention", x.pools.attention);
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
