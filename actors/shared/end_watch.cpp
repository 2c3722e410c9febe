#include "actors/shared/end_watch.hpp"

#include "actors/shared/exceptions.hpp"

#include <caf/io/all.hpp>
#include <caf/io/network/multiplexer.hpp>

#include <spdlog/spdlog.h>

#include <unistd.h>

namespace lamella::actors {

namespace {

using clock = std::chrono::steady_clock;

constexpr int exit_internal = 70;
constexpr uint32_t looks_in_limit = 40;

[[noreturn]] void end_at_once() {
  spdlog::default_logger()->flush();
  _exit(exit_internal);
}

} // namespace

end_watch::end_watch(std::chrono::milliseconds limit)
    : ticker_{
        limit, [limit] {
          spdlog::critical(
              "shutdown timed out after {} ms: an actor or a device hangs; the process exits at "
              "once",
              limit.count());
          end_at_once();
        }} {}

system_watch::system_watch(caf::actor_system& system, std::chrono::milliseconds limit,
                           std::function<void()> on_hang)
    : said_{std::make_shared<std::atomic<bool>>(true)},
      speaker_{system.spawn([said = said_](caf::event_based_actor* self) -> caf::behavior {
        end_on_exceptions(self);
        return {[self, said](caf::tick_atom) {
          // By way of the thread that carries control links, where the system has one.
          auto& whole = self->system();
          if (whole.has_middleman())
            whole.middleman().backend().post([said] { said->store(true); });
          else
            said->store(true);
        }};
      })},
      ticker_{limit / looks_in_limit, [this, limit, on_hang = std::move(on_hang),
                                       before = clock::now(), silent = 0u]() mutable {
                const auto now = clock::now();
                const bool on_time = now - std::exchange(before, now) < 2 * limit / looks_in_limit;
                if (said_->exchange(false)) {
                  silent = 0;
                  caf::anon_send(speaker_, caf::tick_atom_v);
                } else if (on_time && ++silent == looks_in_limit) {
                  spdlog::critical("no actor has run for {} ms: all threads of the actors hang, "
                                   "or that of the control links",
                                   limit.count());
                  if (!on_hang) end_at_once();
                  on_hang();
                }
              }} {}

system_watch::~system_watch() { caf::anon_send_exit(speaker_, caf::exit_reason::user_shutdown); }

} // namespace lamella::actors
