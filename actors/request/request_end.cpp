#include "actors/request/request_end.hpp"

#include "actors/protocol/kv.hpp"
#include "actors/protocol/prefills.hpp"
#include "actors/protocol/requests.hpp"

#include <spdlog/spdlog.h>

namespace lamella::actors {

namespace {

using phase = request_sequence::phase;
using seconds = std::chrono::duration<double>;

} // namespace

void report(request_ptr self, net::request_outcome outcome, int status, const std::string& code) {
  auto& st = self->state;
  const auto now = self->clock().now();
  const auto usage = usage_of(st);
  net::request_times times;
  times.e2e = seconds{now - st.arrived}.count();
  times.queue = st.has_started ? seconds{st.started - st.arrived}.count() : times.e2e;
  if (st.has_first_token) {
    times.prefill = seconds{st.first_token - st.started}.count();
    times.decode = seconds{now - st.first_token}.count();
  }
  times.prompt_tokens = usage.prompt_tokens;
  times.generated_tokens = usage.completion_tokens;
  times.max_tokens = st.max_tokens;
  times.n = st.params.n;
  times.end = net::request_end::abort;
  if (outcome == net::request_outcome::done && !st.sequences.empty())
    times.end = st.sequences.front().text->reason() == finish::length ? net::request_end::length
                                                                      : net::request_end::stop;
  st.server->metrics->http_request(st.chat ? "/v1/chat/completions" : "/v1/completions", "POST",
                                   status, times.e2e);
  st.server->metrics->request_ended(outcome, code);
  if (outcome != net::request_outcome::rejected) st.server->metrics->request_finished(times);
  const char* names[] = {"done", "error", "cancelled", "rejected"};
  spdlog::info("request_id={} request={} outcome={} code={} prompt_tokens={} generated_tokens={} "
               "choices={} queue_ms={:.1f} ttft_ms={:.1f} e2e_ms={:.1f} recoveries={} "
               "recovery_pause_ms={:.1f}",
               st.exchange->request().request_id, static_cast<uint64_t>(st.id),
               names[static_cast<size_t>(outcome)], code.empty() ? "-" : code, times.prompt_tokens,
               times.generated_tokens, st.sequences.size(), times.queue * 1e3,
               (st.has_first_token ? seconds{st.first_token - st.arrived}.count() : 0) * 1e3,
               times.e2e * 1e3, st.recoveries, seconds{st.longest_pause}.count() * 1e3);
}

void quit_if_idle(request_ptr self) {
  const auto& st = self->state;
  if (st.answered && !st.writing && st.unsent.empty() && st.open_questions == 0) self->quit();
}

void leave_batch(request_ptr self, size_t index, bool tell) {
  const auto& st = self->state;
  const auto batch = static_cast<uint32_t>(st.sequences[index].batch);
  self->send(st.server->batches.at(batch), batch_leave{st.sequence(index), tell});
}

void stop_work(request_ptr self) {
  auto& st = self->state;
  for (size_t i = 0; i < st.sequences.size(); ++i) {
    auto& s = st.sequences[i];
    if (s.yielded) {
      give_back(self, i);
    } else if (s.where == phase::waiting) {
      self->send(st.server->scheduler, withdraw{st.sequence(i)});
    } else if (s.where == phase::prefilling) {
      for (const auto& worker : st.server->prefill_workers)
        self->send(worker, prefill_cancel{st.sequence(i)});
    } else if (s.where == phase::decoding) {
      leave_batch(self, i);
      s.where = phase::done;
    }
  }
}

void fail(request_ptr self, const net::api_error& error, net::request_outcome outcome) {
  auto& st = self->state;
  // A whole answer of which a slow reader has not taken all is not failed any more.
  if (st.answered || st.ending == stream_end::whole) return;
  if (st.server->pauses) st.server->pauses->goes_on(st.id);
  report(self, outcome, st.streaming ? 200 : error.status, error.code);
  refuse(self, error);
  stop_work(self);
  quit_if_idle(self);
}

void fail_poisoned(request_ptr self) {
  const auto& st = self->state;
  if (st.answered) return;
  // FNV-1a over the tokens: the same request is known again, and its text is nowhere.
  uint64_t digest = 0xcbf29ce484222325;
  for (const auto& prompt : st.prompts)
    for (auto t : prompt) digest = (digest ^ t) * 0x100000001b3;
  spdlog::error("request poisoned request_id={} request={} digest={:016x} prompt_tokens={} "
                "generated_tokens={}",
                st.exchange->request().request_id, static_cast<uint64_t>(st.id), digest,
                usage_of(st).prompt_tokens, usage_of(st).completion_tokens);
  st.server->metrics->request_poisoned();
  fail(self, net::request_poisoned());
}

void give_back(request_ptr self, size_t index) {
  auto& st = self->state;
  st.sequences[index].where = phase::done;
  self->send(st.server->allocator, kv_release{{st.sequence(index)}, st.server->epoch});
  self->send(st.server->scheduler, retire{st.sequence(index)});
}

void speak_and_finish(request_ptr self) {
  speak(self);
  quit_if_idle(self);
}

} // namespace lamella::actors
