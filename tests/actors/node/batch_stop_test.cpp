// Batches whose iterations end at times of their own stop at about the same time.
#include "actors/node/batch_stop.hpp"
#include "actors/protocol/batches.hpp"
#include "tests/actors/stand_ins.hpp"

namespace lamella::actors::test {

namespace {

using std::chrono::milliseconds;

/// A batch that does nothing but to end iterations.
struct script {
  caf::timespan first, period; ///< to the end of the first iteration; between two
  std::optional<caf::typed_response_promise<bool>> newest{}, stop{};
  std::optional<caf::actor_clock::time_point> ended{};
};

auto scripted_batch(std::shared_ptr<script> x) {
  return [x](batch_actor::pointer self) -> batch_actor::behavior_type {
    self->delayed_send(self, x->first, wake_atom_v);
    return {
        [](const batch_join&) {},
        [](const batch_leave&) {},
        [](const iteration_failed&) {},
        [](const kv_rebuilding&) {},
        [x, self](const hand_over& asked) -> caf::result<bool> {
          auto& promise = asked.stop ? x->stop : x->newest;
          promise = self->make_response_promise<bool>();
          return *promise;
        },
        [x, self](wake_atom) {
          if (auto newest = std::exchange(x->newest, std::nullopt)) newest->deliver(true);
          if (x->stop) {
            x->ended = self->clock().now();
            x->stop->deliver(true);
          } else {
            self->delayed_send(self, x->period, wake_atom_v);
          }
        },
        [](status_atom) -> caf::result<uint32_t> { return uint32_t{1}; },
    };
  };
}

struct stopping_world : stage {
  std::vector<std::shared_ptr<script>> books;
  std::vector<batch_actor> batches;
  std::shared_ptr<batch_stop> stop;
  bool observed = false, goes_on = true;
  std::optional<std::optional<std::string>> stopped;

  void iterates(milliseconds first, milliseconds period) {
    books.push_back(std::make_shared<script>(script{first, period}));
    batches.push_back(spawn(scripted_batch(books.back())));
  }
  void rests() { batches.push_back(spawn(stand_in_batch(std::make_shared<std::vector<bool>>()))); }
  /// Whoever stops them; a wake message has it do so.
  caf::actor begin() {
    auto who = spawn([this](caf::event_based_actor* self) -> caf::behavior {
      stop = std::make_shared<batch_stop>(self, batches, [this] { return goes_on; });
      stop->observe([this] { observed = true; });
      return {[this](wake_atom) {
        stop->stop([this](std::optional<std::string> why) { stopped = std::move(why); });
      }};
    });
    settle();
    return who;
  }
  void stop_all(const caf::actor& who) {
    caf::anon_send(who, wake_atom_v);
    settle();
  }
};

} // namespace

TEST_CASE_FIXTURE(stopping_world, "batches stop within half an iteration of each other") {
  iterates(milliseconds{2}, milliseconds{20});
  iterates(milliseconds{17}, milliseconds{20});
  iterates(milliseconds{5}, milliseconds{45});
  rests();
  const auto who = begin();
  advance(milliseconds{49});
  CHECK_FALSE(observed);
  advance(milliseconds{2}); // the longest has run from its beginning to its end
  REQUIRE(observed);
  stop_all(who);
  CHECK_FALSE(stopped);
  advance(milliseconds{100});
  REQUIRE(stopped);
  CHECK_FALSE(stopped->has_value());
  const auto ended = [&](size_t i) { return *books[i]->ended; };
  for (size_t i = 0; i < 2; ++i) {
    CHECK(ended(i) - ended(2) <= milliseconds{11});
    CHECK(ended(2) - ended(i) <= milliseconds{11});
  }
}

TEST_CASE_FIXTURE(stopping_world, "batches that run nothing stop at once") {
  rests();
  rests();
  const auto who = begin();
  CHECK(observed);
  stop_all(who);
  REQUIRE(stopped);
  CHECK_FALSE(stopped->has_value());
}

TEST_CASE_FIXTURE(stopping_world, "nobody is called once the pipeline is lost") {
  iterates(milliseconds{2}, milliseconds{20});
  begin();
  goes_on = false;
  stop->abandon();
  advance(milliseconds{100});
  CHECK_FALSE(observed);
  CHECK(stop.use_count() == 1); // nothing is left that would keep it
}

} // namespace lamella::actors::test
