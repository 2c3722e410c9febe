/// Actors on virtual time in one thread: nothing happens unless the test says so, in any order it
/// likes.
#pragma once

#include "actors/protocol/actors.hpp"
#include "actors/protocol/kv.hpp"
#include "actors/protocol/system_config.hpp"
#include "tests/random.hpp"

#include <caf/all.hpp>
#include <caf/scheduler/test_coordinator.hpp>

#include <doctest/doctest.h>
#include <spdlog/spdlog.h>

#include <memory>
#include <vector>

namespace lamella::actors::test {

/// What became of a question.
template <class Answer> struct reply {
  bool came = false;
  Answer value{};
  caf::error error;
  uint32_t freed = 0; ///< kv_freed messages that followed
};

struct stage {
  static actors::system_config& init(actors::system_config& c) {
    spdlog::set_level(spdlog::level::off);
    c.set("scheduler.policy", caf::atom("testing"));
    return c;
  }

  actors::system_config config;
  caf::actor_system system;
  caf::scheduler::test_coordinator& sched;
  std::vector<caf::strong_actor_ptr> owned;

  stage()
      : system{init(config)}, sched{dynamic_cast<caf::scheduler::test_coordinator&>(
                                  system.scheduler())} {
    sched.clock().current_time += std::chrono::hours{1}; // time zero is special to some code
  }

  ~stage() {
    end_all();
    sched.clock().cancel_all();
    sched.run();
    system.await_actors_before_shutdown(false);
  }

  /// Ends every actor. To be called by the destructors of derived classes whose members actors use.
  void end_all() {
    for (auto& p : owned) caf::anon_send_exit(p, caf::exit_reason::kill);
    owned.clear();
    sched.run();
  }

  template <class F, class... Ts> auto spawn(F f, Ts&&... xs) {
    auto handle = system.spawn(f, std::forward<Ts>(xs)...);
    owned.emplace_back(caf::actor_cast<caf::strong_actor_ptr>(handle));
    return handle;
  }

  /// Delivers everything, time stands still. Messages that cause each other for ever fail the test.
  void settle() {
    for (int i = 0; sched.has_job(); ++i) {
      REQUIRE(i < 100'000);
      sched.run_once();
    }
  }

  /// The same with the actors taking turns in a random order.
  void settle(tests::splitmix& random) {
    for (int i = 0; sched.has_job(); ++i) {
      REQUIRE(i < 1'000'000);
      step(random);
    }
  }

  void step(tests::splitmix& random) {
    auto& jobs = sched.jobs;
    const auto turn = static_cast<ptrdiff_t>(random.below(jobs.size()));
    std::rotate(jobs.begin(), jobs.begin() + turn, jobs.end());
    sched.run_once();
  }

  void advance(caf::timespan total, caf::timespan quantum = std::chrono::milliseconds{1}) {
    for (caf::timespan t{0}; t < total; t += quantum) {
      sched.advance_time(std::min(quantum, total - t));
      settle();
    }
  }

  /// Why that actor has ended; no error as long as it lives.
  template <class Handle> std::shared_ptr<caf::error> end_of(const Handle& x) {
    auto why = std::make_shared<caf::error>();
    caf::actor_cast<caf::actor>(x)->attach_functor([why](const caf::error& e) { *why = e; });
    return why;
  }

  /// Asks from an actor of its own; the reply fills when it comes.
  template <class Answer, class Handle, class... Ts>
  std::shared_ptr<reply<Answer>> ask(const Handle& whom, Ts... question) {
    auto result = std::make_shared<reply<Answer>>();
    spawn([=](caf::event_based_actor* self) -> caf::behavior {
      self->request(whom, caf::infinite, question...)
          .then(
              [result](Answer& x) {
                result->came = true;
                result->value = std::move(x);
              },
              [result](caf::error& e) {
                result->came = true;
                result->error = std::move(e);
              });
      return {[result](const actors::kv_freed&) { ++result->freed; }};
    });
    return result;
  }
};

} // namespace lamella::actors::test
