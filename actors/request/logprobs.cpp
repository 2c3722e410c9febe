#include "actors/request/logprobs.hpp"

#include "base/utf8.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace lamella::actors {

namespace {

/// JSON has no infinity: what the API says instead of it.
double finite_logprob(float x) { return std::isfinite(x) ? double{x} : -9999.0; }

} // namespace

net::token_logprobs describe(const model::tokenizer& text, std::optional<token_id> before,
                             const sampled_token& drawn) {
  const auto added = [&](token_id x) { return std::string{text.text_after(before, x)}; };
  net::token_logprobs out;
  out.bytes = added(drawn.token);
  out.logprob = finite_logprob(drawn.logprob);
  for (const auto& x : drawn.top) out.top.push_back({added(x.token), finite_logprob(x.logprob)});
  return out;
}

prompt_echo::prompt_echo(const model::tokenizer& tokens, prompt_scores_ptr scores,
                         std::string shown, const std::string& unfinished, uint32_t alternatives)
    : tokens_{&tokens}, scores_{std::move(scores)}, text_{std::move(shown)}, shown_{text_.size()},
      alternatives_{alternatives} {
  text_ += unfinished;
}

/// The code points, as the text is written, that begin before `end` and were not counted so far: a
/// byte that belongs to none is one, U+FFFD.
uint32_t prompt_echo::count_to(size_t end) {
  uint32_t count = 0;
  for (; counted_ < end; ++count) counted_ += decode_utf8(text_, counted_).bytes;
  return count;
}

/// Code points of the text that a token of these bytes stands for. Where a tokeniser changes text
/// before it cuts it, they are as many as those of the token, as long as there are any.
uint32_t prompt_echo::take(std::string_view bytes, token_id token) {
  const auto rest = std::string_view{text_}.substr(at_);
  if (rest.starts_with(bytes)) {
    at_ += bytes.size();
    return count_to(at_);
  }
  if (tokens_->is_special(token)) return 0;
  uint32_t taken = 0;
  for (auto left = code_points(bytes); left > 0 && counted_ < text_.size(); --left)
    taken += count_to(counted_ + 1);
  if (taken > 0) at_ = counted_;
  return taken;
}

echo_piece prompt_echo::next(size_t least) {
  echo_piece piece;
  const auto from = std::min(at_, shown_);
  for (size_t i = 0; !done() && (i < least || (at_ < shown_ && at_ < counted_)); ++i, ++next_) {
    std::optional<token_id> before;
    if (next_ == 1) before = scores_->first;
    if (next_ > 1) before = scores_->rest[next_ - 2].token;
    net::token_logprobs entry;
    if (next_ == 0)
      entry.bytes = tokens_->text_after(before, scores_->first);
    else
      entry = describe(*tokens_, before, scores_->rest[next_ - 1]);
    if (entry.top.size() > alternatives_) entry.top.resize(alternatives_);
    entry.code_points =
        take(entry.bytes, next_ == 0 ? scores_->first : scores_->rest[next_ - 1].token);
    piece.logprobs.push_back(std::move(entry));
  }
  if (done()) at_ = text_.size();
  piece.text = text_.substr(from, std::min(at_, shown_) - from);
  return piece;
}

net::prompt_candidates candidates_of(const model::tokenizer& tokens, const prompt_scores& scores,
                                     uint32_t alternatives) {
  net::prompt_candidates result(1);
  result.reserve(scores.rest.size() + 1);
  std::optional<token_id> before = scores.first;
  for (const auto& x : scores.rest) {
    const auto candidate = [&](token_id id, size_t rank, float logprob) {
      return net::prompt_candidate{id, static_cast<uint32_t>(rank), finite_logprob(logprob),
                                   std::string{tokens.text_after(before, id)}};
    };
    auto& all = result.emplace_back();
    all.push_back(candidate(x.token, x.rank, x.logprob));
    for (size_t i = 0; i < std::min<size_t>(x.top.size(), alternatives); ++i)
      if (x.top[i].token != x.token)
        all.push_back(candidate(x.top[i].token, i + 1, x.top[i].logprob));
    before = x.token;
  }
  return result;
}

} // namespace lamella::actors
