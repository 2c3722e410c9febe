/// A GLOBAL SCHEDULER, and an allocator that does what a test says.
#pragma once

#include "actors/decode/global_scheduler.hpp"
#include "actors/kv/kv_allocator.hpp"
#include "actors/protocol/admission.hpp"
#include "actors/protocol/prefills.hpp"
#include "tests/actors/stand_ins.hpp"

namespace lamella::actors::test {

inline global_scheduler_config small_scheduler() {
  global_scheduler_config c;
  c.limits = {4, 1000};
  c.batches = 2;
  c.seats_per_batch = 2;
  c.prefill_workers = 2;
  c.window_slots = 10;
  c.slots = 100;
  c.spare_slots = 5;
  return c;
}

/// With an allocator that does what the test says.
struct scheduler_world : stage {
  std::shared_ptr<allocator_book> kv = std::make_shared<allocator_book>();
  global_scheduler_actor scheduler;

  explicit scheduler_world(global_scheduler_config c = small_scheduler()) {
    scheduler = spawn(global_scheduler, std::move(c), spawn(stand_in_allocator(kv)));
  }
  std::shared_ptr<reply<admitted>> offer(uint64_t request, uint32_t tokens = 10,
                                         uint32_t choices = 1, bool resumed = false) {
    auto answer = ask<admitted>(scheduler, admit{seq(request), choices, tokens, resumed});
    settle();
    return answer;
  }
  template <class Message> void tell(Message x) {
    caf::anon_send(scheduler, std::move(x));
    settle();
  }
};

} // namespace lamella::actors::test
