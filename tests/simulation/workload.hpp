/// Clients of a simulated cluster, and the checker of what they got.
#pragma once

#include "tests/simulation/cluster.hpp"
#include "tests/simulation/golden.hpp"

namespace lamella::simulation {

/// One client: what it asks, when it goes away, how it reads.
struct client {
  std::vector<uint32_t> prompt;
  uint32_t max_tokens = 1, choices = 1;
  uint64_t seed = 0;
  bool stream = false, penalised = false, held = false, slow = false;
  bool endless = false;           ///< the end token ends nothing; its answer cannot be checked
  bool scored = false;            ///< asks for the log probabilities of its prompt
  std::optional<duration> leaves; ///< after its start
  bool left = false;
  time_point began{};
  std::shared_ptr<actors::test::fake_exchange> exchange;

  std::string body() const {
    std::string ids;
    for (auto t : prompt) ids += (ids.empty() ? "" : ",") + std::to_string(t);
    auto text = R"({"model":"integer","prompt":[)" + ids + R"(],"max_tokens":)"
                + std::to_string(max_tokens) + R"(,"n":)" + std::to_string(choices) + R"(,"seed":)"
                + std::to_string(seed);
    if (endless) text += R"(,"ignore_eos":true)";
    if (stream) text += R"(,"stream":true)";
    if (penalised) text += R"(,"presence_penalty":0.5)";
    if (scored) text += R"(,"prompt_logprobs":0)";
    if (held) text += R"(,"guided_regex":")" + std::string{held_answer::expression} + "\"";
    return text + "}";
  }
  /// It was not accepted, and may come again.
  bool refused() const {
    return exchange && !left && exchange->status == 503
           && exchange->body.find("no_capacity") != std::string::npos;
  }
  bool over() const { return exchange && (exchange->answers > 0 || left); }
};

constexpr uint32_t most_prompt = 40, most_tokens = 70;
/// In slots: those the last window rounds up to are reserved as well.
constexpr uint32_t longest_sequence = most_prompt + most_tokens + 32;

inline client draw_client(tests::splitmix& dice) {
  client c;
  for (auto n = 1 + dice.below(most_prompt); n > 0; --n)
    c.prompt.push_back(first_byte + static_cast<uint32_t>(dice.below(256)));
  c.max_tokens = 1 + static_cast<uint32_t>(dice.below(dice.below(3) == 0 ? most_tokens : 30));
  c.choices = dice.below(4) == 0 ? 2 : 1;
  c.seed = dice.below(1'000'000);
  c.stream = dice.below(2) == 0;
  c.penalised = dice.below(4) == 0;
  c.held = dice.below(4) == 0;
  c.slow = c.stream && dice.below(6) == 0;
  c.scored = !c.stream && c.seed % 3 == 0;
  if (c.scored && c.seed % 5 == 0) c.max_tokens = 0; // the prompt alone
  if (dice.below(6) == 0) c.leaves = duration{dice.below(200'000'000)};
  // Every other one begins as the others do, for as long as its prompt is or a part of it.
  if (c.seed % 2 == 0)
    for (size_t i = 0; i < std::min<size_t>(c.prompt.size(), 16 + c.seed / 2 % 20); ++i)
      c.prompt[i] = first_byte + static_cast<uint32_t>(i * 7 % 256);
  return c;
}

/// Sends it off; it leaves and reads on its own from then on.
inline void begin(cluster& where, client& c) {
  c.exchange = std::make_shared<actors::test::fake_exchange>(c.body());
  c.exchange->takes = !c.slow;
  c.began = where.time.now();
  where.post(c.exchange);
  if (c.leaves)
    where.time.in(*c.leaves, [x = c.exchange, &c] {
      if (x->answers > 0) return;
      c.left = true;
      x->disconnect();
    });
  if (!c.slow) return;
  struct reader {
    static void reads(timeline& time, std::shared_ptr<actors::test::fake_exchange> x) {
      x->drain();
      if (x->answers == 0 || x->pending)
        time.in(time.between(1ms, x->streamed.size() % 7 == 0 ? duration{8s} : duration{200ms}),
                [&time, x] { reads(time, x); });
    }
  };
  reader::reads(where.time, c.exchange);
}

/// The reason why a choice of an answer ended, as the client was told; empty: it was not told.
inline std::string reason_of(const actors::test::fake_exchange& x, int64_t choice) {
  std::string found;
  const auto look = [&](const std::string& text) {
    const auto json = parse_json(text);
    const auto* list = json.find("choices");
    if (list == nullptr) return;
    for (const auto& c : *list->get_if<json_value::array>())
      if (*c.find("index")->get_if<int64_t>() == choice)
        if (const auto* r = c.find("finish_reason"))
          if (const auto* word = r->get_if<std::string>()) found += *word;
  };
  if (!x.body.empty()) look(x.body);
  for (size_t from = 0; (from = x.streamed.find("data: {", from)) != std::string::npos;) {
    from += 6;
    look(x.streamed.substr(from, x.streamed.find("\n\n", from) - from));
  }
  return found;
}

/// Whether a choice of an answer has these log probabilities of its prompt.
inline bool has_scores(const client& c, uint32_t choice, const std::vector<float>& want) {
  const auto json = parse_json(c.exchange->body);
  const auto& list = *json.find("choices")->get_if<json_value::array>();
  const auto* scores = list.at(choice).find("prompt_logprobs");
  if (scores == nullptr) return false;
  const auto& tokens = *scores->get_if<json_value::array>();
  if (tokens.size() != c.prompt.size()) return false;
  for (size_t i = 1; i < tokens.size(); ++i) {
    const auto* told = tokens[i].find(std::to_string(c.prompt[i]));
    const auto* logprob = told ? told->find("logprob")->get_if<double>() : nullptr;
    if (logprob == nullptr || *logprob != want[i - 1]) return false;
  }
  return true;
}

/// What is wrong with what a client got; empty: nothing (I1, I2, I3).
inline std::string check(const client& c) {
  const auto& x = *c.exchange;
  if (x.answers > 1) return std::to_string(x.answers) + " ends";
  if (x.answers == 0 && !c.left) return "no end";
  if (!c.left && x.status != 200) return "status " + std::to_string(x.status) + ": " + x.body;
  const bool complete = x.answers == 1 && !c.left;
  if (complete && c.stream != x.done()) return "the end mark is missing, or not asked for";
  for (uint32_t k = 0; k < c.choices; ++k) {
    const auto want = golden_run{the_model()}.answer(c.prompt, c.max_tokens, c.seed, k,
                                                     c.penalised ? 0.5f : 0, c.held);
    const auto got = x.text(k);
    const auto told =
        "choice " + std::to_string(k) + ": \"" + got + "\" instead of \"" + want.text() + "\"";
    if (complete ? got != want.text() : !want.text().starts_with(got)) return told;
    if (complete && c.scored && !has_scores(c, k, want.scores))
      return "choice " + std::to_string(k) + ": the prompt's log probabilities: " + x.body;
    const auto reason = reason_of(x, k);
    const auto right = want.stopped() ? "stop" : "length";
    if (complete ? reason != right : !reason.empty() && reason != right)
      return told + ", reason " + reason + " instead of " + right;
  }
  return {};
}

} // namespace lamella::simulation
