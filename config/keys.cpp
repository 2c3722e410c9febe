/// Finding options by key, in cells too, and the names of keys elsewhere.
#include "config/options.hpp"

#include <array>

namespace lamella::config {

std::span<const std::pair<std::string, std::string>> aliases() {
  static const std::array<std::pair<std::string, std::string>, 1> all{
      {{"pools.model.replicas", "pools.model.members"}}};
  return all;
}

const option* find_option(std::string_view key) {
  for (const auto& [alias, target] : aliases())
    if (key == alias) return find_option(target);
  for (const auto& x : options())
    if (x.key == key) return &x;
  return nullptr;
}

std::optional<cell_key> split_cell_key(std::string_view key) {
  constexpr std::string_view prefix = "pools.attention.cells.";
  if (!key.starts_with(prefix)) return std::nullopt;
  const auto rest = key.substr(prefix.size());
  const auto dot = rest.find('.');
  if (dot == std::string_view::npos) return std::nullopt;
  return cell_key{std::string{rest.substr(0, dot)},
                  "pools.attention." + std::string{rest.substr(dot + 1)}};
}

std::string check_cell_name(const std::string& name) {
  if (name.empty() || name.size() > 32) return "is not 1 to 32 characters long";
  if (name.front() < 'a' || name.front() > 'z') return "does not start with a letter a to z";
  if (name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") != std::string::npos)
    return "may only have a to z, 0 to 9 and _";
  if (name.find("__") != std::string::npos) return "may not have two underscores in a row";
  return {};
}

value get_in_cell(const option& x, const attention_pool_settings& cell) {
  settings carrier;
  static_cast<attention_pool_settings&>(carrier.pools.attention) = cell;
  return x.get(carrier);
}

void set_in_cell(const option& x, attention_pool_settings& cell, const value& v) {
  settings carrier;
  static_cast<attention_pool_settings&>(carrier.pools.attention) = cell;
  x.set(carrier, v);
  cell = carrier.pools.attention;
}

std::string environment_name(std::string_view key) {
  std::string name = "LAMELLA_";
  for (const char c : key) {
    if (c == '.')
      name += "__";
    else
      name += (c >= 'a' && c <= 'z') ? static_cast<char>(c - 'a' + 'A') : c;
  }
  return name;
}

} // namespace lamella::config
