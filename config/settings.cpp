#include "config/settings.hpp"

#include <algorithm>
#include <charconv>

namespace lamella::config {

named_list<attention_pool_settings> attention_pools_settings::resolved() const {
  if (!cells.empty()) return cells;
  named_list<attention_pool_settings> one;
  one.append("main", *this);
  return one;
}

uint32_t attention_pools_settings::all_members() const {
  uint32_t sum = 0;
  for (const auto& [name, cell] : resolved()) sum += cell.members;
  return sum;
}

std::string attention_pools_settings::key_of(const std::string& name) const {
  return "pools.attention" + (cells.empty() ? "" : ".cells." + name);
}

std::string attention_pools_settings::seats_of(const std::string& cell) const {
  const auto alike = [&own = cells.at(cell)](const pool_settings& x) {
    return x.device == own.device && x.placement == own.placement && x.threads == own.threads;
  };
  if (alike(*this)) return {};
  return std::ranges::find_if(cells, [&](const auto& x) { return alike(x.second); })->first;
}

bool attention_pools_settings::any(config::placement where) const {
  return std::ranges::any_of(resolved(),
                             [&](const auto& x) { return x.second.placement == where; });
}

bool attention_pools_settings::any_parity() const {
  return std::ranges::any_of(resolved(), [](const auto& x) { return x.second.parity; });
}

bool attention_pools_settings::any_cuda() const {
  return std::ranges::any_of(resolved(), [](const auto& x) { return is_cuda(x.second.device); });
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
