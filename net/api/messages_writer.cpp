#include "net/api/messages_writer.hpp"

#include "base/json_writer.hpp"

#include <optional>
#include <utility>

namespace lamella::net {

namespace {

void write_messages_usage(json_writer& w, const usage_counts& usage) {
  w.key("usage")
      .begin_object()
      .member("input_tokens", usage.prompt_tokens - usage.cached_tokens)
      .member("cache_creation_input_tokens", 0)
      .member("cache_read_input_tokens", usage.cached_tokens)
      .member("output_tokens", usage.completion_tokens)
      .end_object();
}

/// The byte behind the string that begins at `at`; none: it does not end.
size_t end_of_string(std::string_view text, size_t at) {
  for (++at; at < text.size(); ++at) {
    if (text[at] == '"') return at + 1;
    if (text[at] == '\\') ++at;
  }
  return text.npos;
}

/// The beginning of a JSON text without the key or the value that it ends within, and closed:
/// what Anthropic's clients read of the pieces of a stream. A number at its end might go on.
std::string closed(std::string_view text) {
  std::string
      closers; // of what is open, the innermost last; it changes only where something is kept
  size_t kept = 0;
  bool has_key = false;
  for (size_t at = 0; at < text.size();) {
    const char c = text[at];
    const bool is_value = !closers.empty() && (has_key || closers.back() == ']');
    size_t next = at + 1;
    if (c == '{' || c == '[') {
      closers += c == '{' ? '}' : ']';
      has_key = false;
      kept = next;
    } else if (c == '}' || c == ']') {
      if (closers.empty() || closers.back() != c) break;
      closers.pop_back();
      kept = next;
    } else if (c == ':' || c == ',') {
      has_key = c == ':';
    } else if (answer_blanks.find(c) == answer_blanks.npos) {
      next = c == '"' ? end_of_string(text, at) : text.find_first_of(",]} \n\t\r", at);
      if (next == text.npos) break;
      if (is_value) kept = next;
    }
    at = next;
  }
  return std::string{text.substr(0, kept)} + std::string{closers.rbegin(), closers.rend()};
}

std::optional<json_value> object_of(const std::string& text) {
  try {
    if (auto read = parse_json(text); read.get_if<json_value::object>() != nullptr) return read;
  } catch (const json_syntax_error&) {
  }
  return std::nullopt;
}

/// Arguments that the answer's bound has cut are no JSON: the call has those that are whole then.
void write_input(json_writer& w, const std::string& arguments) {
  auto input = object_of(arguments);
  if (!input) input = object_of(closed(arguments));
  w.member("input", input.value_or(json_value::object{}));
}

class messages_writer final : public answer_writer {
public:
  messages_writer(response_head head, bool clipped) : head_{std::move(head)}, clipped_{clipped} {}

  std::string body(std::span<const response_choice> choices, const usage_counts& usage,
                   const response_metrics* metrics) override {
    json_writer w;
    begin_message(w);
    w.key("content").begin_array();
    for (const auto& choice : choices) {
      for (const auto& part : parts_of(choice.reasoning, choice.text, choice.ends)) {
        if (!part.reasoning.empty()) {
          w.begin_object();
          write_thinking(w, behind_gap(part.reasoning, has_thinking_));
          w.end_object();
        }
        if (!part.text.empty())
          w.begin_object()
              .member("type", "text")
              .member("text", behind_gap(part.text, has_text_))
              .end_object();
      }
      for (const auto& x : choice.tool_calls) {
        w.begin_object().member("type", "tool_use").member("id", x.id).member("name", x.name);
        write_input(w, x.arguments);
        w.end_object();
      }
      note(choice.reason, choice.stopped_by);
    }
    w.end_array();
    write_stop(w);
    write_messages_usage(w, usage);
    if (metrics != nullptr) write_metrics(w, *metrics);
    return w.end_object().take();
  }

  std::string begin(uint32_t, const usage_counts& running) override {
    return event("message_start", [&](json_writer& w) {
      w.key("message");
      begin_message(w);
      w.key("content").begin_array().end_array();
      w.null_member("stop_reason").null_member("stop_sequence");
      write_messages_usage(w, running);
      w.end_object();
    });
  }

  std::string text(uint32_t, std::string_view piece, const std::vector<token_logprobs>*,
                   const usage_counts&) override {
    if (piece.empty() || in_call_) return {}; // nothing is said behind a call
    std::string out;
    if (!open_ || in_thinking_) {
      piece = behind_gap(piece, has_text_);
      if (piece.empty()) return {};
      out = close_block();
      out += open_block([](json_writer& w) { w.member("type", "text").member("text", ""); });
    }
    return out
           + delta([&](json_writer& w) { w.member("type", "text_delta").member("text", piece); });
  }

  std::string reasoning(uint32_t, std::string_view piece, const std::vector<token_logprobs>*,
                        const usage_counts&) override {
    if (piece.empty()) return {};
    std::string out;
    if (!in_thinking_) { // the first, or behind a block of something else
      piece = behind_gap(piece, has_thinking_);
      if (piece.empty()) return {};
      out = close_block();
      out += open_block([](json_writer& w) { write_thinking(w, ""); });
      in_thinking_ = true;
    }
    return out + delta([&](json_writer& w) {
             w.member("type", "thinking_delta").member("thinking", piece);
           });
  }

  std::string call(uint32_t, uint32_t, std::string_view id, std::string_view name,
                   const usage_counts&) override {
    auto out = close_block();
    in_call_ = true;
    return out + open_block([&](json_writer& w) {
             w.member("type", "tool_use").member("id", id).member("name", name);
             w.key("input").begin_object().end_object();
           });
  }

  std::string arguments(uint32_t, uint32_t, std::string_view piece,
                        const std::vector<token_logprobs>*, const usage_counts&) override {
    return delta([&](json_writer& w) {
      w.member("type", "input_json_delta").member("partial_json", piece);
    });
  }

  std::string finish(uint32_t, finish_reason reason, const stop_reason& stopped_by,
                     const usage_counts&) override {
    note(reason, stopped_by);
    return close_block();
  }

  std::string end(const usage_counts& total) override {
    return event("message_delta",
                 [&](json_writer& w) {
                   w.key("delta").begin_object();
                   write_stop(w);
                   w.end_object();
                   write_messages_usage(w, total);
                 })
           + event("message_stop", [](json_writer&) {});
  }

  std::string error(const api_error& error, std::string_view request_id) override {
    return sse_event("error", error_body(error, request_id, error_format::anthropic));
  }

  std::string_view ping() const override { return "event: ping\ndata: {\"type\":\"ping\"}\n\n"; }
  std::string_view call_prefix() const override { return "toolu_"; }

private:
  /// What a block of a kind begins with: not with what keeps it apart from one before it.
  static std::string_view behind_gap(std::string_view text, bool& has) {
    return std::exchange(has, true) ? without_gap(text) : text;
  }

  /// Nobody has signed it: it is read back as it is.
  static void write_thinking(json_writer& w, std::string_view text) {
    w.member("type", "thinking").member("thinking", text).member("signature", "");
  }

  void begin_message(json_writer& w) const {
    w.begin_object().member("id", head_.id).member("type", "message");
    w.member("role", "assistant").member("model", head_.model);
  }

  void note(finish_reason reason, const stop_reason& stopped_by) {
    reason_ = reason;
    stopped_by_ = stopped_by;
  }

  void write_stop(json_writer& w) const {
    const auto* text = std::get_if<std::string>(&stopped_by_);
    std::string_view why = "end_turn";
    if (reason_ == finish_reason::tool_calls) why = "tool_use";
    if (reason_ == finish_reason::length)
      why = clipped_ ? "model_context_window_exceeded" : "max_tokens";
    if (reason_ == finish_reason::stop && text != nullptr) why = "stop_sequence";
    w.member("stop_reason", why);
    if (why == "stop_sequence")
      w.member("stop_sequence", *text);
    else
      w.null_member("stop_sequence");
  }

  /// An event; `write` writes the members behind its type.
  template <class Write> static std::string event(std::string_view type, const Write& write) {
    json_writer w;
    w.begin_object().member("type", type);
    write(w);
    return sse_event(type, w.end_object().take());
  }

  template <class Write> std::string open_block(const Write& write) {
    open_ = true;
    return event("content_block_start", [&](json_writer& w) {
      w.member("index", block_).key("content_block").begin_object();
      write(w);
      w.end_object();
    });
  }

  template <class Write> std::string delta(const Write& write) const {
    return event("content_block_delta", [&](json_writer& w) {
      w.member("index", block_).key("delta").begin_object();
      write(w);
      w.end_object();
    });
  }

  std::string close_block() {
    if (!open_) return {};
    std::string out;
    if (in_thinking_) // Anthropic's clients wait for it; thinking is not signed here
      out = delta(
          [](json_writer& w) { w.member("type", "signature_delta").member("signature", ""); });
    open_ = in_thinking_ = false;
    return out + event("content_block_stop", [&](json_writer& w) { w.member("index", block_++); });
  }

  response_head head_;
  bool clipped_;
  uint32_t block_ = 0;
  bool open_ = false; ///< the block of that number
  bool in_call_ = false, in_thinking_ = false;
  bool has_text_ = false, has_thinking_ = false; ///< a block of it
  finish_reason reason_ = finish_reason::stop;
  stop_reason stopped_by_;
};

} // namespace

std::shared_ptr<answer_writer> make_messages_writer(response_head head, bool clipped) {
  return std::make_shared<messages_writer>(std::move(head), clipped);
}

std::string token_count_body(uint64_t tokens) {
  return json_writer().begin_object().member("input_tokens", tokens).end_object().take();
}

} // namespace lamella::net
