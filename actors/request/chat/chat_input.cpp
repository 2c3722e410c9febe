#include "actors/request/chat/chat_input.hpp"

#include "actors/request/chat/chat_turns.hpp"
#include "actors/request/chat/tool_prompt.hpp"

#include <spdlog/spdlog.h>

#include <string>
#include <utility>

namespace lamella::actors {

namespace {

model::template_data as_template_data(const json_value& x) {
  if (const auto* b = x.get_if<bool>()) return *b;
  if (const auto* i = x.get_if<int64_t>()) return *i;
  if (const auto* u = x.get_if<uint64_t>()) return big_integer{std::to_string(*u)};
  if (const auto* big = x.get_if<big_integer>()) return *big;
  if (const auto* d = x.get_if<double>()) return *d;
  if (const auto* s = x.get_if<std::string>()) return *s;
  if (const auto* a = x.get_if<json_value::array>()) {
    model::template_data::list list;
    for (const auto& item : *a) list.push_back(as_template_data(item));
    return list;
  }
  if (const auto* o = x.get_if<json_value::object>()) {
    model::template_data::object object;
    for (const auto& [key, value] : *o) object.emplace_back(key, as_template_data(value));
    return object;
  }
  return {};
}

/// Most templates write arguments as JSON themselves; what is no JSON is text to them.
model::template_data arguments_of(const net::tool_call& call, bool as_text) {
  if (as_text) return call.arguments.empty() ? "{}" : call.arguments;
  if (call.arguments.empty()) return model::template_data::object{};
  try {
    return as_template_data(parse_json(call.arguments));
  } catch (const json_syntax_error&) {
    return call.arguments;
  }
}

model::template_data::list calls_of(const net::chat_message& m, bool as_text) {
  model::template_data::list calls;
  for (const auto& x : m.tool_calls)
    calls.push_back(model::template_data::object{
        {"id", x.id},
        {"type", "function"},
        {"function",
         model::template_data::object{{"name", x.name}, {"arguments", arguments_of(x, as_text)}}}});
  return calls;
}

/// What a message says, in a form that the template shows of this role.
model::template_data content_of(const net::chat_message& m, model::content_forms shown) {
  const bool in_parts = shown.parts && (!m.parts.empty() || !shown.text);
  if (!in_parts) return m.content;
  model::template_data::list parts;
  const auto add = [&](const std::string& text) {
    parts.push_back(model::template_data::object{{"type", "text"}, {"text", text}});
  };
  for (const auto& text : m.parts) add(text);
  if (m.parts.empty()) add(m.content);
  return parts;
}

model::template_data entry_of(const net::chat_message& m, const model::chat_abilities& can,
                              bool calls_as_text) {
  model::template_data::object entry{{"role", m.role},
                                     {"content", content_of(m, can.shows(m.role))}};
  if (!m.name.empty()) entry.emplace_back("name", m.name);
  if (!m.tool_calls.empty()) entry.emplace_back("tool_calls", calls_of(m, calls_as_text));
  if (!m.tool_call_id.empty()) entry.emplace_back("tool_call_id", m.tool_call_id);
  if (!m.reasoning.empty()) { // templates know it by any of these names
    entry.emplace_back("reasoning_content", m.reasoning);
    entry.emplace_back("reasoning", m.reasoning);
    // gpt-oss's refuses it beside what is said before a call.
    if (m.tool_calls.empty() || (m.content.empty() && m.parts.empty()))
      entry.emplace_back("thinking", m.reasoning);
  }
  for (const auto& [key, value] : m.more) entry.emplace_back(key, as_template_data(value));
  return entry;
}

} // namespace

std::string special_text(const service& s, std::optional<model::token_id> id) {
  return id ? std::string{s.text->token_bytes(*id)} : std::string{};
}

void use_chat_template(service& s, const std::string& source) {
  if (source.empty()) return;
  try {
    s.chat = model::chat_template::compile(source);
  } catch (const model::chat_template_error& e) {
    s.chat_fault = "the model's chat template cannot be used: " + e.told();
    spdlog::warn("{}", s.chat_fault);
    return;
  }
  for (const auto& what : s.chat->absent())
    spdlog::warn("the model's chat template refuses chats that reach its {}", what);
  s.chat_source = source;
  const auto bos = special_text(s, s.text->bos()), eos = special_text(s, s.text->eos());
  s.chat_can = model::abilities_of(*s.chat, bos, eos);
  s.tool_calls = model::calls_of(*s.chat, bos, eos);
  s.reasoning = model::reasoning_of(*s.chat, bos, eos);
  const auto user = s.chat_can.shows("user");
  s.chat_hides_users = !user.any();
  if (s.chat_hides_users)
    spdlog::warn("the model's chat template does not render user messages: chats are refused where "
                 "it leaves them out");
  spdlog::info("chat template tools={} system={} developer={} parts={} reasoning={}",
               s.tool_calls.template_writes ? "shown" : "explained",
               s.chat_can.shows("system").any() ? "shown" : "as user",
               s.chat_can.knows_developer ? "shown" : "as system", user.parts ? "shown" : "as text",
               s.reasoning.any() ? s.reasoning.begin : "none");
}

model::template_input chat_input(const service& s, const std::vector<net::chat_message>& messages,
                                 const net::tool_use& tools, const json_value::object& more,
                                 bool add_generation_prompt) {
  model::template_input input;
  const auto& can = s.chat_can;
  const bool native = s.tool_calls.template_writes;
  // Without tools nothing is explained: earlier calls may stand in a form that we could not read.
  const bool as_they_are = native || (!tools.active() && can.shows_calls);
  // A template that teaches a form that we do not read must not: ours is explained instead.
  const bool teaches_another = !native && can.shows_tools && can.shows_calls;
  model::template_data::list list;
  auto told = with_results_in_order(messages);
  told = as_they_are ? with_known_ids(std::move(told), can.ids)
                     : told_as_text(told, tools, s.tool_calls);
  for (const auto& m : in_known_turns(std::move(told), can))
    list.push_back(entry_of(m, can, s.tool_calls.takes_texts));
  input.messages = std::move(list);
  input.add_generation_prompt = add_generation_prompt;
  input.bos_token = special_text(s, s.text->bos());
  input.eos_token = special_text(s, s.text->eos());
  // As transformers has it, what is not there is None, not undefined.
  model::template_data told_tools;
  if (tools.active() && !teaches_another) {
    model::template_data::list definitions;
    for (const auto& x : tools.tools) definitions.push_back(as_template_data(x.definition));
    told_tools = std::move(definitions);
  }
  input.more.emplace_back("tools", std::move(told_tools));
  input.more.emplace_back("documents", model::template_data{});
  for (const auto& [key, value] : more) input.more.emplace_back(key, as_template_data(value));
  input.now = std::chrono::floor<std::chrono::seconds>(s.world.date());
  return input;
}

} // namespace lamella::actors
