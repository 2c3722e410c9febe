#include "model/chat/reasoning.hpp"

#include "model/chat/marked_text.hpp"

namespace lamella::model {

const std::vector<reasoning_marks>& known_reasoning_marks() {
  static const std::vector<reasoning_marks> all{
      {"<think>", "</think>"},                    // Qwen3, QwQ, DeepSeek R1, GLM, MiniMax
      {"[THINK]", "[/THINK]"},                    // Magistral
      {"<seed:think>", "</seed:think>"},          // Seed OSS
      {"<|START_THINKING|>", "<|END_THINKING|>"}, // Command A
      {"<|channel|>analysis<|message|>", "<|end|>", answer_form::channels}, // gpt-oss
      {">>>all", ">>>", answer_form::recipients}};                          // Functionary 3.2
  return all;
}

std::vector<std::string> reasoning_marks::tokens() const {
  switch (form) {
  case answer_form::marks:
    return {begin, end};
  case answer_form::channels:
    return {"<|channel|>", "<|message|>", "<|end|>", "<|start|>"};
  case answer_form::recipients:
    break;
  }
  return {};
}

namespace {

/// Messages of reasoning, and of what is said before a call, and `answer` behind them.
grammar::node_id behind_messages(grammar& g, grammar::node_id answer,
                                 std::optional<grammar::node_id> end) {
  const auto next = g.choice();
  const auto text = text_up_to(g, "<|end|>", g.text("<|start|>assistant", next), end);
  const auto channels = g.texts({"analysis", "commentary"}, g.text("<|message|>", text));
  g.branch(next, {g.text("<|channel|>", channels), answer});
  return next;
}

} // namespace

reasoning_start reasoning_start_of(std::string_view prompt_end, const reasoning_marks& marks) {
  if (!marks.any()) return reasoning_start::closed;
  if (marks.form != answer_form::marks) {
    const bool begins = marks.form == answer_form::channels
                            ? prompt_end.ends_with("<|start|>assistant")
                            : prompt_end.ends_with(marks.end);
    return begins ? reasoning_start::open : reasoning_start::closed;
  }
  const auto last = prompt_end.find_last_not_of(" \n");
  const auto text = prompt_end.substr(0, last == prompt_end.npos ? 0 : last + 1);
  if (text.ends_with(marks.begin)) return reasoning_start::begun;
  return text.ends_with(marks.end) ? reasoning_start::closed : reasoning_start::open;
}

grammar::node_id as_text(grammar& g, const answer_reasoning& x, grammar::node_id text) {
  if (x.start == reasoning_start::closed || x.marks.form == answer_form::marks) return text;
  const bool on_channel = x.marks.form == answer_form::channels;
  return g.text(on_channel ? "<|channel|>final<|message|>" : "all\n", text);
}

grammar::node_id behind_reasoning(grammar& g, const answer_reasoning& x, grammar::node_id answer,
                                  std::optional<grammar::node_id> end) {
  if (x.start == reasoning_start::closed || x.marks.form == answer_form::recipients) return answer;
  if (x.marks.form == answer_form::channels) return behind_messages(g, answer, end);
  const auto behind = g.maybe(g.text("\n", g.maybe(g.text("\n", answer), answer)), answer);
  const auto reasoning = text_up_to(g, x.marks.end, behind, end);
  if (x.start == reasoning_start::begun) return reasoning;
  return g.choice({g.text(x.marks.begin, reasoning), answer});
}

} // namespace lamella::model
