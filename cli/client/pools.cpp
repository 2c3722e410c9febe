#include "cli/client/pools.hpp"

#include "cli/client/table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace lamella::cli {

namespace {

uint32_t count_at(const json_value& x, std::string_view name) {
  return static_cast<uint32_t>(number_or(x.find(name), 0));
}

/// "2 by requests", "2".
std::string cut(uint32_t members, const std::string& by) {
  return std::to_string(members) + (by.empty() ? "" : " by " + by);
}

/// "2 by requests -> 3 by heads"
std::string recut(const pool_state& x) {
  return cut(x.from, x.partition) + " -> " + cut(x.members, x.to_partition);
}

/// "3", "1 -> 3", "1 of 3", of a cell "2 by requests", "2 by requests -> 3 by heads".
std::string members_of(const pool_state& x) {
  const bool comes = x.under_way() || x.queued();
  if (comes && !x.to_partition.empty()) return recut(x);
  if (comes && x.from != x.members) return cut(x.from, "") + " -> " + cut(x.members, x.partition);
  if (x.is_short()) return cut(x.from, "") + " of " + cut(x.members, x.partition);
  return cut(x.rolled_back() ? x.from : x.members, x.partition);
}

uint64_t bytes_at(const json_value& x, std::string_view name) {
  return static_cast<uint64_t>(number_or(x.find(name), 0));
}

/// "256 MiB", "1000000 bytes"; 0: "auto".
std::string kv_text(uint64_t bytes) {
  constexpr uint64_t mib = 1 << 20;
  if (bytes == 0) return "auto";
  return bytes % mib == 0 ? fmt::format("{} MiB", bytes / mib) : fmt::format("{} bytes", bytes);
}

/// "256 MiB", "256 MiB -> 512 MiB", "-".
std::string kv_of(const pool_state& x) {
  if (x.changes_kv()) return kv_text(x.kv_bytes) + " -> " + kv_text(*x.to_kv_bytes);
  return x.kv_bytes > 0 ? kv_text(x.kv_bytes) : "-";
}

} // namespace

pool_state pool_state_of(const json_value& x) {
  pool_state result{text_or(x.find("pool"), ""),
                    count_at(x, "from"),
                    count_at(x, "members"),
                    text_or(x.find("state"), ""),
                    text_or(x.find("reason"), ""),
                    text_or(x.find("partition"), ""),
                    text_or(x.find("to_partition"), ""),
                    bytes_at(x, "kv_bytes"),
                    {}};
  if (x.find("to_kv_bytes") != nullptr) result.to_kv_bytes = bytes_at(x, "to_kv_bytes");
  if (result.pool.empty() || result.state.empty())
    throw command_error{exit_failure, "the server's answer says nothing of a pool",
                        "--admin must be the admin.listen of 'lamella serve'"};
  return result;
}

std::string line_of(const pool_state& x) {
  const auto sizes = !x.to_partition.empty() ? recut(x) + ", "
                     : x.from == x.members   ? std::string{}
                                             : fmt::format("{} -> {}, ", x.from, x.members);
  const auto kv = x.changes_kv() ? "KV each " + kv_of(x) + ", " : std::string{};
  return x.pool + ": " + sizes + kv + x.state + (x.reason.empty() ? "" : ": " + x.reason);
}

std::string pools_page(const json_value& pools) {
  std::vector<pool_state> states;
  for (const auto& each : items_of(pools, "pools")) states.push_back(pool_state_of(each));
  const bool with_kv = std::ranges::any_of(
      states, [](const pool_state& x) { return x.kv_bytes > 0 || x.changes_kv(); });
  table all{with_kv ? std::vector<std::string>{"POOL", "MEMBERS", "KV EACH", "STATE", "REASON"}
                    : std::vector<std::string>{"POOL", "MEMBERS", "STATE", "REASON"}};
  for (const auto& x : states) {
    std::vector<std::string> row{x.pool, members_of(x)};
    if (with_kv) row.push_back(kv_of(x));
    row.push_back(x.state == "none" ? "-" : x.state);
    row.push_back(x.reason);
    all.add(std::move(row));
  }
  return all.text();
}

wanted_size wanted_size_of(const std::string& text) {
  const auto equals = text.find('=');
  wanted_size result{text.substr(0, equals), 0};
  const auto number = equals == std::string::npos ? std::string{} : text.substr(equals + 1);
  const auto end = number.data() + number.size();
  const auto [parsed, failure] = std::from_chars(number.data(), end, result.members);
  if (result.pool.empty() || number.empty() || failure != std::errc{} || parsed != end)
    throw command_error{
        exit_usage, "'" + text + "' is not POOL=N",
        "write it as attention=3; pools are model, attention and prefill, and a cell is "
        "attention/NAME"};
  return result;
}

std::optional<seated> seat_of_worker(const json_value& status, const std::string& worker) {
  for (const auto& w : items_of(status, "workers"))
    if (const auto seat = text_or(w.find("seat"), "");
        text_or(w.find("name"), "") == worker || seat == worker)
      return seated{seat, count_at(w, "incarnation")};
  return std::nullopt;
}

bool stays(const json_value& status, const std::string& seat) {
  for (const auto& w : items_of(status, "workers")) {
    if (text_or(w.find("seat"), "") != seat) continue;
    const auto* found = w.find("draining");
    const auto* drains = found == nullptr ? nullptr : found->get_if<bool>();
    return drains != nullptr && !*drains;
  }
  return false;
}

bool sits(const json_value& status, const seated& x) {
  const auto now = seat_of_worker(status, x.seat);
  return now && now->incarnation == x.incarnation;
}

} // namespace lamella::cli
