#include "cli/bench/bench_request.hpp"

#include "base/json_writer.hpp"

namespace lamella::cli {

using std::chrono::nanoseconds;

/// What is sent; `exact` asks the server to stop at the token limit and nowhere before.
std::string request_body(const bench_serve_options& x, const bench_item& item, bool exact) {
  json_writer out;
  out.begin_object().member("model", x.model);
  if (x.endpoint == bench_endpoint::chat) {
    const auto say = [&](const char* who, const std::string& what) {
      out.begin_object().member("role", who).member("content", what).end_object();
    };
    out.key("messages").begin_array();
    for (const auto& turn : item.before) {
      say("user", turn.question);
      say("assistant", turn.answer);
    }
    say("user", item.prompt);
    out.end_array();
  } else {
    out.member("prompt", item.prompt);
  }
  out.member("max_tokens", item.output_tokens).member("temperature", 0).member("stream", true);
  out.key("stream_options").begin_object().member("include_usage", true).end_object();
  if (exact) out.member("ignore_eos", true).member("min_tokens", item.output_tokens);
  return out.end_object().take();
}

std::string path_of(bench_endpoint endpoint) {
  return endpoint == bench_endpoint::chat ? "/v1/chat/completions" : "/v1/completions";
}

/// One event of a stream, into its record. An error event and what is not JSON set the error.
void read_event(bench_record& r, std::string_view data, nanoseconds now, std::string* answer) {
  json_value json;
  try {
    json = parse_json(data);
  } catch (const json_syntax_error&) {
    r.error = "invalid_event";
    return;
  }
  if (const auto* error = json.find("error"); error != nullptr) {
    r.error = "stream_error " + text_or(error->find("code"), text_or(error->find("type"), ""));
    return;
  }
  if (const auto* usage = json.find("usage"); usage != nullptr && !usage->is_null()) {
    r.usage = true;
    r.prompt_tokens = static_cast<uint64_t>(number_or(usage->find("prompt_tokens"), 0));
    r.completion_tokens = static_cast<uint64_t>(number_or(usage->find("completion_tokens"), 0));
    r.cached_tokens = static_cast<uint64_t>(
        number_or(find_path(*usage, {"prompt_tokens_details", "cached_tokens"}), 0));
  }
  const auto* choice = find_path(json, {"choices", "0"});
  if (choice == nullptr) return;
  if (auto reason = text_or(choice->find("finish_reason"), ""); !reason.empty())
    r.finish = std::move(reason);
  constexpr size_t answer_max = size_t{16} << 20;
  const auto has_text = [&](std::initializer_list<std::string_view> path) {
    const auto* found = find_path(*choice, path);
    const auto* text = found == nullptr ? nullptr : found->get_if<std::string>();
    if (text == nullptr || text->empty()) return false;
    if (answer != nullptr && *(path.end() - 1) != "reasoning_content") *answer += *text;
    return true;
  };
  if (!has_text({"text"}) && !has_text({"delta", "content"})
      && !has_text({"delta", "reasoning_content"})
      && find_path(*choice, {"delta", "tool_calls"}) == nullptr)
    return;
  if (answer != nullptr && answer->size() > answer_max) r.error = "oversized_answer";
  if (++r.pieces == 1)
    r.first = now;
  else
    r.gaps_ms.push_back(static_cast<float>(static_cast<double>((now - r.last).count()) / 1e6));
  r.last = now;
}

std::string code_of(net::http_call_error::reason why) {
  using reason = net::http_call_error::reason;
  switch (why) {
  case reason::resolve:
    return "cannot_resolve";
  case reason::connect:
    return "cannot_connect";
  case reason::trust:
    return "no_tls";
  case reason::timeout:
    return "timeout";
  case reason::cut:
    return "cut";
  case reason::protocol:
    return "protocol";
  case reason::aborted:
    return "aborted";
  }
  return "unknown";
}

std::string code_of(const net::http_reply& reply) {
  std::string code = std::to_string(reply.status);
  try {
    const auto json = parse_json(reply.body);
    code += " " + text_or(find_path(json, {"error", "code"}), "");
  } catch (const json_syntax_error&) { // the status has to do
  }
  return code;
}

} // namespace lamella::cli
