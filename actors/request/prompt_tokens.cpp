#include "actors/request/prompt_tokens.hpp"

#include "actors/request/chat/chat_input.hpp"
#include "actors/request/response_store.hpp"
#include "base/json_writer.hpp"
#include "net/api/api_response.hpp"
#include "net/api/messages_request.hpp"
#include "net/api/messages_writer.hpp"
#include "net/api/unsupported_fields.hpp"
#include "net/http/api_error.hpp"

#include <algorithm>

namespace lamella::actors {

namespace {

/// Is the text that of a JSON object?
bool is_object(const std::string& text) {
  try {
    return parse_json(text).get_if<json_value::object>() != nullptr;
  } catch (const json_syntax_error&) {
    return false;
  }
}

/// The same conversation with other arguments than objects within one, for templates that read
/// members: a call that was cut off once must not end its conversation. Nothing where all are
/// objects.
std::vector<net::chat_message> with_object_arguments(std::vector<net::chat_message> messages) {
  bool changed = false;
  for (auto& m : messages)
    for (auto& call : m.tool_calls) {
      if (call.arguments.empty() || is_object(call.arguments)) continue;
      call.arguments = to_json(json_value::object{{"arguments", call.arguments}});
      changed = true;
    }
  if (!changed) messages.clear();
  return messages;
}

/// Of a template that is known to leave out what users say: refuses a prompt without it.
void check_shown(const std::vector<model::text_segment>& segments,
                 const std::vector<net::chat_message>& messages) {
  std::string prompt;
  for (const auto& x : segments) prompt += x.text;
  constexpr const char* blanks = " \n\r\t";
  for (const auto& m : messages) {
    const auto first = m.content.find_first_not_of(blanks);
    if (m.role != "user" || first == m.content.npos) continue;
    const auto line = m.content.substr(first, m.content.find('\n', first) - first);
    if (prompt.find(line.substr(0, line.find_last_not_of(blanks) + 1)) == prompt.npos)
      throw net::invalid_value("messages", "the model's chat template leaves out what users say; "
                                           "use /v1/completions");
  }
}

/// Stands behind the text that an answer goes on with while the template lays it out: templates
/// trim texts, and write more behind the last one.
constexpr std::string_view end_mark = "\x01the answer goes on here\x01";

std::vector<net::chat_message> with_mark(std::vector<net::chat_message> messages) {
  auto& last = messages.back();
  last.content += end_mark;
  if (!last.parts.empty()) last.parts.back() += end_mark;
  return messages;
}

/// The segments up to the mark.
void cut_at_mark(std::vector<model::text_segment>& segments) {
  while (!segments.empty()) {
    auto& text = segments.back().text;
    if (const auto at = text.rfind(end_mark); at != text.npos) {
      text.resize(at);
      return;
    }
    segments.pop_back();
  }
  throw net::invalid_value("messages", "the model's chat template does not show the last message "
                                       "as it is, so that no answer can continue it");
}

/// Bounds of the rendering of a conversation: what a template writes grows with what it is given.
model::template_limits limits_for(const std::vector<net::chat_message>& messages,
                                  const net::tool_use& tools) {
  constexpr uint64_t copies = 4, held = 16, bytes_of_a_step = 4;
  const uint64_t given = bytes_of(messages) + (tools.active() ? tools.key().size() : 0);
  model::template_limits x;
  x.output_bytes += copies * given;
  x.memory_bytes += held * given;
  x.steps += given / bytes_of_a_step;
  return x;
}

/// A text of so many tokens at least, where `most` are taken.
void check_length(uint64_t fewest, uint64_t most, const char* field) {
  if (fewest > most) throw net::prompt_cannot_fit(fewest, most, field);
}

void add_bos(const service& s, std::vector<model::token_id>& ids) {
  const auto bos = s.text->bos();
  if (s.text->adds_bos() && bos && (ids.empty() || ids.front() != *bos))
    ids.insert(ids.begin(), *bos);
}

} // namespace

std::vector<model::token_id> chat_tokens(const service& s,
                                         const std::vector<net::chat_message>& messages,
                                         const net::tool_use& tools, const json_value::object& more,
                                         net::prompt_end end, uint64_t most) {
  if (!s.chat)
    throw net::invalid_value("messages", s.chat_fault.empty()
                                             ? "the model has no chat template; use /v1/completions"
                                             : s.chat_fault);
  const bool continues = end == net::prompt_end::continues;
  std::vector<model::text_segment> segments;
  try {
    const auto marked = continues ? with_mark(messages) : std::vector<net::chat_message>{};
    for (auto& x : s.chat->render(chat_input(s, continues ? marked : messages, tools, more,
                                             end == net::prompt_end::asks),
                                  limits_for(messages, tools)))
      segments.push_back({std::move(x.text), x.trusted});
  } catch (const model::chat_template_error& e) {
    const auto other = with_object_arguments(messages);
    if (!other.empty() && e.why() == model::chat_template_error::kind::runtime)
      return chat_tokens(s, other, tools, more, end, most);
    throw net::invalid_value("messages", "the chat template rejects the messages: " + e.told());
  }
  if (continues) cut_at_mark(segments);
  if (s.chat_hides_users && most != any_length) check_shown(segments, messages);
  check_length(s.text->fewest_tokens(segments), most, "messages");
  auto ids = s.text->encode(segments);
  add_bos(s, ids);
  return ids;
}

std::vector<model::token_id> prompt_tokens(const service& s, const net::prompt_input& prompt,
                                           model::special markers, bool add_special_tokens,
                                           uint64_t most) {
  if (const auto* ids = std::get_if<std::vector<uint32_t>>(&prompt)) {
    for (auto id : *ids)
      if (id >= s.text->vocabulary())
        throw net::invalid_value("prompt", "token id " + std::to_string(id)
                                               + " is outside the vocabulary of "
                                               + std::to_string(s.text->vocabulary()));
    return *ids;
  }
  const auto& text = std::get<std::string>(prompt);
  check_length(s.text->fewest_tokens(text), most, "prompt");
  auto ids = s.text->encode(text, markers);
  if (add_special_tokens) add_bos(s, ids);
  return ids;
}

std::string note_unknown(const service& s, const std::vector<std::string>& names) {
  for (const auto& name : names) s.metrics->unknown_param(name);
  return net::header_list(names);
}

token_answer tokenize(const service& s, const std::string& body) {
  const auto request = net::parse_tokenize_request(body, s.rules.limits);
  check_model(s, request.model);
  const auto ids =
      request.prompt
          ? prompt_tokens(s, *request.prompt, request.markers, request.add_special_tokens)
          : chat_tokens(s, request.messages, request.tools, request.template_kwargs, request.end);
  std::vector<std::string> strings;
  if (request.return_token_strs)
    for (auto id : ids) strings.emplace_back(s.text->token_bytes(id));
  return {net::tokenize_body(ids, tokens_of_a_sequence(s),
                             request.return_token_strs ? &strings : nullptr),
          note_unknown(s, request.unknown)};
}

token_answer detokenize(const service& s, const std::string& body) {
  const auto request = net::parse_detokenize_request(body, s.rules.limits);
  check_model(s, request.model);
  for (auto id : request.tokens)
    if (id >= s.text->vocabulary())
      throw net::invalid_value("tokens", "token id " + std::to_string(id)
                                             + " is outside the vocabulary of "
                                             + std::to_string(s.text->vocabulary()));
  return {net::detokenize_body(s.text->decode(request.tokens)), note_unknown(s, request.unknown)};
}

token_answer count_tokens(const service& s, const std::string& body) {
  const auto request = net::parse_count_tokens_request(body, s.rules.limits);
  check_model(s, request.model);
  const auto ids =
      chat_tokens(s, request.messages, request.tools, request.template_kwargs, request.end);
  return {net::token_count_body(ids.size()), note_unknown(s, request.unknown)};
}

token_answer tokenizer_info(const service& s, const std::string&) {
  const auto bos = special_text(s, s.text->bos()), eos = special_text(s, s.text->eos());
  return {net::tokenizer_info_body(
      {bos, eos, s.chat_source, s.text->adds_bos(), tokens_of_a_sequence(s)})};
}

} // namespace lamella::actors
