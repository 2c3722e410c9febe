#include "net/api/reasoning_switches.hpp"

#include <algorithm>

namespace lamella::net {

namespace {

/// Sets a variable that the template reads. False: it does not read it.
bool set(chat_request& to, const std::string& name, json_value value, const api_limits& limits) {
  if (!limits.template_reads || !limits.template_reads(name)) return false;
  const bool said = std::ranges::any_of(to.template_kwargs,
                                        [&](const auto& member) { return member.first == name; });
  if (!said) to.template_kwargs.emplace_back(name, std::move(value));
  return true;
}

std::string known_effort(const std::string& effort) {
  if (effort == "minimal" || effort == "none") return "low";
  return effort == "xhigh" || effort == "max" ? "high" : effort;
}

} // namespace

bool tell_thinking(chat_request& to, bool wanted, const api_limits& limits) {
  bool told = false;
  for (const char* name : {"enable_thinking", "thinking"})
    told = set(to, name, wanted, limits) || told;
  return told;
}

void tell_effort(chat_request& to, const std::string& effort, const std::string& name,
                 const api_limits& limits) {
  bool told = effort == "none" && tell_thinking(to, false, limits);
  told = set(to, "reasoning_effort", known_effort(effort), limits) || told;
  if (told || !limits.template_reads) return;
  to.unknown.insert(std::ranges::upper_bound(to.unknown, name), name);
}

} // namespace lamella::net
