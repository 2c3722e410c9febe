#include "actors/membership/membership_probe.hpp"

#include "actors/membership/membership_injury.hpp"
#include "actors/membership/membership_pace.hpp"
#include "actors/protocol/work_reports.hpp"

#include <spdlog/spdlog.h>

#include <fmt/format.h>

#include <algorithm>

namespace lamella::actors {

namespace {

using membership_ptr = membership_self::stateful_pointer<membership_state>;
using scheduler::seat;
using give_up_function = std::function<void(const seat&, const std::string&)>;

/// Remembered processes that were declared dead.
constexpr size_t given_up_max = 64;

/// The worker that held the seat when it was probed; null: replaced or gone.
const membership_state::member* same_worker(const membership_state& st, const seat& where,
                                            uint32_t incarnation) {
  const auto found = st.members.find(where);
  return found != st.members.end() && found->second.info.incarnation == incarnation ? &found->second
                                                                                    : nullptr;
}

void give_up_on(membership_ptr self, const membership_state::member& m, caf::timespan silence,
                const give_up_function& give_up) {
  auto& st = self->state;
  st.given_up.emplace_back(m.info.host, m.info.pid);
  if (st.given_up.size() > given_up_max) st.given_up.pop_front();
  using std::chrono::milliseconds;
  const auto where = m.where; // it is gone after the next line
  give_up(where, fmt::format("it sent no reply for {} ms to probes",
                             std::chrono::duration_cast<milliseconds>(silence).count()));
}

/// What is known of a worker that did not answer.
struct suspicion {
  caf::timespan silence{0}; ///< 0: it is asked for the first time
  std::optional<std::chrono::nanoseconds> waited{};
};

std::optional<std::chrono::nanoseconds> waited_of(const membership_state& st,
                                                  const membership_state::member& m) {
  return st.config.waited_of ? st.config.waited_of(m.info) : std::nullopt;
}

/// Whether it may have been silent for want of a processor: its threads waited for a third of the
/// time of one probe.
bool starved(const suspicion& before, const suspicion& now) {
  if (!before.waited || !now.waited) return false;
  return *now.waited - *before.waited >= (now.silence - before.silence) / 3;
}

void ask(membership_ptr self, const membership_state::member& m, const suspicion& before,
         const give_up_function& give_up) {
  auto& st = self->state;
  st.asking.insert(m.where);
  const auto half = caf::timespan{st.timeout->half(m.where.role)};
  self->request(m.handle, half, status_atom_v)
      .then(
          [self, where = m.where, incarnation = m.info.incarnation](const worker_peers& x) {
            auto& now = self->state;
            now.asking.erase(where);
            if (const auto* who = same_worker(now, where, incarnation)) note_report(self, *who, x);
          },
          [=, where = m.where, incarnation = m.info.incarnation](const caf::error& reason) {
            auto& now = self->state;
            now.asking.erase(where);
            const auto* who = same_worker(now, where, incarnation);
            // The end of an exited worker is reported by its connection, with the reason.
            if (who == nullptr || now.current || reason != caf::sec::request_timeout) return;
            const suspicion next{before.silence + half, waited_of(now, *who)};
            const bool patient =
                before.silence.count() == 0
                || (starved(before, next) && next.silence + half <= now.config.dead);
            if (!patient) return give_up_on(self, *who, next.silence, give_up);
            spdlog::warn("worker suspected seat={} worker={} silent_ms={} waits_for_processors={}",
                         who->info.seat, who->info.name, next.silence.count() / 1'000'000,
                         starved(before, next));
            ask(self, *who, next, give_up);
          });
}

} // namespace

void probe_workers(membership_ptr self, const give_up_function& give_up) {
  auto& st = self->state;
  if (!st.open || st.current) return;
  for (const auto& [where, m] : st.members) {
    if (m.handle && !m.info.here && scheduler::part_of(st.newest.plan, where) != "spare"
        && !st.asking.contains(where))
      ask(self, m, {}, give_up);
  }
}

bool note_return(membership_ptr self, const membership_state::member& m) {
  auto& st = self->state;
  const auto found = std::ranges::find(st.given_up, std::pair{m.info.host, m.info.pid});
  if (found == st.given_up.end()) return false;
  st.given_up.erase(found);
  spdlog::warn(
      "worker returned after it was declared dead worker={} host={} pid={} (false positive)",
      m.info.name, m.info.host, m.info.pid);
  const bool alone = std::ranges::none_of(st.members, [&](const auto& x) {
    return x.first.role == m.where.role && x.first != m.where;
  });
  if (st.timeout->false_alarm(m.where.role, {m.info.host, m.info.name}, alone, self->clock().now()))
    spdlog::error(
        "too many false positives role={}: its silence limit is now {} ms; check whether the "
        "machine is overloaded",
        m.info.role, 2 * st.timeout->half(m.where.role).count());
  return true;
}

} // namespace lamella::actors
