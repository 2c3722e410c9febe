#include "actors/worker/worker.hpp"

#include "actors/device/gpu_executor.hpp"
#include "actors/protocol/epochs.hpp"
#include "actors/protocol/watches.hpp"
#include "actors/protocol/work_reports.hpp"
#include "actors/protocol/workers.hpp"
#include "actors/shared/end_watch.hpp"
#include "actors/shared/exceptions.hpp"
#include "actors/shared/explain.hpp"
#include "actors/shared/injury.hpp"
#include "actors/worker/worker_parts.hpp"
#include "actors/worker/worker_report.hpp"
#include "actors/worker/worker_trace.hpp"
#include "actors/worker/worker_watch.hpp"
#include "base/failpoint.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>

namespace lamella::actors {

namespace {

/// So many looks in a row, so far apart, must find something that does not end.
constexpr uint32_t late_looks_max = 3;
constexpr std::chrono::milliseconds late_poll_interval{250};

/// What a step of a slowed device takes longer.
constexpr std::chrono::microseconds slow_step{500};

/// Tells an actor of an epoch to end, and remembers since when it is ending.
template <class Handle> void tell_to_end(worker_ptr self, const Handle& x) {
  const auto address = caf::actor_cast<caf::actor_addr>(x);
  self->demonitor(address);
  self->monitor(address);
  self->state.ending.emplace(address, self->clock().now());
  self->send_exit(x, caf::exit_reason::user_shutdown);
}

/// Ends what lends KV; nobody takes it any more.
void end_lending(worker_ptr self, worker_epoch& at) {
  at.lends.clear();
  if (!at.lender) return;
  tell_to_end(self, std::exchange(at.lender, {}));
  tell_to_end(self, std::exchange(at.lends_on, {}));
}

/// Ends what was made for an epoch; what still runs ends soon, or hangs.
void end_epoch(worker_ptr self, uint64_t epoch) {
  auto& st = self->state;
  auto node = st.epochs.extract(epoch);
  if (!node) return;
  auto& at = node.mapped();
  keep_counts(st, at);
  at.links.clear();
  end_lending(self, at);
  for (const auto& part : std::exchange(at.parts, {})) tell_to_end(self, part);
  for (const auto& executor : std::exchange(at.executors, {})) tell_to_end(self, executor);
  if (!st.ending.empty()) self->delayed_send(self, hang_limit, wake_atom_v);
  st.config.port.close(epoch);
}

/// All but the epoch `stays`.
void end_epochs(worker_ptr self, uint64_t stays = 0) {
  std::vector<uint64_t> over;
  for (const auto& [epoch, at] : self->state.epochs)
    if (epoch != stays) over.push_back(epoch);
  for (const auto epoch : over) end_epoch(self, epoch);
}

/// From now on so many streams can be made at once, on the devices of all ranks. False: a device
/// cannot have those of all epochs that are open.
bool prepare_streams(const worker_state& st) {
  const auto count = [&, own = device_streams(st)](uint32_t rank) {
    return st.config.streams_on_device ? st.config.streams_on_device(rank) * st.epochs.size() : own;
  };
  bool room = st.device->prepare_streams(count(0));
  for (uint32_t r = 0; r < st.other_devices.size(); ++r)
    room = st.other_devices[r]->prepare_streams(count(r + 1)) && room;
  return room;
}

/// It cannot have its part in an epoch.
void refuse_epoch(worker_ptr self, worker_state::opening& next, uint64_t epoch, caf::error why) {
  spdlog::error("cannot open epoch seat={} epoch={} reason=\"{}\"",
                scheduler::to_string(self->state.config.where), epoch,
                explain(self->system(), why));
  end_epoch(self, epoch);
  next.promise.deliver(std::move(why));
}

/// Nothing of the epochs before runs any more, but for the one that it is opened beside.
void open_epoch(worker_ptr self) {
  auto& st = self->state;
  auto next = std::move(*st.next);
  st.next.reset();
  const auto name = scheduler::to_string(st.config.where);
  const auto epoch = next.order.epoch;
  try {
    failpoint_or_throw(failpoint::worker_epoch_open);
    if (next.order.beside != 0 && !st.epochs.contains(next.order.beside)
        && next.order.lender != no_part)
      throw std::runtime_error{"the epoch whose KV it lends is over"};
    auto& at = st.epochs[epoch];
    at.order = std::move(next.order);
    if (!st.device) open_device(st, name);
    if (!prepare_streams(st) && st.epochs.size() > 1)
      return refuse_epoch(
          self, next, epoch,
          caf::make_error(ec::no_memory, fmt::format("the device of {} has not enough streams for "
                                                     "two epochs at once",
                                                     name)));
    auto answer = make_parts(self, at);
    spdlog::info("epoch open seat={} epoch={} number={} links={} kept={}", name, epoch,
                 at.order.number == no_part ? "none" : std::to_string(at.order.number),
                 at.links.size() + at.lends.size(), answer.kept);
    next.promise.deliver(std::move(answer));
  } catch (const std::bad_alloc&) {
    refuse_epoch(self, next, epoch,
                 caf::make_error(ec::no_memory, fmt::format("{} has none for its KV", name)));
  } catch (const std::exception& e) {
    refuse_epoch(self, next, epoch, caf::make_error(ec::links_failed, std::string{e.what()}));
  }
}

/// The epoch that was opened beside that one serves: its KV is lent no more.
void settle(worker_ptr self, uint64_t before) {
  auto& st = self->state;
  std::vector<uint64_t> over;
  for (auto& [epoch, at] : st.epochs) {
    if (at.order.beside != before) continue;
    if (at.order.number == no_part)
      over.push_back(epoch);
    else
      end_lending(self, at);
  }
  for (const auto epoch : over) end_epoch(self, epoch);
  drop_caches(st);
}

caf::result<epoch_ready> on_open(worker_ptr self, const epoch_open& x) {
  auto& st = self->state;
  end_epochs(self, x.beside);
  if (st.next) st.next->promise.deliver(caf::make_error(ec::aborted));
  auto promise = self->make_response_promise<epoch_ready>();
  st.next.emplace(worker_state::opening{x, promise});
  if (st.ending.empty()) open_epoch(self);
  return promise;
}

void on_injury(worker_ptr self, const worker_injury& x) {
  auto& st = self->state;
  const auto what = injury_named(x.what);
  if (!st.config.terms.chaos || !what) return;
  const std::chrono::milliseconds duration{x.duration_ms};
  spdlog::warn("fault injected what={} duration_ms={}", x.what, x.duration_ms);
  switch (*what) {
  case injury::slow:
    st.config.engine->slow_down(slow_step);
    st.slow_until = self->clock().now() + duration;
    self->delayed_send(self, duration, wake_atom_v);
    return;
  case injury::partition:
    for (const auto& [epoch, at] : st.epochs) st.config.port.close(epoch);
    return;
  case injury::isolate:
    st.flaws->mute_until = std::chrono::steady_clock::now() + duration;
    if (st.config.port.isolate) st.config.port.isolate(duration);
    return;
  case injury::corrupt:
    st.flaws->corrupt = true;
    return;
  case injury::drop:
    st.flaws->drop = true;
    return;
  default:
    injure_process(*what, duration);
  }
}

void end(worker_ptr self, const std::string& reason, worker_end how) {
  end_epochs(self);
  if (auto told = std::exchange(self->state.config.on_end, nullptr)) told(reason, how);
  self->quit(how == worker_end::failed ? caf::make_error(ec::device_lost, reason) : caf::error{});
}

/// An injected fault is over, or the shutdown of an epoch is polled.
void on_wake(worker_ptr self) {
  auto& st = self->state;
  const auto now = self->clock().now();
  if (st.slow_until && now >= *st.slow_until) {
    st.slow_until.reset();
    st.config.engine->slow_down({});
  }
  const bool late = std::any_of(st.ending.begin(), st.ending.end(),
                                [&](const auto& x) { return now - x.second >= hang_limit; });
  // After a stall of this process, pending terminations are reported between two polls.
  st.late_looks = late ? st.late_looks + 1 : 0;
  if (!late) return;
  if (st.late_looks < late_looks_max) {
    self->delayed_send(self, late_poll_interval, wake_atom_v);
    return;
  }
  spdlog::critical(
      "shutdown of an epoch timed out seat={} seconds={}: its device or an actor hangs",
      scheduler::to_string(st.config.where), hang_limit.count());
  end(self, "shutdown of an epoch timed out: its device or an actor hangs", worker_end::failed);
}

} // namespace

traced_worker_actor::behavior_type worker(traced_worker_actor::stateful_pointer<worker_state> self,
                                          worker_config config) {
  end_on_exceptions(self);
  self->state.config = std::move(config);
  self->set_down_handler([self](const caf::down_msg& down) {
    auto& st = self->state;
    if (st.ending.erase(down.source) > 0) {
      if (st.ending.empty() && st.next) open_epoch(self);
      return;
    }
    const auto is_ours = [&](const auto& open) {
      const auto& lender = open.second.lender;
      return (lender && lender.address() == down.source)
             || std::ranges::any_of(open.second.parts, [&](const auto& part) {
                  return caf::actor_cast<caf::actor_addr>(part) == down.source;
                });
    };
    if (std::ranges::none_of(st.epochs, is_ours)) return;
    end(self, "its part of the pipeline failed: " + explain(self->system(), down.reason),
        worker_end::failed);
  });
  self->set_exit_handler([self](const caf::exit_msg& x) {
    end(self, explain(self->system(), x.reason), worker_end::sent_away);
  });
  return {
      [self](const epoch_open& x) { return on_open(self, x); },
      [self](const epoch_close& x) {
        auto& st = self->state;
        end_epoch(self, x.epoch);
        if (x.settled) settle(self, x.epoch);
        if (st.next && st.next->order.epoch == x.epoch) {
          st.next->promise.deliver(caf::make_error(ec::aborted));
          st.next.reset();
        }
      },
      [self](const worker_leave& x) {
        end(self, x.reason, x.for_good ? worker_end::dismissed : worker_end::sent_away);
      },
      [self](const worker_injury& x) { on_injury(self, x); },
      [self](wake_atom) { on_wake(self); },
      [self](const watch_order& x) { return on_watch(self->state, x, self->clock().now()); },
      [self](status_atom) -> caf::result<worker_peers> {
        auto& st = self->state;
        auto report = peers_of(st);
        report.busy = st.busy.look(self->clock().now(), st.meter->computed_ns());
        return report;
      },
      [self](const trace_begin& x) { return begin_trace(self->state, x); },
      [self](const trace_ask& x) { return page_of_trace(self->state, x); },
  };
}

worker_actor start_worker(caf::actor_system& system, worker_config config, bool own_thread) {
  return own_thread ? system.spawn<caf::detached>(worker, std::move(config))
                    : system.spawn(worker, std::move(config));
}

} // namespace lamella::actors
