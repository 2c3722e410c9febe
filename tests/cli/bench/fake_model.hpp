/// A server with the API that `lamella bench serve` asks: a word is a token, and what it was asked
/// is kept.
#pragma once

#include "base/json.hpp"
#include "base/json_writer.hpp"
#include "net/http/http_server.hpp"
#include "tests/cli/program.hpp"
#include "tests/scratch_folder.hpp"

#include <algorithm>
#include <mutex>
#include <sstream>
#include <string>
#include <vector>

namespace lamella::tests {

inline std::vector<std::string> words_of(const std::string& text) {
  std::istringstream in{text};
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

/// How many words two texts have in common before they differ.
inline size_t common_words(const std::string& a, const std::string& b) {
  const auto x = words_of(a), y = words_of(b);
  return static_cast<size_t>(std::ranges::mismatch(x, y).in1 - x.begin());
}

/// A prompt has a token for each word and one for its beginning. Answer k of the server is "kA kB
/// kA ..." of max_tokens words. Its prefix cache has what it was ever asked.
class fake_model {
public:
  struct asked {
    std::vector<std::string> said; ///< contents of messages, or the prompt alone
    std::string all;               ///< the same as one text
    uint32_t max_tokens = 0;
  };

  explicit fake_model(uint32_t context = 100'000)
      : context_{context}, server_{
                               {},
                               {{"http", "127.0.0.1", 0, [this](auto e) { answer(e); }, {}, {}}}} {
    server_.start();
  }

  /// Fails request `number` (from 0, the warm-up included) with 500.
  void fail(size_t number) { failing_ = number; }

  /// `lamella bench serve` with these words, in `folder`.
  program_result bench(const scratch_folder& folder, const std::string& words) {
    return run_shell(folder / ".", "timeout 300 lamella bench serve --url http://127.0.0.1:"
                                       + std::to_string(server_.port("http")) + " " + words);
  }

  /// Those for answers, in their order; the first is the warm-up.
  std::vector<asked> requests() {
    const std::lock_guard lock{mutex_};
    return requests_;
  }

  /// Answer `number` as words.
  static std::string answer_of(size_t number, uint32_t tokens) {
    std::string text;
    for (uint32_t i = 0; i < tokens; ++i)
      text += (i ? " " : "") + std::to_string(number) + (i % 2 ? "B" : "A");
    return text;
  }

private:
  static const std::string& text_at(const json_value& x, const char* name) {
    return *x.find(name)->get_if<std::string>();
  }

  static asked read(const json_value& body) {
    asked x;
    if (const auto* prompt = body.find("prompt"); prompt != nullptr)
      x.said.push_back(*prompt->get_if<std::string>());
    else
      for (const auto& each : *body.find("messages")->get_if<json_value::array>())
        x.said.push_back(text_at(each, "content"));
    for (const auto& each : x.said) x.all += (x.all.empty() ? "" : " ") + each;
    return x;
  }

  void answer(const net::http_exchange_ptr& exchange) {
    const std::lock_guard lock{mutex_};
    const auto& request = exchange->request();
    const net::http_headers json{{"content-type", "application/json"}};
    if (request.path == "/v1/models")
      return exchange->respond(200, json,
                               R"({"data":[{"id":"fake","max_model_len":)"
                                   + std::to_string(context_) + "}]}");
    const auto body = parse_json(request.body);
    auto x = read(body);
    const auto words = words_of(x.all).size();
    if (request.path == "/tokenize") {
      const auto count = words + (body.find("add_special_tokens") == nullptr ? 1 : 0);
      return exchange->respond(200, json, R"({"count":)" + std::to_string(count) + "}");
    }
    x.max_tokens = static_cast<uint32_t>(*body.find("max_tokens")->get_if<int64_t>());
    const auto number = requests_.size();
    size_t cached = 0;
    for (const auto& each : requests_) cached = std::max(cached, common_words(each.all, x.all));
    requests_.push_back(x);
    if (number == failing_) return exchange->respond(500, json, R"({"error":{"code":"broken"}})");
    exchange->respond(200, {{"content-type", "text/event-stream"}},
                      stream(number, x.max_tokens, words + 1, cached));
  }

  static std::string stream(size_t number, uint32_t tokens, size_t prompt, size_t cached) {
    std::string out;
    for (uint32_t i = 0; i < tokens; ++i) {
      json_writer piece;
      const auto word = (i ? " " : "") + std::to_string(number) + (i % 2 ? "B" : "A");
      piece.begin_object().key("choices").begin_array().begin_object().member("text", word);
      piece.key("delta").begin_object().member("content", word).end_object();
      if (i + 1 == tokens) piece.member("finish_reason", "length");
      out += "data: " + piece.end_object().end_array().end_object().take() + "\n\n";
    }
    json_writer usage;
    usage.begin_object().key("choices").begin_array().end_array().key("usage").begin_object();
    usage.member("prompt_tokens", prompt).member("completion_tokens", tokens);
    usage.key("prompt_tokens_details").begin_object().member("cached_tokens", cached).end_object();
    return out + "data: " + usage.end_object().end_object().take() + "\n\ndata: [DONE]\n\n";
  }

  const uint32_t context_;
  size_t failing_ = ~size_t{0};
  std::mutex mutex_; ///< of the requests
  std::vector<asked> requests_;
  net::http_server server_;
};

} // namespace lamella::tests
