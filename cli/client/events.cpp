#include "cli/client/events.hpp"

#include "base/json_writer.hpp"
#include "cli/client.hpp"
#include "cli/client/table.hpp"

#include <charconv>
#include <map>

namespace lamella::cli {

event_lines event_lines_of(const json_value& reply, bool json) {
  event_lines result;
  const auto* newest = reply.find("newest");
  if (newest == nullptr || reply.find("events") == nullptr)
    throw command_error{exit_failure, "the server's answer says nothing of events",
                        "--admin must be the admin.listen of a 'lamella serve' of this version"};
  result.newest = static_cast<uint64_t>(number_or(newest, 0));
  result.missed = static_cast<uint64_t>(number_or(reply.find("missed"), 0));
  for (const auto& x : items_of(reply, "events"))
    result.lines.push_back(
        json ? to_json(x) : text_or(x.find("time"), "-") + "  " + text_or(x.find("text"), ""));
  return result;
}

uint64_t event_age(const std::string& text) {
  static const std::map<std::string, uint64_t> units{
      {"", 1}, {"s", 1}, {"m", 60}, {"h", 3600}, {"d", 86'400}};
  constexpr uint64_t most = 10'000;
  uint64_t number = 0;
  const auto* end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, number);
  const auto unit = units.find(std::string{at, end});
  if (error != std::errc{} || number == 0 || number > most || unit == units.end())
    throw command_error{exit_usage, "--since: '" + text + "' is not a time, of 1s to 10000d",
                        "write it as 90s, 10m, 2h or 1d"};
  return number * unit->second;
}

} // namespace lamella::cli
