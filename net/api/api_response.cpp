#include "net/api/api_response.hpp"

#include "base/json_writer.hpp"
#include "base/utf8.hpp"

#include <algorithm>
#include <cmath>

namespace lamella::net {

namespace {

/// Minus infinity has no JSON; clients know this number instead.
double finite(double logprob) { return std::max(logprob, -9999.0); }

void write_head(json_writer& w, const response_head& head, std::string_view object) {
  w.begin_object()
      .member("id", head.id)
      .member("object", object)
      .member("created", head.created)
      .member("model", head.model)
      .member("system_fingerprint", head.fingerprint);
  if (head.service_tier) w.member("service_tier", "default");
}

void write_usage(json_writer& w, const usage_counts& usage) {
  w.begin_object()
      .member("prompt_tokens", usage.prompt_tokens)
      .member("completion_tokens", usage.completion_tokens)
      .member("total_tokens", usage.prompt_tokens + usage.completion_tokens);
  w.key("prompt_tokens_details")
      .begin_object()
      .member("cached_tokens", usage.cached_tokens)
      .end_object();
  w.key("completion_tokens_details")
      .begin_object()
      .member("reasoning_tokens", usage.reasoning_tokens)
      .end_object();
  w.end_object();
}

void write_token(json_writer& w, std::string_view bytes, std::optional<double> logprob) {
  w.member("token", bytes).key("logprob");
  if (logprob)
    w.value(finite(*logprob));
  else
    w.null();
  w.key("bytes").begin_array();
  for (const char c : bytes) w.value(static_cast<unsigned>(static_cast<unsigned char>(c)));
  w.end_array();
}

void write_chat_logprobs(json_writer& w, const std::vector<token_logprobs>* entries) {
  w.key("logprobs");
  if (!entries) {
    w.null();
    return;
  }
  w.begin_object().key("content");
  write_logprobs(w, *entries);
  w.null_member("refusal").end_object();
}

/// A token as the legacy API names it: a part of a character by its bytes, so that tokens which no
/// text tells apart have names of their own: `bytes:\xe6\x97`.
std::string legacy_name(std::string_view bytes) {
  if (valid_utf8(bytes) == bytes) return std::string{bytes};
  constexpr std::string_view digits = "0123456789abcdef";
  std::string name = "bytes:";
  for (const char c : bytes) {
    const unsigned byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7F && c != '\\')
      name += c;
    else
      name.append("\\x").append({digits[byte >> 4], digits[byte & 15]});
  }
  return name;
}

/// By name the best alternatives and the token itself, which has its own value also where another
/// one has the same name.
void write_legacy_top(json_writer& w, const token_logprobs& entry, double logprob) {
  const auto own = legacy_name(entry.bytes);
  std::vector<std::string> names; // a key stands once
  w.begin_object();
  const auto add = [&](std::string name, double value) {
    if (std::find(names.begin(), names.end(), name) != names.end()) return;
    w.member(name, finite(name == own ? logprob : value));
    names.push_back(std::move(name));
  };
  for (const token_alternative& other : entry.top) add(legacy_name(other.bytes), other.logprob);
  add(own, logprob);
  w.end_object();
}

/// Four parallel arrays, where the token itself is always one of the alternatives; returns the
/// offset after the last token.
uint64_t write_legacy_logprobs(json_writer& w, const std::vector<token_logprobs>* entries,
                               uint64_t offset) {
  w.key("logprobs");
  if (!entries) {
    w.null();
    return offset;
  }
  w.begin_object().key("tokens").begin_array();
  for (const token_logprobs& entry : *entries) w.value(legacy_name(entry.bytes));
  w.end_array().key("token_logprobs").begin_array();
  for (const token_logprobs& entry : *entries) {
    if (entry.logprob)
      w.value(finite(*entry.logprob));
    else
      w.null();
  }
  w.end_array().key("top_logprobs").begin_array();
  for (const token_logprobs& entry : *entries) {
    if (entry.logprob)
      write_legacy_top(w, entry, *entry.logprob);
    else
      w.null();
  }
  w.end_array().key("text_offset").begin_array();
  for (const token_logprobs& entry : *entries) {
    w.value(offset);
    offset += entry.code_points ? *entry.code_points : code_points(entry.bytes);
  }
  w.end_array().end_object();
  return offset;
}

/// An object for each token but the first, by ids as vLLM has it.
void write_prompt_logprobs(json_writer& w, const std::optional<prompt_candidates>& tokens) {
  if (!tokens) return;
  w.key("prompt_logprobs").begin_array();
  for (const auto& candidates : *tokens) {
    if (candidates.empty()) {
      w.null();
      continue;
    }
    w.begin_object();
    for (const auto& x : candidates) {
      w.key(std::to_string(x.id)).begin_object().member("logprob", finite(x.logprob));
      w.member("rank", x.rank).member("decoded_token", x.bytes).end_object();
    }
    w.end_object();
  }
  w.end_array();
}

void write_tool_calls(json_writer& w, const std::vector<tool_call>& calls) {
  w.key("tool_calls").begin_array();
  for (const auto& x : calls) {
    w.begin_object().member("id", x.id).member("type", "function");
    w.key("function").begin_object().member("name", x.name).member("arguments", x.arguments);
    w.end_object().end_object();
  }
  w.end_array();
}

void write_message(json_writer& w, const response_choice& choice) {
  w.key("message").begin_object().member("role", "assistant").key("content");
  if (choice.text.empty() && !(choice.tool_calls.empty() && choice.reasoning.empty()))
    w.null();
  else
    w.value(choice.text);
  w.null_member("refusal");
  if (!choice.reasoning.empty()) w.member("reasoning_content", choice.reasoning);
  if (!choice.tool_calls.empty()) write_tool_calls(w, choice.tool_calls);
  w.end_object();
}

void write_finish(json_writer& w, finish_reason reason, const stop_reason& stopped_by) {
  w.member("finish_reason", to_string(reason)).key("stop_reason");
  if (const auto* text = std::get_if<std::string>(&stopped_by))
    w.value(*text);
  else if (const auto* id = std::get_if<uint32_t>(&stopped_by))
    w.value(*id);
  else
    w.null();
}

std::string whole_body(bool chat, const response_head& head,
                       std::span<const response_choice> choices, const usage_counts& usage,
                       const response_metrics* metrics) {
  json_writer w;
  write_head(w, head, chat ? "chat.completion" : "text_completion");
  w.key("choices").begin_array();
  for (const response_choice& choice : choices) {
    const auto* logprobs = choice.logprobs ? &*choice.logprobs : nullptr;
    w.begin_object().member("index", choice.index);
    if (chat) {
      write_message(w, choice);
      write_chat_logprobs(w, logprobs);
    } else {
      w.member("text", choice.text);
      write_legacy_logprobs(w, logprobs, 0);
      write_prompt_logprobs(w, choice.prompt_logprobs);
    }
    write_finish(w, choice.reason, choice.stopped_by);
    w.end_object();
  }
  w.end_array().key("usage");
  write_usage(w, usage);
  if (chat && !choices.empty()) write_prompt_logprobs(w, choices.front().prompt_logprobs);
  if (metrics) write_metrics(w, *metrics);
  w.end_object();
  return w.take();
}

} // namespace

void write_metrics(json_writer& w, const response_metrics& m) {
  w.key("metrics")
      .begin_object()
      .member("queue_time_ms", m.queue_time_ms)
      .member("time_to_first_token_ms", m.time_to_first_token_ms)
      .member("generation_time_ms", m.generation_time_ms)
      .member("mean_itl_ms", m.mean_itl_ms)
      .member("tokens_per_second", m.tokens_per_second)
      .member("recoveries", m.recoveries)
      .member("recovery_pause_ms", m.recovery_pause_ms)
      .end_object();
}

void write_logprobs(json_writer& w, const std::vector<token_logprobs>& entries) {
  w.begin_array();
  for (const token_logprobs& entry : entries) {
    w.begin_object();
    write_token(w, entry.bytes, entry.logprob);
    w.key("top_logprobs").begin_array();
    for (const token_alternative& other : entry.top) {
      w.begin_object();
      write_token(w, other.bytes, other.logprob);
      w.end_object();
    }
    w.end_array().end_object();
  }
  w.end_array();
}

std::string_view to_string(finish_reason reason) {
  switch (reason) {
  case finish_reason::stop:
    break;
  case finish_reason::length:
    return "length";
  case finish_reason::tool_calls:
    return "tool_calls";
  }
  return "stop";
}

std::string chat_body(const response_head& head, std::span<const response_choice> choices,
                      const usage_counts& usage, const response_metrics* metrics) {
  return whole_body(true, head, choices, usage, metrics);
}

std::string completion_body(const response_head& head, std::span<const response_choice> choices,
                            const usage_counts& usage, const response_metrics* metrics) {
  return whole_body(false, head, choices, usage, metrics);
}

// --- streams

namespace {

void write_running(json_writer& w, bool include_usage, bool continuous,
                   const usage_counts& running) {
  if (continuous) {
    w.key("usage");
    write_usage(w, running);
  } else if (include_usage) {
    w.null_member("usage");
  }
  w.end_object();
}

} // namespace

stream_chunks::stream_chunks(style kind, response_head head, bool include_usage, bool continuous)
    : style_(kind), head_(std::move(head)), include_usage_(include_usage), continuous_(continuous) {
}

std::string stream_chunks::role(uint32_t index, const usage_counts& running) const {
  if (style_ == style::completion) return {};
  json_writer w;
  write_head(w, head_, "chat.completion.chunk");
  w.key("choices").begin_array().begin_object().member("index", index);
  w.key("delta").begin_object().member("role", "assistant").member("content", "").end_object();
  w.null_member("logprobs").null_member("finish_reason").end_object().end_array();
  write_running(w, include_usage_, continuous_, running);
  return w.take();
}

std::string stream_chunks::reasoning(uint32_t index, std::string_view piece,
                                     const std::vector<token_logprobs>* logprobs,
                                     const usage_counts& running) const {
  json_writer w;
  write_head(w, head_, "chat.completion.chunk");
  w.key("choices").begin_array().begin_object().member("index", index);
  w.key("delta").begin_object().member("reasoning_content", piece).end_object();
  write_chat_logprobs(w, logprobs);
  w.null_member("finish_reason").end_object().end_array();
  write_running(w, include_usage_, continuous_, running);
  return w.take();
}

std::string stream_chunks::text(uint32_t index, std::string_view piece,
                                const std::vector<token_logprobs>* logprobs,
                                const usage_counts& running) {
  json_writer w;
  if (style_ == style::chat) {
    write_head(w, head_, "chat.completion.chunk");
    w.key("choices").begin_array().begin_object().member("index", index);
    w.key("delta").begin_object().member("content", piece).end_object();
    write_chat_logprobs(w, logprobs);
  } else {
    if (index >= offsets_.size()) offsets_.resize(index + size_t{1});
    write_head(w, head_, "text_completion");
    w.key("choices").begin_array().begin_object().member("index", index).member("text", piece);
    offsets_[index] = write_legacy_logprobs(w, logprobs, offsets_[index]);
  }
  w.null_member("finish_reason").end_object().end_array();
  write_running(w, include_usage_, continuous_, running);
  return w.take();
}

std::string stream_chunks::call(uint32_t index, uint32_t call, std::string_view id,
                                std::string_view name, const usage_counts& running) const {
  json_writer w;
  write_head(w, head_, "chat.completion.chunk");
  w.key("choices").begin_array().begin_object().member("index", index);
  w.key("delta").begin_object().key("tool_calls").begin_array();
  w.begin_object().member("index", call).member("id", id).member("type", "function");
  w.key("function").begin_object().member("name", name).member("arguments", "").end_object();
  w.end_object().end_array().end_object();
  w.null_member("logprobs").null_member("finish_reason").end_object().end_array();
  write_running(w, include_usage_, continuous_, running);
  return w.take();
}

std::string stream_chunks::arguments(uint32_t index, uint32_t call, std::string_view piece,
                                     const std::vector<token_logprobs>* logprobs,
                                     const usage_counts& running) const {
  json_writer w;
  write_head(w, head_, "chat.completion.chunk");
  w.key("choices").begin_array().begin_object().member("index", index);
  w.key("delta").begin_object().key("tool_calls").begin_array();
  w.begin_object().member("index", call);
  w.key("function").begin_object().member("arguments", piece).end_object();
  w.end_object().end_array().end_object();
  write_chat_logprobs(w, logprobs);
  w.null_member("finish_reason").end_object().end_array();
  write_running(w, include_usage_, continuous_, running);
  return w.take();
}

std::string stream_chunks::finish(uint32_t index, finish_reason reason,
                                  const stop_reason& stopped_by,
                                  const usage_counts& running) const {
  json_writer w;
  write_head(w, head_, style_ == style::chat ? "chat.completion.chunk" : "text_completion");
  w.key("choices").begin_array().begin_object().member("index", index);
  if (style_ == style::chat)
    w.key("delta").begin_object().end_object();
  else
    w.member("text", "");
  w.null_member("logprobs");
  write_finish(w, reason, stopped_by);
  w.end_object().end_array();
  write_running(w, include_usage_, continuous_, running);
  return w.take();
}

std::string stream_chunks::usage(const usage_counts& total) const {
  json_writer w;
  write_head(w, head_, style_ == style::chat ? "chat.completion.chunk" : "text_completion");
  w.key("choices").begin_array().end_array().key("usage");
  write_usage(w, total);
  w.end_object();
  return w.take();
}

} // namespace lamella::net
