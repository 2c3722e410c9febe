#include "model/chat/reasoning.hpp"

#include "model/chat/marked_text.hpp"

namespace lamella::model {

const std::vector<reasoning_marks>& known_reasoning_marks() {
  static const std::vector<reasoning_marks> all{
      {"<think>", "</think>"},                     // Qwen3, QwQ, DeepSeek R1, GLM, MiniMax
      {"[THINK]", "[/THINK]"},                     // Magistral
      {"<seed:think>", "</seed:think>"},           // Seed OSS
      {"<|START_THINKING|>", "<|END_THINKING|>"}}; // Command A
  return all;
}

reasoning_start reasoning_start_of(std::string_view prompt_end, const reasoning_marks& marks) {
  if (!marks.any()) return reasoning_start::closed;
  const auto last = prompt_end.find_last_not_of(" \n");
  const auto text = prompt_end.substr(0, last == prompt_end.npos ? 0 : last + 1);
  if (text.ends_with(marks.begin)) return reasoning_start::begun;
  return text.ends_with(marks.end) ? reasoning_start::closed : reasoning_start::open;
}

grammar::node_id behind_reasoning(grammar& g, const answer_reasoning& x, grammar::node_id answer,
                                  std::optional<grammar::node_id> end) {
  if (x.start == reasoning_start::closed) return answer;
  const auto behind = g.maybe(g.text("\n", g.maybe(g.text("\n", answer), answer)), answer);
  const auto reasoning = text_up_to(g, x.marks.end, behind, end);
  if (x.start == reasoning_start::begun) return reasoning;
  return g.choice({g.text(x.marks.begin, reasoning), answer});
}

} // namespace lamella::model
