#include "actors/request/request_end.hpp"

#include "actors/protocol/admission.hpp"
#include "actors/protocol/batches.hpp"
#include "actors/protocol/kv.hpp"
#include "actors/protocol/prefills.hpp"
#include "actors/request/answer.hpp"
#include "actors/request/request_report.hpp"

#include <spdlog/spdlog.h>

namespace lamella::actors {

namespace {

using phase = request_sequence::phase;

} // namespace

void quit_if_idle(request_ptr self) {
  const auto& st = self->state;
  // Of a pipeline that is lost nobody answers.
  const bool waits = st.open_questions > 0 && !st.down;
  if (st.answered && !st.writing && st.unsent.empty() && !waits) self->quit();
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

void fail(request_ptr self, const net::api_error& error) {
  fail(self, error,
       error.status < 500 ? net::request_outcome::rejected : net::request_outcome::error);
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
