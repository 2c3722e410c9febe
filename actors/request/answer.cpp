#include "actors/request/answer.hpp"

#include "actors/request/request_report.hpp"
#include "net/http/http_ids.hpp"
#include "net/http/sse.hpp"

#include <algorithm>
#include <iterator>
#include <limits>
#include <numeric>

namespace lamella::actors {

namespace {

net::finish_reason api_reason(const choice& x) {
  if (x.reason() == finish::length) return net::finish_reason::length;
  return x.calls() > 0 ? net::finish_reason::tool_calls : net::finish_reason::stop;
}

/// Always the same for a call, however often it is told.
std::string call_id(const request_state& st, size_t sequence, uint32_t call) {
  const auto salt = (uint64_t{sequence} << 32 | call) * 0x9e3779b97f4a7c15;
  return net::make_response_id(st.writer->call_prefix(), st.call_ids[0] ^ salt, st.call_ids[1]);
}

std::vector<net::tool_call> calls_of(const request_state& st, size_t sequence,
                                     const choice_piece& piece) {
  std::vector<net::tool_call> calls;
  for (const auto& x : piece.calls) {
    if (!x.name.empty()) calls.push_back({call_id(st, sequence, x.call), x.name, {}});
    calls.back().arguments += x.arguments;
  }
  return calls;
}

double milliseconds(std::chrono::steady_clock::duration d) {
  return std::chrono::duration<double, std::milli>(d).count();
}

bool all_over(const request_state& st) {
  return std::all_of(st.sequences.begin(), st.sequences.end(),
                     [](const auto& s) { return s.text->over(); });
}

/// Which sequences become choices, and under which index: all of them, or of each prompt the best
/// by mean log probability where more were drawn than asked for (best_of).
std::vector<uint32_t> chosen(const request_state& st) {
  std::vector<uint32_t> result;
  for (size_t p = 0; p < st.prompts.size(); ++p) {
    std::vector<uint32_t> of_prompt(st.choices);
    std::iota(of_prompt.begin(), of_prompt.end(), static_cast<uint32_t>(p * st.choices));
    if (st.choices > st.params.n) {
      const auto mean = [&](uint32_t i) {
        const auto& text = *st.sequences[i].text;
        return text.sum_logprob() / std::max<double>(1, static_cast<double>(text.tokens().size()));
      };
      std::stable_sort(of_prompt.begin(), of_prompt.end(),
                       [&](auto a, auto b) { return mean(a) > mean(b); });
      of_prompt.resize(st.params.n);
    }
    result.insert(result.end(), of_prompt.begin(), of_prompt.end());
  }
  return result;
}

net::response_metrics metrics_of(const request_state& st,
                                 std::chrono::steady_clock::time_point now) {
  net::response_metrics m;
  uint64_t tokens = 0;
  for (const auto& s : st.sequences) tokens += s.text->tokens().size();
  m.recoveries = st.recoveries;
  m.recovery_pause_ms = milliseconds(st.longest_pause);
  if (st.has_started) m.queue_time_ms = milliseconds(st.started - st.arrived);
  if (st.has_first_token) {
    m.time_to_first_token_ms = milliseconds(st.first_token - st.arrived);
    m.generation_time_ms = milliseconds(now - st.first_token);
    if (m.generation_time_ms > 0)
      m.tokens_per_second = static_cast<double>(tokens) * 1000 / m.generation_time_ms;
    if (st.gap_count > 0) m.mean_itl_ms = milliseconds(st.gaps) / static_cast<double>(st.gap_count);
  }
  return m;
}

/// What of its body and schemas means nothing.
void add_facts(const request_state& st, net::http_headers& headers) {
  if (!st.ignored_keywords.empty()) headers.add("x-lamella-ignored-keywords", st.ignored_keywords);
  if (!st.ignored_fields.empty()) headers.add("x-lamella-ignored-fields", st.ignored_fields);
}

net::http_headers json_headers(request_ptr self) {
  net::http_headers headers{{"content-type", "application/json"}};
  headers.add("openai-processing-ms", std::to_string(static_cast<int64_t>(milliseconds(
                                          self->clock().now() - self->state.arrived))));
  add_facts(self->state, headers);
  return headers;
}

/// Tokens of an echoed prompt that one event of a stream has about, with their log probabilities.
constexpr size_t echoed_at_once = 256;

/// Of the prompt of a sequence, which is scored.
prompt_echo echo_of(const request_state& st, size_t sequence) {
  const auto prompt = sequence / st.choices;
  return {*st.server->text, st.scores[prompt], st.prompt_texts[prompt], st.prompt_ends[prompt],
          *st.params.logprobs};
}

/// What a whole answer is written of.
struct whole_answer {
  std::shared_ptr<net::answer_writer> writer;
  service_ptr server;                             ///< whose tokeniser is used
  std::vector<std::optional<prompt_echo>> echoes; ///< by choice
  std::vector<prompt_scores_ptr> scores;          ///< by choice; null where they are not wanted
  uint32_t alternatives = 0;                      ///< of these
  std::vector<net::response_choice> choices;
  net::usage_counts usage;
  std::optional<net::response_metrics> metrics;
  net::http_headers headers;

  std::string body() {
    for (size_t i = 0; i < choices.size(); ++i) {
      auto& x = choices[i];
      if (scores[i]) x.prompt_logprobs = candidates_of(*server->text, *scores[i], alternatives);
      if (!echoes[i]) continue;
      auto echoed = echoes[i]->next(std::numeric_limits<size_t>::max());
      x.text.insert(0, echoed.text);
      x.logprobs->insert(x.logprobs->begin(), std::move_iterator{echoed.logprobs.begin()},
                         std::move_iterator{echoed.logprobs.end()});
    }
    return writer->body(choices, usage, metrics ? &*metrics : nullptr);
  }
};

/// Bytes that it takes, roughly.
size_t size_of(const whole_answer& x) {
  constexpr size_t of_logprob = 128;
  size_t bytes = 0;
  for (const auto& choice : x.choices) {
    bytes += choice.text.size() + choice.reasoning.size();
    for (const auto& call : choice.tool_calls) bytes += call.arguments.size();
    if (choice.logprobs)
      for (const auto& token : *choice.logprobs) bytes += of_logprob * (1 + token.top.size());
  }
  for (const auto& prompt : x.scores)
    if (prompt) bytes += of_logprob * prompt->rest.size() * (1 + x.alternatives);
  for (const auto& echo : x.echoes)
    if (echo) bytes += of_logprob * echo->tokens() * (1 + echo->alternatives());
  return bytes;
}

/// Answers of many tokens with their alternatives take long to write: that is done aside.
void respond_whole(request_ptr self) {
  auto& st = self->state;
  auto x = std::make_shared<whole_answer>();
  auto& choices = x->choices;
  for (auto i : chosen(st)) {
    auto& text = *st.sequences[i].text;
    auto piece = text.take();
    net::response_choice c;
    c.index = static_cast<uint32_t>(choices.size());
    if (st.echo && !st.echoes_scores()) c.text = st.prompt_texts[i / st.choices];
    c.text += piece.text;
    c.reasoning = std::move(piece.reasoning);
    c.ends = std::move(piece.ends);
    c.tool_calls = calls_of(st, i, piece);
    c.reason = api_reason(text);
    c.stopped_by = text.stopped_by();
    if (st.params.logprobs) c.logprobs = std::move(piece.logprobs);
    x->echoes.push_back(st.echoes_scores() ? std::optional{echo_of(st, i)} : std::nullopt);
    x->scores.push_back(st.params.prompt_logprobs ? st.scores[i / st.choices] : nullptr);
    choices.push_back(std::move(c));
  }
  x->writer = st.writer;
  x->server = st.server;
  x->alternatives = st.params.prompt_logprobs.value_or(0);
  x->usage = usage_of(st);
  if (st.exchange->request().headers.get("x-lamella-metrics") == "1")
    x->metrics = metrics_of(st, self->clock().now());
  x->headers = json_headers(self);
  st.answered = st.writing = true;
  report(self, net::request_outcome::done, 200, {});
  self->send(st.server->aside,
             aside_job{lane_of(size_of(*x)),
                       [x, exchange = st.exchange, me = caf::actor_cast<request_actor>(self)] {
                         try {
                           exchange->respond(200, std::move(x->headers), x->body());
                         } catch (const std::exception& error) { // before anything was sent
                           net::respond_error(*exchange, net::internal_error(error.what()));
                         }
                         caf::anon_send(me, written_atom_v);
                       }});
}

/// Reasoning and text in their order, then calls; log probabilities with the first event that can
/// have them.
std::string render_piece(request_state& st, uint32_t i, const choice_piece& piece,
                         const net::usage_counts& running) {
  std::string out;
  const auto* logprobs = st.params.logprobs ? &piece.logprobs : nullptr;
  for (const auto& part : net::parts_of(piece.reasoning, piece.text, piece.ends)) {
    if (!part.reasoning.empty()) {
      out += st.writer->reasoning(i, part.reasoning, logprobs, running);
      logprobs = nullptr;
    }
    if (!part.text.empty() || (piece.calls.empty() && part.reasoning.empty())) {
      out += st.writer->text(i, part.text, logprobs, running);
      logprobs = nullptr;
    }
  }
  for (const auto& x : piece.calls) {
    if (!x.name.empty()) out += st.writer->call(i, x.call, call_id(st, i, x.call), x.name, running);
    if (x.arguments.empty()) continue;
    out += st.writer->arguments(i, x.call, x.arguments, logprobs, running);
    logprobs = nullptr;
  }
  return out;
}

/// The next part of a scored prompt of a stream, where there is room for it beside those of other
/// choices; false: what follows it cannot be said yet.
bool render_echo(request_state& st, uint32_t i, std::string& out,
                 const net::usage_counts& running) {
  auto& s = st.sequences[i];
  if (!st.echoes_scores() || (s.echo && s.echo->done())) return true;
  if (st.unscored(i) || out.size() >= st.server->piece_bytes) return false;
  if (!s.echo) s.echo.emplace(echo_of(st, i));
  const auto piece = s.echo->next(echoed_at_once);
  out += st.writer->text(i, piece.text, &piece.logprobs, running);
  return s.echo->done();
}

/// All events that can be sent now.
std::string render_events(request_state& st) {
  std::string out;
  const auto running = usage_of(st);
  for (uint32_t i = 0; i < st.sequences.size(); ++i) {
    auto& s = st.sequences[i];
    if (!s.said_first) {
      s.said_first = true;
      out += st.writer->begin(i, running);
      if (st.echo && !st.echoes_scores() && !st.prompt_texts[i / st.choices].empty())
        out += st.writer->text(i, st.prompt_texts[i / st.choices], nullptr, running);
    }
    if (!render_echo(st, i, out, running)) continue;
    if (s.text->has_text()) out += render_piece(st, i, s.text->take(), running);
    if (s.text->over() && !s.said_last) {
      s.said_last = true;
      out += st.writer->finish(i, api_reason(*s.text), s.text->stopped_by(), running);
    }
  }
  return out;
}

/// Gives the socket its next piece. What waits for a slow reader may be larger than one.
void send(request_ptr self) {
  auto& st = self->state;
  st.writing = true;
  st.last_written = self->clock().now();
  auto piece = st.unsent.substr(st.unsent_from, st.server->piece_bytes);
  st.unsent_from += piece.size();
  if (st.unsent_from == st.unsent.size()) {
    st.unsent.clear();
    st.unsent_from = 0;
  }
  const bool last = st.ending != stream_end::open && st.unsent.empty();
  const bool failed = st.ending == stream_end::failed;
  if (last && !failed) {
    st.answered = true;
    report(self, net::request_outcome::done, 200, {});
  }
  st.exchange->write(std::move(piece), [me = caf::actor_cast<request_actor>(self),
                                        exchange = st.exchange, last, failed](bool ok) {
    if (ok && last) exchange->finish(failed);
    if (ok || last)
      caf::anon_send(me, written_atom_v);
    else
      caf::anon_send(me, cancel_atom_v);
  });
}

} // namespace

void open_stream(request_ptr self) {
  auto& st = self->state;
  if (st.streaming) return;
  st.streaming = true;
  auto headers = net::sse_headers();
  add_facts(st, headers);
  st.exchange->start_stream(std::move(headers));
}

void speak(request_ptr self) {
  auto& st = self->state;
  if (st.writing) return;
  if (!st.unsent.empty()) return send(self); // the reader is behind: tokens wait as tokens
  if (st.answered) return;
  if (!st.params.stream) {
    if (all_over(st)) respond_whole(self);
    return;
  }
  open_stream(self);
  st.unsent = render_events(st);
  if (std::all_of(st.sequences.begin(), st.sequences.end(),
                  [](const auto& s) { return s.said_last; })) {
    st.unsent += st.writer->end(usage_of(st));
    st.ending = stream_end::whole;
  }
  if (!st.unsent.empty()) send(self);
}

void ping(request_ptr self) {
  auto& st = self->state;
  if (st.answered || !st.params.stream) return;
  if (!st.streaming) {
    speak(self); // headers and role: the client knows that it was accepted
    return;
  }
  if (!st.writing && self->clock().now() - st.last_written >= st.server->ping) {
    st.unsent = st.writer->ping();
    send(self);
  }
}

void refuse(request_ptr self, const net::api_error& error) {
  auto& st = self->state;
  if (st.answered) return;
  st.answered = true;
  if (!st.streaming) {
    net::respond_error(*st.exchange, error);
    return;
  }
  // Half an event may be out: the rest of it comes first.
  st.unsent += st.writer->error(error, st.exchange->request().request_id);
  st.ending = stream_end::failed;
  if (!st.writing) send(self);
}

} // namespace lamella::actors
