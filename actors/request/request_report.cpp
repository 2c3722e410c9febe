#include "actors/request/request_report.hpp"

#include "actors/request/request_trace.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>

namespace lamella::actors {

namespace {

using phase = request_sequence::phase;
using seconds = std::chrono::duration<double>;

request_note::state state_of(const request_state& st, bool paused) {
  using state = request_note::state;
  if (!st.writer) return st.answered ? state::sending : state::reading;
  if (st.answered) return state::sending;
  if (paused) return state::recovering;
  if (st.stalled) return state::stalled;
  const auto some = [&](phase where) {
    return std::any_of(st.sequences.begin(), st.sequences.end(),
                       [&](const auto& s) { return s.where == where; });
  };
  if (some(phase::decoding)) return state::decoding;
  return some(phase::prefilling) ? state::prefilling : state::waiting;
}

/// That of its first one where there is no other.
std::chrono::steady_clock::time_point last_token_of(const request_state& st) {
  auto last = st.first_token;
  for (const auto& s : st.sequences) last = std::max(last, s.last_token);
  return last;
}

} // namespace

net::usage_counts usage_of(const request_state& st) {
  net::usage_counts usage;
  for (const auto& p : st.prompts) usage.prompt_tokens += p.size();
  for (const auto& s : st.sequences) {
    usage.completion_tokens += s.text->tokens().size();
    usage.reasoning_tokens += s.text->reasoning_tokens();
  }
  for (size_t i = 0; i < st.sequences.size(); i += st.choices)
    usage.cached_tokens += st.sequences[i].cached; // of choices of one prompt: once, as the prompt
  return usage;
}

void report(request_ptr self, net::request_outcome outcome, int status, const std::string& code) {
  auto& st = self->state;
  const auto now = self->clock().now();
  const auto usage = usage_of(st);
  net::request_times times;
  times.e2e = seconds{now - st.arrived}.count();
  times.queue = st.has_started ? seconds{st.started - st.arrived}.count() : times.e2e;
  if (st.has_started)
    times.prefill = seconds{(st.has_first_token ? st.first_token : now) - st.started}.count();
  times.decode = seconds{last_token_of(st) - st.first_token}.count();
  times.gaps = seconds{st.gaps}.count();
  times.gap_count = st.gap_count;
  times.prompt_tokens = usage.prompt_tokens;
  times.generated_tokens = usage.completion_tokens;
  times.max_tokens = st.max_tokens;
  times.n = st.params.n;
  times.end = net::request_end::abort;
  if (outcome == net::request_outcome::done && !st.sequences.empty())
    times.end = st.sequences.front().text->reason() == finish::length ? net::request_end::length
                                                                      : net::request_end::stop;
  st.server->metrics->http_request(net::route_name(st.route), "POST", status, times.e2e);
  st.server->metrics->request_ended(outcome, code);
  if (outcome != net::request_outcome::rejected) st.server->metrics->request_finished(times);
  end_trace(st, {outcome, status, code, usage, now});
  const char* names[] = {"done", "error", "cancelled", "rejected"};
  spdlog::info("request_id={} request={} outcome={} code={} prompt_tokens={} generated_tokens={} "
               "choices={} queue_ms={:.1f} prefill_ms={:.1f} ttft_ms={:.1f} e2e_ms={:.1f} "
               "recoveries={} recovery_pause_ms={:.1f}",
               st.exchange->request().request_id, static_cast<uint64_t>(st.id),
               names[static_cast<size_t>(outcome)], code.empty() ? "-" : code, times.prompt_tokens,
               times.generated_tokens, st.sequences.size(), times.queue * 1e3, times.prefill * 1e3,
               (st.has_first_token ? seconds{st.first_token - st.arrived}.count() : 0) * 1e3,
               times.e2e * 1e3, st.recoveries, seconds{st.longest_pause}.count() * 1e3);
}

std::string_view name_of(request_note::state x) {
  constexpr std::string_view names[] = {"reading", "waiting",    "prefilling", "decoding",
                                        "stalled", "recovering", "sending"};
  return names[static_cast<size_t>(x)];
}

void note_progress(const request_state& st) {
  if (!st.note) return;
  auto& x = *st.note;
  int64_t since = 0;
  uint64_t generated = 0;
  for (const auto& s : st.sequences) {
    if (!s.text) continue;
    generated += s.text->tokens().size();
    if (!s.paused_since || s.text->over()) continue;
    const int64_t at = s.paused_since->time_since_epoch().count();
    since = since == 0 ? at : std::min(since, at);
  }
  x.generated = generated;
  x.paused_since_ns = since;
  x.recoveries = st.recoveries;
  if (x.prompt_tokens == 0)
    for (const auto& prompt : st.prompts) x.prompt_tokens += prompt.size();
  x.where = state_of(st, since != 0);
}

} // namespace lamella::actors
