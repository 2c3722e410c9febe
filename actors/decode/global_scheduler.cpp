#include "actors/decode/global_scheduler.hpp"

#include "actors/decode/idle_kv.hpp"
#include "actors/decode/prompt_placement.hpp"
#include "actors/decode/quarantine.hpp"
#include "actors/protocol/admission.hpp"
#include "actors/protocol/batches.hpp"
#include "actors/protocol/kv.hpp"
#include "actors/protocol/prefills.hpp"
#include "actors/shared/exceptions.hpp"

#include <algorithm>

namespace lamella::actors {

namespace {

using scheduler::limits::slots_to_start;

/// Time until sequences that were asked to yield are asked again.
constexpr caf::timespan yield_timeout = std::chrono::milliseconds{50};

sequence_id nth(sequence_id first, uint32_t k) {
  return sequence_id{static_cast<uint64_t>(first) + k};
}

/// Sequences that run, and prompts that wait: in the queue, or for their prefill.
queue_status counts_of(const global_scheduler_state& st) {
  queue_status result;
  result.running = st.seated.size();
  for (const auto& [first, x] : st.unbegun) result.running -= x.choices;
  result.waiting = st.queue->waiting() + st.held.size() + st.unbegun.size();
  if (const auto& canary = st.config.canary) {
    const auto waits = st.waiting.find(*canary);
    if ((waits != st.waiting.end() && waits->second.fits) || st.unbegun.contains(*canary))
      --result.waiting;
    else if (st.seated.contains(*canary))
      --result.running;
  }
  return result;
}

/// The same with the wait of the oldest prompt among them. Cost: O(waiting prompts).
queue_status status_of(scheduler_ptr self) {
  const auto& st = self->state;
  const auto now = self->clock().now();
  auto result = counts_of(st);
  auto oldest = now;
  for (const auto& [first, x] : st.unbegun) oldest = std::min(oldest, x.since);
  for (const auto& [first, x] : st.waiting)
    if (x.fits) oldest = std::min(oldest, x.since);
  result.oldest_ms = static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::milliseconds>(now - oldest).count());
  return result;
}

void publish(scheduler_ptr self) {
  const auto& st = self->state;
  if (st.config.metrics) {
    const auto now = counts_of(st);
    st.config.metrics->set_requests(now.running, now.waiting);
    st.config.metrics->set_mailbox_depth("scheduler", self->mailbox().size());
  }
  if (st.config.health)
    st.config.health->set_queue_full(st.queue->waiting() >= st.queue->limits().queue_requests
                                     || st.queue->waiting_tokens()
                                            >= st.queue->limits().queue_tokens);
}

void answer(scheduler_ptr self, sequence_id first, caf::error reason) {
  auto node = self->state.waiting.extract(first);
  if (node) node.mapped().promise.deliver(std::move(reason));
}

void pump(scheduler_ptr self);

double now_of(scheduler_ptr self) {
  return std::chrono::duration<double>{self->clock().now().time_since_epoch()}.count();
}

/// Whether KV that begins is on the host of its batch's replica, where there was a choice.
void count_place(const global_scheduler_config& config, uint32_t batch, const kv_holding& held,
                 uint32_t choices) {
  if (config.near_tables.empty() || held.kept || !config.metrics) return;
  const auto& near = config.near_tables.at(batch);
  config.metrics->kv_placed(std::ranges::count(near, held.member) > 0, choices);
}

/// The head of the queue got its slots: give it a batch and a prefill worker.
void start(scheduler_ptr self, const scheduler::admission_entry& entry, uint32_t batch,
           const kv_grant& grant) {
  auto& st = self->state;
  st.seats[batch] += entry.choices;
  st.idle.erase(entry.first);
  for (uint32_t k = 0; k < entry.choices; ++k) st.seated[nth(entry.first, k)] = batch;
  auto node = st.waiting.extract(entry.first);
  const auto& held = grant.holdings.front();
  count_place(st.config, batch, held, entry.choices);
  const auto tokens = entry.prompt_tokens - held.cached;
  // With its KV nothing is computed: it takes no worker's time.
  const auto now = now_of(self);
  sort_machines(st, now);
  tokens_come(st, batch, entry.choices, now);
  const prompt_place prompt{entry.first, tokens, held.cached > 0, batch, now};
  const auto worker = held.kept ? 0 : prefill_worker_for(st, prompt);
  if (!held.kept) st.unbegun[entry.first] = {entry.choices, node.mapped().since, worker, tokens};
  node.mapped().promise.deliver(admitted{stream_id{batch}, worker, grant.holdings});
}

kv_reserve needs_of(const global_scheduler_config& config, const scheduler::admission_entry& entry,
                    const kv_text& text, uint32_t batch) {
  kv_reserve result;
  result.tell = true;
  result.epoch = config.epoch;
  const auto mode = entry.has_kv ? reserve_mode::resume : reserve_mode::fresh;
  for (uint32_t k = 0; k < entry.choices; ++k) {
    const auto holder = nth(entry.first, k);
    if (k == 0)
      // The newest token has no K and V yet.
      result.needs.push_back({holder,
                              slots_to_start(entry.prompt_tokens, config.window_slots),
                              {},
                              0,
                              mode,
                              entry.has_kv ? entry.prompt_tokens - 1 : 0,
                              text});
    else
      result.needs.push_back({holder, config.window_slots, entry.first, entry.prompt_tokens, mode});
  }
  if (!config.near_tables.empty()) result.needs.front().near = config.near_tables.at(batch);
  return result;
}

/// The head may have room now. A refusal that is on its way does not know of that.
void end_starving(global_scheduler_state& st) {
  st.starved = false;
  st.again = st.asking;
}

/// Starts as much of the queue as there is room for; one reservation at a time, in order.
void pump(scheduler_ptr self) {
  auto& st = self->state;
  publish(self);
  if (st.asking || st.starved) return;
  auto entry = st.queue->next(st.config.seats_per_batch, st.config.slots);
  if (!entry) return;
  const auto load = load_for(st, entry->first);
  if (!load) return;
  const auto batch = batch_for(st, *load, entry->choices);
  if (!batch) return;
  st.asking = true;
  auto needs = needs_of(st.config, *entry, st.waiting.at(entry->first).text, *batch);
  // What runs must be able to grow.
  if (!st.seated.empty()) needs.keep_free = st.config.spare_slots;
  self->request(st.allocator, std::chrono::seconds{30}, needs)
      .then(
          [self, entry = *entry, batch = *batch](const kv_grant& grant) {
            auto& state = self->state;
            state.asking = state.again = false;
            if (state.waiting.contains(entry.first) && !state.held.contains(entry.first)) {
              // Not the head any more if a resumed one came meanwhile.
              state.queue->withdraw(entry.first);
              start(self, entry, batch, grant);
              // Its place was chosen before the question.
              if (state.config.suspects && state.config.suspects->hunting())
                self->send(self, wake_atom_v);
            } else { // withdrawn or held meanwhile
              state.idle.erase(entry.first);
              kv_release back;
              back.epoch = state.config.epoch;
              for (const auto& x : grant.holdings) back.holders.push_back(x.holder);
              self->send(state.allocator, back);
            }
            pump(self);
          },
          [self, first = entry->first](caf::error&) {
            self->state.asking = false;
            if (std::exchange(self->state.again, false)) return pump(self);
            self->state.starved = true;
            take_idle_kv(self, first);
            publish(self);
          });
}

/// Until the pipeline is made anew. It would keep others from room that it cannot use.
caf::result<admitted> wait_for_room(scheduler_ptr self, const admit& x) {
  auto promise = self->make_response_promise<admitted>();
  if (x.has_kv) self->send(self->state.allocator, kv_release{{x.first}, self->state.config.epoch});
  self->state.waiting.emplace(
      x.first, global_scheduler_state::waiter{promise, x.text, self->clock().now(), false});
  return promise;
}

caf::result<admitted> on_admit(scheduler_ptr self, const admit& x) {
  auto& st = self->state;
  if (st.draining && !x.resumed) return caf::make_error(ec::draining);
  const scheduler::admission_entry entry{
      x.first,         x.choices,
      x.prompt_tokens, slots_to_start(x.prompt_tokens, st.config.window_slots, x.choices),
      x.resumed,       x.resumed && x.has_kv};
  if (entry.slots > st.config.slots || x.choices > st.config.seats_per_batch) {
    // It was accepted by a larger pool, and waits for the pipeline that has that size again.
    if (x.resumed) return wait_for_room(self, x);
    return caf::make_error(ec::never_fits,
                           std::to_string(entry.slots) + " slots and " + std::to_string(x.choices)
                               + " seats needed, " + std::to_string(st.config.slots) + " and "
                               + std::to_string(st.config.seats_per_batch) + " available");
  }
  if (is_poisonous(st, x.first)) return caf::make_error(ec::request_poisoned);
  if (entry.has_kv) st.idle.insert(x.first);
  if (must_wait(st, x.first)) {
    if (!x.resumed && st.queue->waiting() + st.held.size() >= st.queue->limits().queue_requests)
      return caf::make_error(ec::queue_full);
    auto promise = self->make_response_promise<admitted>();
    st.held.emplace(x.first, entry);
    st.waiting.emplace(x.first,
                       global_scheduler_state::waiter{promise, x.text, self->clock().now()});
    publish(self);
    return promise;
  }
  switch (st.queue->offer(entry)) {
  case scheduler::admission_verdict::queue_requests:
    return caf::make_error(ec::queue_full);
  case scheduler::admission_verdict::queue_tokens:
    return caf::make_error(ec::queue_tokens);
  case scheduler::admission_verdict::queued:
    break;
  }
  auto promise = self->make_response_promise<admitted>();
  st.waiting.emplace(x.first, global_scheduler_state::waiter{promise, x.text, self->clock().now()});
  if (x.resumed) end_starving(st); // it may be the head now, and want less
  pump(self);
  return promise;
}

/// Who may run has changed: some are held from now on, some go on, some must leave.
void sort_out(scheduler_ptr self) {
  auto& st = self->state;
  std::vector<sequence_id> waiting;
  for (const auto& [first, waiter] : st.waiting) waiting.push_back(first);
  for (auto first : waiting) {
    auto held = st.held.find(first);
    if (is_poisonous(st, first)) {
      if (held != st.held.end()) st.held.erase(held);
      st.queue->withdraw(first);
      answer(self, first, caf::make_error(ec::request_poisoned));
    } else if (held != st.held.end() && !must_wait(st, first)) {
      auto entry = held->second;
      entry.resumed = true; // it was accepted: it is not refused again
      st.held.erase(held);
      st.queue->offer(entry);
    } else if (held == st.held.end() && must_wait(st, first)) {
      if (auto entry = st.queue->take(first)) st.held.emplace(first, *entry);
    }
  }
  if (make_room(self) && !std::exchange(st.clearing, true))
    self->delayed_send(self, yield_timeout, wake_atom_v);
  end_starving(st);
  pump(self);
}

void on_retire(scheduler_ptr self, const retire& x) {
  if (x.kept)
    self->state.idle.insert(x.sequence);
  else
    self->state.idle.erase(x.sequence);
  self->state.unbegun.erase(x.sequence);
  auto node = self->state.seated.extract(x.sequence);
  if (node) --self->state.seats[node.mapped()];
  sort_machines(self->state, now_of(self));
  if (!node) return;
  // Now nothing has to be kept free for those that run: a refusal may no longer hold, and no slot
  // may ever come back to say so.
  if (self->state.seated.empty()) end_starving(self->state);
  pump(self);
}

} // namespace

global_scheduler_actor::behavior_type
global_scheduler(scheduler_ptr self, global_scheduler_config config, kv_allocator_actor allocator) {
  end_on_exceptions(self);
  auto& st = self->state;
  st.config = std::move(config);
  st.allocator = std::move(allocator);
  st.queue.emplace(st.config.limits);
  st.seats.assign(st.config.batches, 0);
  st.labels = labels_of(st.config);
  st.prefill_left.assign(st.config.prefill_workers + st.config.mixed_workers, 0);
  if (st.config.metrics) st.config.metrics->set_mixed_replicas(0); // of the pipeline before
  if (st.config.suspects)
    st.config.suspects->on_change([me = caf::actor_cast<caf::actor_addr>(self)] {
      if (const auto lives = caf::actor_cast<caf::actor>(me)) caf::anon_send(lives, wake_atom_v);
    });
  // Without it there is nothing to schedule: the supervisor restarts both.
  self->monitor(st.allocator);
  self->set_down_handler([self](const caf::down_msg& down) {
    self->quit(down.reason ? down.reason : caf::make_error(caf::sec::runtime_error));
  });
  return {
      [self](const admit& x) { return on_admit(self, x); },
      [self](const withdraw& x) {
        // A pending reservation then finds no waiting entry and frees its slots.
        self->state.queue->withdraw(x.first);
        self->state.held.erase(x.first);
        answer(self, x.first, caf::make_error(ec::cancelled));
        end_starving(self->state);
        pump(self);
      },
      [self](const retire& x) { on_retire(self, x); },
      [self](const prefill_begun& x) {
        if (self->state.unbegun.erase(x.first) > 0) publish(self);
      },
      [self](const prefill_load& x) {
        const auto worker = worker_of(self->state, x.stream);
        if (worker >= self->state.prefill_left.size()) return;
        self->state.prefill_left[worker] = x.tokens;
        sort_machines(self->state, now_of(self));
      },
      [self](const kv_freed&) {
        end_starving(self->state);
        pump(self);
      },
      [self](drain_atom) { self->state.draining = true; },
      [self](const scheduler::admission_limits& x) {
        self->state.queue->set_limits(x);
        publish(self);
      },
      [self](const batch_ready& x) {
        self->state.batches[static_cast<uint32_t>(x.stream)] = x.handle;
      },
      [self](wake_atom) {
        self->state.clearing = false;
        sort_out(self);
      },
      [self](status_atom) { return status_of(self); },
  };
}

} // namespace lamella::actors
