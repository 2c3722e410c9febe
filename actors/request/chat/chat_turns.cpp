#include "actors/request/chat/chat_turns.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <string>
#include <utility>

namespace lamella::actors {

namespace {

using messages = std::vector<net::chat_message>;

/// Appends what a later message says, and its calls.
void join(net::chat_message& to, net::chat_message from) {
  const std::string gap = to.content.empty() || from.content.empty() ? "" : "\n\n";
  if (!to.parts.empty() || !from.parts.empty()) {
    if (to.parts.empty() && !to.content.empty()) to.parts.push_back(to.content);
    if (from.parts.empty() && !from.content.empty()) from.parts.push_back(from.content);
    if (!from.parts.empty()) from.parts.front().insert(0, gap);
    std::ranges::move(from.parts, std::back_inserter(to.parts));
  }
  to.content += gap + from.content;
  if (!from.reasoning.empty())
    to.reasoning += (to.reasoning.empty() ? "" : "\n") + std::move(from.reasoning);
  std::ranges::move(from.tool_calls, std::back_inserter(to.tool_calls));
  to.prefix = from.prefix;
}

/// What the system says where the template shows it: at the beginning, in one message where it
/// takes no more, and before the user's words where it takes none there.
messages with_known_instructions(messages all, const model::chat_abilities& can) {
  messages result;
  const bool knows_system = can.shows("system").any() || !can.shows("user").any();
  net::chat_message late{"user", {}, {}};
  bool leads = true; // nobody but the system has said anything yet
  for (auto& m : all) {
    if (m.role == "developer" && !can.knows_developer) m.role = "system";
    if (m.role == "system" && (!knows_system || (!leads && !can.takes_late_system))) {
      join(late, {"user", std::move(m.content), {}});
      continue;
    }
    if (m.role == "system" && !result.empty() && leads && !can.takes_two_systems) {
      join(result.back(), std::move(m));
      continue;
    }
    if (m.role == "user" && !late.content.empty()) {
      auto said = std::exchange(late, {"user", {}, {}});
      said.name = m.name, said.more = std::move(m.more);
      join(said, std::move(m));
      m = std::move(said);
    }
    leads = leads && m.role == "system";
    result.push_back(std::move(m));
  }
  if (!late.content.empty()) result.push_back(std::move(late));
  return result;
}

/// An answer with several calls as an answer for each, with its result behind it.
messages with_calls_one_by_one(messages all) {
  messages result;
  for (size_t i = 0; i < all.size(); ++i) {
    auto calls = std::move(all[i].tool_calls);
    all[i].tool_calls.clear();
    if (calls.size() < 2) {
      all[i].tool_calls = std::move(calls);
      result.push_back(std::move(all[i]));
      continue;
    }
    messages results;
    for (; i + 1 < all.size() && all[i + 1].role == "tool"; ++i)
      results.push_back(std::move(all[i + 1]));
    auto answer = std::move(all[i - results.size()]);
    for (auto& call : calls) {
      const auto id = call.id;
      answer.tool_calls.push_back(std::move(call));
      result.push_back(std::exchange(answer, {"assistant", {}, {}}));
      const auto first = std::stable_partition(results.begin(), results.end(),
                                               [&](const auto& x) { return x.tool_call_id != id; });
      std::move(first, results.end(), std::back_inserter(result));
      results.erase(first, results.end());
    }
    std::ranges::move(results, std::back_inserter(result));
  }
  return result;
}

/// Whether the template refuses this message behind the one before it.
bool must_join(const net::chat_message& before, const net::chat_message& m,
               const model::chat_abilities& can) {
  if (before.role == "tool" && m.role == "user") return !can.takes_user_behind_result;
  if (before.role != m.role) return false;
  if (m.role == "user") return !can.takes_two_users;
  return m.role == "assistant" && !can.takes_two_answers;
}

} // namespace

std::vector<net::chat_message> with_results_in_order(std::vector<net::chat_message> all) {
  for (size_t i = 0; i < all.size(); ++i) {
    const auto& calls = all[i].tool_calls;
    if (calls.size() < 2) continue;
    const auto first = all.begin() + static_cast<ptrdiff_t>(i) + 1;
    const auto last =
        std::find_if(first, all.end(), [](const auto& m) { return m.role != "tool"; });
    std::ranges::stable_sort(first, last, {}, [&](const net::chat_message& result) {
      return std::ranges::find(calls, result.tool_call_id, &net::tool_call::id) - calls.begin();
    });
  }
  return all;
}

std::vector<net::chat_message> in_known_turns(std::vector<net::chat_message> all,
                                              const model::chat_abilities& can) {
  all = with_known_instructions(std::move(all), can);
  if (!can.takes_two_calls) all = with_calls_one_by_one(std::move(all));
  messages result;
  for (auto& m : all)
    if (!result.empty() && must_join(result.back(), m, can))
      join(result.back(), std::move(m));
    else
      result.push_back(std::move(m));
  return result;
}

std::vector<net::chat_message> with_known_ids(std::vector<net::chat_message> all,
                                              model::call_ids form) {
  if (form == model::call_ids::any) return all;
  std::map<std::string, std::string> known;
  size_t count = 0;
  for (auto& m : all) {
    for (auto& call : m.tool_calls) {
      const auto number = count++;
      auto id = form == model::call_ids::functions
                    ? fmt::format("functions.{}:{}", call.name, number)
                    : fmt::format("call{:05}", number);
      known[call.id] = id;
      call.id = std::move(id);
    }
    if (const auto found = known.find(m.tool_call_id); found != known.end() && m.role == "tool")
      m.tool_call_id = found->second;
  }
  return all;
}

} // namespace lamella::actors
