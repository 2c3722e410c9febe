#include "actors/request/aside.hpp"

#include "actors/shared/exceptions.hpp"
#include "base/patience.hpp"

#include <spdlog/spdlog.h>

#include <utility>

namespace lamella::actors {

namespace {

using aside_ptr = aside_actor::stateful_pointer<aside_state>;

struct worker_state {
  bool patient = false; ///< its thread has been told so
  const char* name = "aside_worker";
};

aside_worker_actor::behavior_type worker(aside_worker_actor::stateful_pointer<worker_state> self,
                                         aside_actor boss, bool patient) {
  end_on_exceptions(self);
  return {
      [self, boss = std::move(boss), patient](const aside_job& job) {
        // Threads of lanes with long jobs leave the processors to others.
        if (patient && !std::exchange(self->state.patient, true)) be_patient();
        try {
          job.run();
        } catch (const std::exception& error) {
          spdlog::error("aside error=\"{}\"", error.what());
        }
        self->send(boss, aside_idle{job.lane, self});
      },
  };
}

/// Hands out what waits to those that wait.
void hand_out(aside_ptr self, aside_lane which) {
  auto& lane = self->state.lanes[static_cast<size_t>(which)];
  while (!lane.waiting.empty() && !lane.idle.empty()) {
    self->send(lane.idle.back(), aside_job{which, std::move(lane.waiting.front())});
    lane.waiting.pop_front();
    lane.idle.pop_back();
  }
}

} // namespace

aside_actor::behavior_type aside(aside_ptr self, aside_config config) {
  end_on_exceptions(self);
  for (size_t i = 0; i < aside_lanes; ++i)
    for (uint32_t k = 0; k < config.workers; ++k) {
      const aside_actor me{self};
      const bool patient = config.threads && static_cast<aside_lane>(i) != aside_lane::brief;
      self->state.lanes[i].idle.push_back(
          config.threads ? self->spawn<caf::linked + caf::detached>(worker, me, patient)
                         : self->spawn<caf::linked>(worker, me, patient));
    }
  return {
      [self](const aside_job& job) {
        self->state.lanes[static_cast<size_t>(job.lane)].waiting.push_back(job.run);
        hand_out(self, job.lane);
      },
      [self](const aside_idle& x) {
        self->state.lanes[static_cast<size_t>(x.lane)].idle.push_back(x.worker);
        hand_out(self, x.lane);
      },
  };
}

} // namespace lamella::actors
