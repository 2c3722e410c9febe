#include "actors/request/choice.hpp"

#include "actors/request/logprobs.hpp"
#include "base/utf8.hpp"

#include <algorithm>
#include <utility>

namespace lamella::actors {

choice::choice(const model::tokenizer& text, const net::generation_params& params,
               std::optional<model::token_id> before, const model::tool_dialect* calls,
               std::string unfinished, const model::answer_reasoning* reasoning)
    : text_{&text}, before_{before}, stops_{params.stop}, min_tokens_{params.min_tokens},
      wants_logprobs_{params.logprobs.has_value()},
      // Marks of calls and reasoning may be special tokens.
      skips_specials_{params.skip_special_tokens && calls == nullptr && reasoning == nullptr},
      detokenizer_{text,
                   skips_specials_ ? model::detokenizer::specials::skipped
                                   : model::detokenizer::specials::shown,
                   before, std::move(unfinished)},
      matcher_{params.stop}, tells_reasoning_{params.include_reasoning} {
  if (reasoning != nullptr) reasoning_.emplace(*reasoning);
  if (calls == nullptr) return;
  calls_.emplace(*calls);
  stop_ids_ = params.stop_token_ids;
}

bool choice::stops_at(token_id token) const {
  return std::find(stop_ids_.begin(), stop_ids_.end(), token) != stop_ids_.end()
         && calls_->reads_as_text(text_->text_after(before_, token));
}

/// Text of the answer, in which stop strings are looked for.
void choice::say(const std::string& text) {
  pending_.text += matcher_.feed(text, tokens_.size() > min_tokens_);
  if (const auto which = matcher_.matched()) {
    stopped_by_ = stops_[*which];
    reason_ = finish::stop;
  }
}

void choice::hear(net::answer_piece piece) {
  say(piece.text);
  if (over() || piece.calls.empty()) return;
  pending_.text += matcher_.finish(); // the text ends where a call begins
  for (auto& x : piece.calls) pending_.calls.push_back(std::move(x));
}

/// What comes behind the reasoning.
void choice::answer(const std::string& text) { calls_ ? hear(calls_->feed(text)) : say(text); }

void choice::think(std::string_view reasoning) {
  if (!tells_reasoning_ || reasoning.empty()) return;
  const auto before = pending_.ends.empty() ? net::part_end{} : pending_.ends.back();
  if (pending_.text.size() > before.text)
    pending_.ends.push_back({pending_.reasoning.size(), pending_.text.size()});
  pending_.reasoning += reasoning;
}

void choice::hear(const std::string& text) {
  if (!reasoning_) return answer(text);
  const auto piece = reasoning_->feed(text);
  for (const auto& part : net::parts_of(piece.reasoning, piece.text, piece.ends)) {
    if (over()) return;
    think(part.reasoning);
    answer(std::string{part.text});
  }
}

void choice::push(const sampled_token& drawn, finish reason) {
  if (over()) return;
  if (reason != finish::stop && stops_at(drawn.token)) reason = finish::stop;
  const auto before = std::exchange(before_, drawn.token);
  tokens_.push_back(drawn.token);
  sum_logprob_ += drawn.logprob;
  if (reason == finish::stop) { // an end token: drawn, but not part of the text
    if (!text_->is_end(drawn.token)) stopped_by_ = drawn.token;
    close(reason);
    return;
  }
  // A code point that is held back until it is complete begins where its first token does.
  const uint32_t held = detokenizer_.held() > 0 ? 1 : 0;
  const auto text = detokenizer_.push(drawn.token);
  if (wants_logprobs_) {
    auto& entry = pending_.logprobs.emplace_back(describe(*text_, before, drawn));
    entry.code_points =
        static_cast<uint32_t>(code_points(text)) + (detokenizer_.held() > 0 ? 1 : 0) - held;
  }
  if (reasoning_ && reasoning_->reasons()) ++reasoning_tokens_;
  hear(text);
  if (!over() && reason != finish::none) close(reason);
}

void choice::close(finish reason) {
  if (over()) return;
  hear(detokenizer_.finish());
  if (reasoning_ && !over()) {
    const auto rest = reasoning_->finish();
    think(rest.reasoning);
    answer(rest.text);
  }
  if (!over() && calls_) hear(calls_->finish());
  if (over()) return; // the rest completed a stop string
  pending_.text += matcher_.finish();
  reason_ = reason;
}

choice_piece choice::take() {
  if (!has_text()) return {};
  return std::exchange(pending_, {});
}

} // namespace lamella::actors
