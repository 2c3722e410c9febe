#include "actors/global_scheduler.hpp"

#include "scheduler/placement.hpp"

namespace lamella::actors {

namespace {

using scheduler_ptr = global_scheduler_actor::stateful_pointer<global_scheduler_state>;

sequence_id nth(sequence_id first, uint32_t k) {
  return sequence_id{static_cast<uint64_t>(first) + k};
}

void publish(scheduler_ptr self) {
  const auto& st = self->state;
  if (st.config.numbers) st.config.numbers->set_requests(st.seated.size(), st.queue->waiting());
  if (st.config.health)
    st.config.health->set_queue_full(st.queue->waiting() >= st.config.limits.queue_requests
                                     || st.queue->waiting_tokens()
                                            >= st.config.limits.queue_tokens);
}

void answer(scheduler_ptr self, sequence_id first, caf::error reason) {
  auto node = self->state.waiting.extract(first);
  if (node) node.mapped().deliver(std::move(reason));
}

void pump(scheduler_ptr self);

/// The head of the queue got its slots: give it a batch and a prefill worker.
void start(scheduler_ptr self, const scheduler::admission_entry& entry, uint32_t batch,
           const kv_grant& grant) {
  auto& st = self->state;
  st.seats[batch] += entry.choices;
  for (uint32_t k = 0; k < entry.choices; ++k) st.seated[nth(entry.first, k)] = batch;
  auto node = st.waiting.extract(entry.first);
  node.mapped().deliver(
      admitted{stream_id{batch}, st.next_prefill++ % st.config.prefill_workers, grant.holdings});
}

kv_reserve needs_of(const global_scheduler_config& config,
                    const scheduler::admission_entry& entry) {
  kv_reserve result;
  result.tell = true;
  for (uint32_t k = 0; k < entry.choices; ++k) {
    const auto holder = nth(entry.first, k);
    if (k == 0)
      result.needs.push_back({holder, entry.prompt_tokens + config.window_slots, {}, 0});
    else
      result.needs.push_back({holder, config.window_slots, entry.first, entry.prompt_tokens});
  }
  return result;
}

/// Starts as much of the queue as there is room for; one reservation at a time, in order.
void pump(scheduler_ptr self) {
  auto& st = self->state;
  publish(self);
  if (st.asking || st.starved) return;
  auto entry = st.queue->next(st.config.seats_per_batch, st.config.slots);
  if (!entry) return;
  const auto batch = scheduler::least_loaded(st.seats, st.config.seats_per_batch, entry->choices);
  if (!batch) return;
  st.asking = true;
  auto needs = needs_of(st.config, *entry);
  // What runs must be able to grow: start new work only while a twentieth would be left.
  if (!st.seated.empty()) needs.keep_free = st.config.slots / 20;
  self->request(st.allocator, std::chrono::seconds{30}, needs)
      .then(
          [self, entry = *entry, batch = *batch](const kv_grant& grant) {
            auto& state = self->state;
            state.asking = false;
            if (state.waiting.contains(entry.first)) {
              // Not the head any more if a resumed one came meanwhile.
              state.queue->withdraw(entry.first);
              start(self, entry, batch, grant);
            } else { // withdrawn meanwhile
              kv_release back;
              for (const auto& x : grant.holdings) back.holders.push_back(x.holder);
              self->send(state.allocator, back);
            }
            pump(self);
          },
          [self](caf::error&) {
            self->state.asking = false;
            self->state.starved = true;
            publish(self);
          });
}

caf::result<admitted> on_admit(scheduler_ptr self, const admit& x) {
  auto& st = self->state;
  if (st.draining && !x.resumed) return caf::make_error(ec::draining);
  const scheduler::admission_entry entry{x.first, x.choices, x.prompt_tokens,
                                         x.prompt_tokens + x.choices * st.config.window_slots,
                                         x.resumed};
  if (entry.slots > st.config.slots || x.choices > st.config.seats_per_batch)
    return caf::make_error(ec::never_fits,
                           std::to_string(entry.slots) + " slots and " + std::to_string(x.choices)
                               + " seats wanted, " + std::to_string(st.config.slots) + " and "
                               + std::to_string(st.config.seats_per_batch) + " there");
  switch (st.queue->offer(entry)) {
  case scheduler::admission_verdict::queue_requests:
    return caf::make_error(ec::queue_full);
  case scheduler::admission_verdict::queue_tokens:
    return caf::make_error(ec::queue_tokens);
  case scheduler::admission_verdict::queued:
    break;
  }
  auto promise = self->make_response_promise<admitted>();
  st.waiting.emplace(x.first, promise);
  pump(self);
  return promise;
}

void on_retire(scheduler_ptr self, sequence_id sequence) {
  auto node = self->state.seated.extract(sequence);
  if (!node) return;
  --self->state.seats[node.mapped()];
  // Now nothing has to be kept free for those that run: a refusal may no longer hold, and no slot
  // may ever come back to say so.
  if (self->state.seated.empty()) self->state.starved = false;
  pump(self);
}

} // namespace

global_scheduler_actor::behavior_type
global_scheduler(global_scheduler_actor::stateful_pointer<global_scheduler_state> self,
                 global_scheduler_config config, kv_allocator_actor allocator) {
  auto& st = self->state;
  st.config = std::move(config);
  st.allocator = std::move(allocator);
  st.queue.emplace(st.config.limits);
  st.seats.assign(st.config.batches, 0);
  return {
      [self](const admit& x) { return on_admit(self, x); },
      [self](const withdraw& x) {
        // A reservation under way finds nobody waiting and gives its slots back.
        self->state.queue->withdraw(x.first);
        answer(self, x.first, caf::make_error(ec::cancelled));
        self->state.starved = false;
        pump(self);
      },
      [self](const retire& x) { on_retire(self, x.sequence); },
      [self](const kv_freed&) {
        self->state.starved = false;
        pump(self);
      },
      [self](drain_atom) { self->state.draining = true; },
      [self](status_atom) -> caf::result<uint64_t, uint64_t> {
        return {uint64_t{self->state.seated.size()}, uint64_t{self->state.queue->waiting()}};
      },
  };
}

} // namespace lamella::actors
