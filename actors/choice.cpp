#include "actors/choice.hpp"

#include <cmath>

namespace lamella::actors {

namespace {

/// JSON has no infinity: what the API says instead of it.
double finite_logprob(float x) { return std::isfinite(x) ? double{x} : -9999.0; }

net::token_logprobs describe(const model::tokenizer& text, const sampled_token& drawn) {
  net::token_logprobs out;
  out.bytes = std::string{text.token_bytes(drawn.token)};
  out.logprob = finite_logprob(drawn.logprob);
  for (const auto& x : drawn.top)
    out.top.push_back({std::string{text.token_bytes(x.token)}, finite_logprob(x.logprob)});
  return out;
}

} // namespace

choice::choice(const model::tokenizer& text, const net::generation_params& params)
    : text_{&text}, stops_{params.stop}, wants_logprobs_{params.logprobs.has_value()},
      detokenizer_{text, params.skip_special_tokens ? model::detokenizer::specials::skipped
                                                    : model::detokenizer::specials::shown},
      matcher_{params.stop} {}

void choice::release(std::string text) {
  pending_.text += matcher_.feed(text);
  if (const auto which = matcher_.matched()) {
    reason_ = finish::stop;
    stopped_by_ = stops_[*which];
  }
}

void choice::push(const sampled_token& drawn, finish reason) {
  if (over()) return;
  tokens_.push_back(drawn.token);
  sum_logprob_ += drawn.logprob;
  if (reason == finish::stop) { // an end token: drawn, but not part of the text
    if (!text_->is_end(drawn.token)) stopped_by_ = drawn.token;
    close(reason);
    return;
  }
  if (wants_logprobs_) pending_.logprobs.push_back(describe(*text_, drawn));
  release(detokenizer_.push(drawn.token));
  if (!over() && reason != finish::none) close(reason);
}

void choice::close(finish reason) {
  if (over()) return;
  release(detokenizer_.finish());
  if (over()) return; // the rest completed a stop string
  pending_.text += matcher_.finish();
  reason_ = reason;
}

choice_piece choice::take() {
  if (!has_text()) return {};
  return std::exchange(pending_, {});
}

} // namespace lamella::actors
