// Jobs that take long, on threads of their own, beside actors of a real system.
#include "actors/protocol/system_config.hpp"
#include "actors/request/aside.hpp"

#include <doctest/doctest.h>

#include <future>

namespace lamella::actors::test {

TEST_CASE("A job that hangs holds up neither another lane nor the actors") {
  constexpr std::chrono::minutes timeout{5}; // only a broken program waits so long
  system_config config{1};                   // one thread for all actors
  caf::actor_system system{config};
  const auto all = system.spawn(aside, aside_config{1, true});
  std::promise<void> go_on, begun, brief, behind;
  caf::anon_send(all, aside_job{aside_lane::bulky, [&] {
                                  begun.set_value();
                                  go_on.get_future().wait();
                                }});
  caf::anon_send(all, aside_job{aside_lane::bulky, [&] { behind.set_value(); }});
  CHECK(begun.get_future().wait_for(timeout) == std::future_status::ready);
  caf::anon_send(all, aside_job{aside_lane::brief, [&] { brief.set_value(); }});
  CHECK(brief.get_future().wait_for(timeout) == std::future_status::ready);
  auto later = behind.get_future();
  CHECK(later.wait_for(std::chrono::seconds{0}) == std::future_status::timeout);
  go_on.set_value();
  CHECK(later.wait_for(timeout) == std::future_status::ready);
  caf::anon_send_exit(all, caf::exit_reason::user_shutdown);
}

} // namespace lamella::actors::test
