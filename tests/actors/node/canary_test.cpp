// One token through the pipeline when nothing else passes.
#include "actors/node/canary.hpp"
#include "tests/actors/gateway/fake_exchange.hpp"
#include "tests/actors/stand_ins.hpp"

namespace lamella::actors::test {

using namespace std::chrono_literals;

TEST_CASE_FIXTURE(stage, "The canary runs where the last beat is half as old as it may become, "
                         "lowered meanwhile or not") {
  const auto book = std::make_shared<scheduler_book>();
  const auto beats = std::make_shared<pulse>(10min);
  auto server = std::make_shared<service>(tiny_service());
  server->scheduler = spawn(stand_in_scheduler(book));
  server->allocator = spawn(stand_in_allocator(std::make_shared<allocator_book>()));
  spawn(canary, service_ptr{server}, beats, seq(7));
  settle();
  // Nothing has passed yet. It is told no, and something else passes.
  const auto answered = [&](size_t times) {
    REQUIRE(book->asked.size() == times);
    book->promises.back().deliver(caf::make_error(ec::never_fits));
    beats->beat(sched.clock().now());
    settle();
  };
  answered(1);
  advance(299s, 100ms);
  CHECK(book->asked.size() == 1);
  advance(3s, 100ms);
  answered(2);
  beats->set_max_age(4s); // by a reload
  advance(1s, 100ms);
  CHECK(book->asked.size() == 2);
  advance(2s, 100ms);
  answered(3);
  end_all();
}

} // namespace lamella::actors::test
