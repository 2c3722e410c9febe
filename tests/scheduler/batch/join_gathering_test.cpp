#include "scheduler/batch/join_gathering.hpp"

#include <doctest/doctest.h>

using lamella::scheduler::even_share;
using lamella::scheduler::join_gathering;
using namespace std::chrono_literals;

TEST_CASE("a batch waits for sequences of the epoch before until none joins any more") {
  join_gathering x{true};
  CHECK(x.rest(5ms) == 0ms); // nobody is there who could be launched
  x.joined(10ms);
  CHECK(x.rest(10ms) == 2ms);
  x.joined(11ms);
  CHECK(x.rest(12ms) == 1ms);
  CHECK(x.rest(13ms) == 0ms);
  x.joined(14ms); // it has begun: whoever comes now joins between iterations
  CHECK(x.rest(14ms) == 0ms);
}

TEST_CASE("a batch does not wait for ever while sequences join one after the other") {
  join_gathering x{true};
  for (auto now = 10ms; now < 30ms; now += 1ms) {
    x.joined(now);
    CHECK(x.rest(now) > 0ms);
  }
  x.joined(30ms);
  CHECK(x.rest(30ms) == 0ms);
}

TEST_CASE("a batch of the first epoch waits for nobody") {
  join_gathering x;
  x.joined(10ms);
  CHECK(x.rest(10ms) == 0ms);
}

TEST_CASE("a batch begins as soon as its share of the sequences has joined") {
  join_gathering x{true, even_share(3, 1)};
  x.joined(10ms);
  x.joined(11ms);
  CHECK(x.rest(11ms) == 19ms); // the third one may take long: it has its own request to hear of it
  x.joined(15ms);
  CHECK(x.rest(15ms) == 0ms);
}

TEST_CASE("a batch that may have got its share waits for a moment, and not for ever for one that "
          "does not come") {
  join_gathering x{true, even_share(7, 3)}; // two or three
  x.joined(10ms);
  CHECK(x.rest(13ms) == 17ms);
  x.joined(14ms);
  CHECK(x.rest(14ms) == 2ms);
  CHECK(x.rest(16ms) == 0ms);
  join_gathering late{true, even_share(6, 3)};
  late.joined(10ms);
  CHECK(late.rest(29ms) == 1ms);
  CHECK(late.rest(30ms) == 0ms);
}

TEST_CASE("a batch whose share has joined waits for token masks, and not for ever") {
  join_gathering x{true, even_share(2, 1)};
  x.joined(10ms);
  x.joined(11ms);
  CHECK(x.rest(11ms, false) == 19ms);
  CHECK(x.rest(12ms, true) == 0ms);
  CHECK(x.rest(12ms, false) == 0ms); // it has begun: who has no mask sits out
  join_gathering late{true, even_share(1, 1)};
  late.joined(10ms);
  CHECK(late.rest(29ms, false) == 1ms);
  CHECK(late.rest(30ms, false) == 0ms);
}

TEST_CASE("a batch waits for nobody where no sequence comes back") {
  join_gathering x{true, even_share(0, 2)};
  x.joined(10ms);
  CHECK(x.rest(10ms) == 0ms);
  CHECK(even_share(5, 0).least == 0);
}
