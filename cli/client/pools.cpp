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

/// "3", "1 -> 3", of a cell "2 by requests", "2 by requests -> 3 by heads".
std::string members_of(const pool_state& x) {
  if (x.under_way() && !x.to_partition.empty()) return recut(x);
  if (x.under_way() && x.from != x.members)
    return cut(x.from, "") + " -> " + cut(x.members, x.partition);
  return cut(x.rolled_back() ? x.from : x.members, x.partition);
}

} // namespace

pool_state pool_state_of(const json_value& x) {
  pool_state result{text_or(x.find("pool"), ""),
                    count_at(x, "from"),
                    count_at(x, "members"),
                    text_or(x.find("state"), ""),
                    text_or(x.find("reason"), ""),
                    text_or(x.find("partition"), ""),
                    text_or(x.find("to_partition"), "")};
  if (result.pool.empty() || result.state.empty())
    throw command_error{exit_failure, "the server's answer says nothing of a pool",
                        "--admin must be the admin.listen of 'lamella serve'"};
  return result;
}

std::string line_of(const pool_state& x) {
  const auto sizes = !x.to_partition.empty() ? recut(x) + ", "
                     : x.from == x.members   ? std::string{}
                                             : fmt::format("{} -> {}, ", x.from, x.members);
  return x.pool + ": " + sizes + x.state + (x.reason.empty() ? "" : ": " + x.reason);
}

std::string pools_page(const json_value& pools) {
  table all{{"POOL", "MEMBERS", "STATE", "REASON"}};
  for (const auto& each : items_of(pools, "pools")) {
    const auto x = pool_state_of(each);
    all.add({x.pool, members_of(x), x.state == "none" ? "-" : x.state, x.reason});
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

bool sits(const json_value& status, const seated& x) {
  const auto now = seat_of_worker(status, x.seat);
  return now && now->incarnation == x.incarnation;
}

} // namespace lamella::cli
