// What becomes of exceptions that leave a handler of an actor.
#include "actors/shared/exceptions.hpp"
#include "tests/actors/stage.hpp"

#include <new>
#include <stdexcept>

namespace lamella::actors::test {

namespace {

struct thrower_state {
  const char* name = "thrower";
};

caf::behavior thrower(caf::stateful_actor<thrower_state>* self) {
  end_on_exceptions(self);
  return {[](int what) -> int {
    if (what == 1) throw std::runtime_error("three is not two");
    if (what == 2) throw std::bad_alloc();
    if (what == 3) throw 3;
    return what;
  }};
}

} // namespace

TEST_CASE_FIXTURE(stage,
                  "A8 an exception ends its actor, says which and why, and is no other end") {
  const char* texts[] = {"three is not two", std::bad_alloc{}.what(),
                         "not derived from std::exception"};
  for (int what = 1; what <= 3; ++what) {
    CAPTURE(what);
    const auto actor = spawn(thrower);
    const auto why = end_of(actor);
    const auto well = ask<int>(actor, 7);
    settle();
    CHECK(well->value == 7);
    CHECK_FALSE(*why);
    const auto answer = ask<int>(actor, what);
    settle();
    CHECK(*why == ec::actor_failed);
    const auto text = system.render(*why);
    CAPTURE(text);
    CHECK(text.find("thrower") != std::string::npos);
    CHECK(text.find(texts[what - 1]) != std::string::npos);
    REQUIRE(answer->came); // nobody waits for it
    CHECK(peer_lost(answer->error));
    // Who meets it ends for no fault of its own.
    CHECK_FALSE(peer_gone() == ec::actor_failed);
    CHECK(peer_lost(peer_gone()));
  }
}

} // namespace lamella::actors::test
