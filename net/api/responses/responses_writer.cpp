#include "net/api/responses/responses_writer.hpp"

#include "base/json_writer.hpp"

#include <algorithm>

namespace lamella::net {

namespace {

enum class output_kind : uint8_t { reasoning, message, call };

struct output_item {
  output_kind what = output_kind::message;
  std::string id, call_id, name;
  std::string text; ///< of the reasoning or the message, or the call's arguments
  std::vector<token_logprobs> logprobs{};
  bool open = true; ///< more may come
};

/// The 24 characters behind the prefix of an id.
std::string behind_prefix(std::string_view id) { return std::string{id.substr(id.find('_') + 1)}; }

output_item call_item(std::string_view id, std::string_view name) {
  return {output_kind::call, "fc_" + behind_prefix(id), std::string{id}, std::string{name}, {}};
}

/// Of a message or of reasoning: the only one.
void write_part(json_writer& w, const output_item& x) {
  if (x.what == output_kind::reasoning) {
    w.begin_object().member("type", "reasoning_text").member("text", x.text).end_object();
    return;
  }
  w.begin_object().member("type", "output_text").member("text", x.text);
  w.key("annotations").begin_array().end_array().key("logprobs");
  write_logprobs(w, x.logprobs);
  w.end_object();
}

void write_item(json_writer& w, const output_item& x, std::string_view status) {
  w.begin_object().member("id", x.id);
  w.member("type", x.what == output_kind::call        ? "function_call"
                   : x.what == output_kind::reasoning ? "reasoning"
                                                      : "message");
  w.member("status", status);
  if (x.what == output_kind::call) {
    w.member("call_id", x.call_id).member("name", x.name).member("arguments", x.text);
  } else {
    if (x.what == output_kind::reasoning)
      w.key("summary").begin_array().end_array();
    else
      w.member("role", "assistant");
    w.key("content").begin_array();
    if (status != "in_progress") write_part(w, x);
    w.end_array();
  }
  w.end_object();
}

void write_usage(json_writer& w, const usage_counts& usage) {
  w.begin_object().member("input_tokens", usage.prompt_tokens).key("input_tokens_details");
  w.begin_object()
      .member("cached_tokens", usage.cached_tokens)
      .member("cache_write_tokens", 0)
      .end_object();
  w.member("output_tokens", usage.completion_tokens).key("output_tokens_details");
  w.begin_object().member("reasoning_tokens", usage.reasoning_tokens).end_object();
  w.member("total_tokens", usage.prompt_tokens + usage.completion_tokens).end_object();
}

/// What a response's error is called there.
std::string_view code_of(const api_error& error) {
  if (error.status == 429) return "rate_limit_exceeded";
  // A deadline that has passed is no fault of the prompt.
  return error.status < 500 && error.status != 408 ? "invalid_prompt" : "server_error";
}

/// Members that repeat the request.
void write_facts(json_writer& w, const response_facts& facts) {
  const auto text_or_null = [&](std::string_view name, bool present, const auto& value) {
    if (present)
      w.member(name, value);
    else
      w.null_member(name);
  };
  text_or_null("instructions", facts.instructions.has_value(), facts.instructions.value_or(""));
  text_or_null("max_output_tokens", facts.max_output_tokens.has_value(),
               facts.max_output_tokens.value_or(0));
  w.null_member("max_tool_calls").member("parallel_tool_calls", facts.parallel_tool_calls);
  text_or_null("previous_response_id", !facts.previous_id.empty(), facts.previous_id);
  w.key("prompt_cache_key").raw(facts.prompt_cache_key).key("reasoning").raw(facts.reasoning);
  w.key("safety_identifier").raw(facts.safety_identifier).member("service_tier", "default");
  w.member("store", facts.store).member("temperature", facts.temperature);
  w.key("text").raw(facts.text).key("tool_choice").raw(facts.tool_choice);
  w.key("tools").raw(facts.tools).member("top_logprobs", facts.top_logprobs);
  w.member("top_p", facts.top_p).member("truncation", "disabled").key("user").raw(facts.user);
  w.key("metadata").raw(facts.metadata);
}

class responses_writer final : public answer_writer {
public:
  responses_writer(response_head head, response_facts facts, keep_response keep)
      : head_{std::move(head)}, facts_{std::move(facts)}, keep_{std::move(keep)} {}

  std::string body(std::span<const response_choice> choices, const usage_counts& usage,
                   const response_metrics* metrics) override;
  std::string begin(uint32_t index, const usage_counts& running) override;
  std::string text(uint32_t index, std::string_view piece,
                   const std::vector<token_logprobs>* logprobs,
                   const usage_counts& running) override;
  std::string reasoning(uint32_t index, std::string_view piece,
                        const std::vector<token_logprobs>* logprobs,
                        const usage_counts& running) override;
  std::string call(uint32_t index, uint32_t call, std::string_view id, std::string_view name,
                   const usage_counts& running) override;
  std::string arguments(uint32_t index, uint32_t call, std::string_view piece,
                        const std::vector<token_logprobs>* logprobs,
                        const usage_counts& running) override;
  std::string finish(uint32_t index, finish_reason reason, const stop_reason& stopped_by,
                     const usage_counts& running) override;
  std::string end(const usage_counts& total) override;
  std::string error(const api_error& error, std::string_view request_id) override;

private:
  std::string_view final_status() const {
    return reason_ == finish_reason::length ? "incomplete" : "completed";
  }
  /// The response as it is now.
  std::string response(std::string_view status, const usage_counts* usage,
                       const api_error* error = nullptr,
                       const response_metrics* metrics = nullptr) const;
  /// An event; `write` writes the members behind its type and number.
  template <class Write> std::string event(std::string_view type, const Write& write);
  std::string event_of_response(std::string_view type, const std::string& response);
  /// An event of the newest item, or of its only part.
  template <class Write> std::string event_of_item(std::string_view type, const Write& write);
  size_t count(output_kind what) const {
    return static_cast<size_t>(std::ranges::count(output_, what, &output_item::what));
  }
  /// A message or reasoning, behind what there is.
  output_item next(output_kind what) const {
    const auto before = count(what);
    return {what,
            (what == output_kind::reasoning ? "rs_" : "msg_") + behind_prefix(head_.id)
                + (before > 0 ? "_" + std::to_string(before) : ""),
            {},
            {},
            {}};
  }
  std::string open_item(output_item x);
  std::string close_item(std::string_view status);
  void keep(const std::string& body);

  response_head head_;
  response_facts facts_;
  keep_response keep_;
  std::vector<output_item> output_;
  std::vector<token_logprobs> early_; ///< of tokens before a message that were no text yet
  finish_reason reason_ = finish_reason::stop;
  uint64_t next_number_ = 0;
};

std::string responses_writer::response(std::string_view status, const usage_counts* usage,
                                       const api_error* error,
                                       const response_metrics* metrics) const {
  json_writer w;
  w.begin_object().member("id", head_.id).member("object", "response");
  w.member("created_at", head_.created).member("status", status).member("background", false);
  w.key("error");
  if (error != nullptr)
    w.begin_object().member("code", code_of(*error)).member("message", error->message).end_object();
  else
    w.null();
  w.key("incomplete_details");
  if (status == "incomplete")
    w.begin_object().member("reason", "max_output_tokens").end_object();
  else
    w.null();
  w.member("model", head_.model).key("output").begin_array();
  for (const auto& x : output_)
    if (!x.open || usage != nullptr || error != nullptr)
      write_item(w, x,
                 x.open || (status == "incomplete" && &x == &output_.back()) ? "incomplete"
                                                                             : "completed");
  w.end_array();
  write_facts(w, facts_);
  w.key("usage");
  if (usage != nullptr)
    write_usage(w, *usage);
  else
    w.null();
  w.member("system_fingerprint", head_.fingerprint);
  if (metrics != nullptr) write_metrics(w, *metrics);
  return w.end_object().take();
}

std::string responses_writer::body(std::span<const response_choice> choices,
                                   const usage_counts& usage, const response_metrics* metrics) {
  for (const auto& choice : choices) {
    const auto add = [&](output_kind what, std::string_view text) {
      auto x = next(what);
      x.text = count(what) > 0 ? without_gap(text) : text;
      if (what == output_kind::message && count(what) == 0 && choice.logprobs && facts_.logprobs)
        x.logprobs = *choice.logprobs;
      output_.push_back(std::move(x));
    };
    for (const auto& part : parts_of(choice.reasoning, choice.text, choice.ends)) {
      if (!part.reasoning.empty()) add(output_kind::reasoning, part.reasoning);
      if (!part.text.empty() || (choice.tool_calls.empty() && choice.reasoning.empty()))
        add(output_kind::message, part.text);
    }
    for (const auto& x : choice.tool_calls) {
      output_.push_back(call_item(x.id, x.name));
      output_.back().text = x.arguments;
    }
    reason_ = choice.reason;
  }
  for (auto& x : output_) x.open = false;
  auto text = response(final_status(), &usage, nullptr, metrics);
  keep(text);
  return text;
}

template <class Write>
std::string responses_writer::event(std::string_view type, const Write& write) {
  json_writer w;
  w.begin_object().member("type", type).member("sequence_number", next_number_++);
  write(w);
  return sse_event(type, w.end_object().take());
}

std::string responses_writer::event_of_response(std::string_view type,
                                                const std::string& response) {
  return event(type, [&](json_writer& w) { w.key("response").raw(response); });
}

template <class Write>
std::string responses_writer::event_of_item(std::string_view type, const Write& write) {
  return event(type, [&](json_writer& w) {
    w.member("item_id", output_.back().id).member("output_index", output_.size() - 1);
    if (output_.back().what != output_kind::call) w.member("content_index", 0);
    write(w);
  });
}

std::string responses_writer::open_item(output_item x) {
  output_.push_back(std::move(x));
  auto out = event("response.output_item.added", [&](json_writer& w) {
    w.member("output_index", output_.size() - 1).key("item");
    write_item(w, output_.back(), "in_progress");
  });
  if (output_.back().what != output_kind::call)
    out += event_of_item("response.content_part.added", [&](json_writer& w) {
      w.key("part");
      write_part(w, output_.back());
    });
  return out;
}

std::string responses_writer::close_item(std::string_view status) {
  if (output_.empty() || !output_.back().open) return {};
  auto& x = output_.back();
  x.open = false;
  std::string out;
  if (x.what == output_kind::call) {
    out += event_of_item("response.function_call_arguments.done", [&](json_writer& w) {
      w.member("name", x.name).member("arguments", x.text);
    });
  } else {
    const bool reasons = x.what == output_kind::reasoning;
    out += event_of_item(reasons ? "response.reasoning_text.done" : "response.output_text.done",
                         [&](json_writer& w) {
                           w.member("text", x.text);
                           if (reasons) return;
                           w.key("logprobs");
                           write_logprobs(w, x.logprobs);
                         });
    out += event_of_item("response.content_part.done", [&](json_writer& w) {
      w.key("part");
      write_part(w, x);
    });
  }
  return out + event("response.output_item.done", [&](json_writer& w) {
           w.member("output_index", output_.size() - 1).key("item");
           write_item(w, x, status);
         });
}

std::string responses_writer::begin(uint32_t, const usage_counts&) {
  const auto now = response("in_progress", nullptr);
  auto out = event_of_response("response.created", now); // its number is the lower one
  return out += event_of_response("response.in_progress", now);
}

std::string responses_writer::text(uint32_t, std::string_view piece,
                                   const std::vector<token_logprobs>* logprobs,
                                   const usage_counts&) {
  std::string out;
  std::vector<token_logprobs> shown;
  if (logprobs != nullptr && facts_.logprobs) shown = *logprobs;
  if (output_.empty() || output_.back().what == output_kind::reasoning) {
    if (count(output_kind::message) > 0) piece = without_gap(piece);
    if (piece.empty()) { // reasoning may still come
      early_.insert(early_.end(), shown.begin(), shown.end());
      return out;
    }
    out += close_item("completed");
    out += open_item(next(output_kind::message));
    shown.insert(shown.begin(), early_.begin(), early_.end());
    early_.clear();
  }
  auto& x = output_.back();
  if (x.what == output_kind::call) return out; // nothing is said behind a call
  x.text += piece;
  x.logprobs.insert(x.logprobs.end(), shown.begin(), shown.end());
  return out + event_of_item("response.output_text.delta", [&](json_writer& w) {
           w.member("delta", piece).key("logprobs");
           write_logprobs(w, shown);
         });
}

/// Log probabilities have no place in it.
std::string responses_writer::reasoning(uint32_t, std::string_view piece,
                                        const std::vector<token_logprobs>*, const usage_counts&) {
  std::string out;
  if (output_.empty() || output_.back().what != output_kind::reasoning) { // or behind text
    if (count(output_kind::reasoning) > 0) piece = without_gap(piece);
    if (piece.empty()) return out;
    out += close_item("completed");
    out += open_item(next(output_kind::reasoning));
  }
  output_.back().text += piece;
  return out + event_of_item("response.reasoning_text.delta", [&](json_writer& w) {
           w.member("delta", piece);
         });
}

std::string responses_writer::call(uint32_t, uint32_t, std::string_view id, std::string_view name,
                                   const usage_counts&) {
  auto out = close_item("completed");
  return out + open_item(call_item(id, name));
}

std::string responses_writer::arguments(uint32_t, uint32_t, std::string_view piece,
                                        const std::vector<token_logprobs>*, const usage_counts&) {
  output_.back().text += piece;
  return event_of_item("response.function_call_arguments.delta",
                       [&](json_writer& w) { w.member("delta", piece); });
}

std::string responses_writer::finish(uint32_t, finish_reason reason, const stop_reason&,
                                     const usage_counts&) {
  reason_ = reason;
  std::string out;
  if (output_.empty()) { // an answer without a word
    out += open_item(next(output_kind::message));
    output_.back().logprobs = early_;
  }
  return out + close_item(final_status());
}

std::string responses_writer::end(const usage_counts& total) {
  const auto text = response(final_status(), &total);
  keep(text);
  return event_of_response(
      reason_ == finish_reason::length ? "response.incomplete" : "response.completed", text);
}

std::string responses_writer::error(const api_error& error, std::string_view) {
  return event_of_response("response.failed", response("failed", nullptr, &error));
}

void responses_writer::keep(const std::string& body) {
  if (!keep_) return;
  chat_message said;
  said.role = "assistant";
  for (const auto& x : output_) {
    auto& to = x.what == output_kind::reasoning ? said.reasoning : said.content;
    if (x.what == output_kind::call)
      said.tool_calls.push_back({x.call_id, x.name, x.text});
    else
      to += (to.empty() ? "" : "\n\n") + x.text;
  }
  keep_(body, std::move(said));
}

} // namespace

std::string deleted_response_body(std::string_view id) {
  json_writer w;
  w.begin_object().member("id", id).member("object", "response").member("deleted", true);
  return w.end_object().take();
}

std::shared_ptr<answer_writer> make_responses_writer(response_head head, response_facts facts,
                                                     keep_response keep) {
  return std::make_shared<responses_writer>(std::move(head), std::move(facts), std::move(keep));
}

} // namespace lamella::net
