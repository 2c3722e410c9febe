/// A request without a socket, and a service for it without a pipeline.
#pragma once

#include "actors/request/request.hpp"
#include "base/json.hpp"
#include "model/program/load.hpp"
#include "tests/scratch_folder.hpp"
#include "tests/tiny_model.hpp"

namespace lamella::actors::test {

class fake_exchange final : public net::http_exchange {
public:
  explicit fake_exchange(std::string json) {
    request_.method = "POST";
    request_.path = "/v1/completions";
    request_.body = std::move(json);
  }

  const net::http_request& request() const override { return request_; }
  net::http_body take_body() override {
    return {std::exchange(request_.body, {}), std::move(request_.body_share)};
  }
  void respond(int code, net::http_headers sent, std::string text) override {
    ++answers;
    headers = std::move(sent);
    status = code;
    body = std::move(text);
  }
  void start_stream(net::http_headers) override { status = 200; }
  void write(std::string chunk, std::function<void(bool)> written) override {
    if (pending) throw std::logic_error("two writes at once");
    streamed += chunk;
    if (!open_)
      written(false);
    else if (takes)
      written(true);
    else
      pending = std::move(written);
  }
  void finish(bool close) override {
    ++answers;
    closes = close;
  }
  void on_closed(std::function<void()> closed) override {
    if (open_)
      closed_ = std::move(closed);
    else
      closed();
  }
  bool open() const override { return open_; }

  /// The client is gone.
  void disconnect() {
    if (!std::exchange(open_, false)) return;
    if (closed_) closed_();
    if (auto written = std::exchange(pending, nullptr)) written(false);
  }
  /// The socket takes what it was given.
  void drain() {
    if (auto written = std::exchange(pending, nullptr)) written(true);
  }

  /// Text of a choice, whether streamed or not.
  std::string text(int64_t choice = 0) const {
    std::string result;
    const auto add = [&](const json_value& x) {
      const auto* choices = x.find("choices");
      if (choices == nullptr) return;
      for (const auto& c : *choices->get_if<json_value::array>())
        if (*c.find("index")->get_if<int64_t>() == choice)
          if (const auto* t = c.find("text")) result += *t->get_if<std::string>();
    };
    if (!body.empty()) add(parse_json(body));
    for (size_t from = 0; (from = streamed.find("data: {", from)) != std::string::npos;) {
      from += 6;
      add(parse_json(streamed.substr(from, streamed.find("\n\n", from) - from)));
    }
    return result;
  }
  bool done() const { return streamed.find("data: [DONE]") != std::string::npos; }

  /// Its body, and what takes its place, is a part of this memory.
  void limit_memory(std::shared_ptr<byte_budget> memory) {
    request_.body_share = byte_budget::share{std::move(memory)};
  }

  /// Another field of the request.
  void add_header(std::string name, std::string value) {
    request_.headers.add(std::move(name), std::move(value));
  }

  int status = 0, answers = 0;
  bool closes = false;       ///< finish() said that the connection ends
  net::http_headers headers; ///< of the answer
  std::string body, streamed;
  bool takes = true; ///< else write() waits for drain()
  std::function<void(bool)> pending;

private:
  net::http_request request_;
  std::function<void()> closed_;
  bool open_ = true;
};

/// All of a service but its handles.
inline actors::service tiny_service() {
  static const auto loaded = [] { // keeps the mapped file, which the tokenizer may point into
    tests::scratch_folder folder;
    tests::write_tiny_model(folder / "tiny.gguf");
    return model::load_model(folder / "tiny.gguf");
  }();
  const auto& text = loaded.text;
  actors::service s;
  s.text = text;
  s.model_name = "tiny";
  s.context_tokens = 512;
  for (model::token_id t = 0; t < text->vocabulary(); ++t)
    if (text->is_end(t)) s.end_tokens.push_back(t);
  s.constraints =
      std::make_shared<actors::constraint_store>(text, s.end_tokens, text->vocabulary());
  s.rules.limits.vocabulary = text->vocabulary();
  s.slots = 512;
  s.window_slots = 16;
  s.epoch = 1;
  s.metrics = std::make_shared<net::metrics>(net::metrics::settings{});
  return s;
}

/// A body for /v1/completions with a prompt of `tokens` ids.
inline std::string completion_body(uint32_t tokens, uint32_t max_tokens, uint64_t seed,
                                   const std::string& more = {}) {
  std::string ids;
  for (uint32_t i = 0; i < tokens; ++i) ids += (i == 0 ? "" : ",") + std::to_string(3 + i % 250);
  return R"({"model":"tiny","prompt":[)" + ids + R"(],"max_tokens":)" + std::to_string(max_tokens)
         + R"(,"seed":)" + std::to_string(seed) + more + "}";
}

} // namespace lamella::actors::test
