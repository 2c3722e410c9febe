#include "actors/protocol/prefills.hpp"
#include "actors/shared/recovery_watch.hpp"

#include <doctest/doctest.h>

namespace lamella::actors::test {

using namespace std::chrono_literals;
using scheduler::request_id;

TEST_CASE("Who pauses, and for how long at most; too long is longer than the alarm allows") {
  const recovery_watch::time_point begin{1h};
  recovery_watch watch{2s};
  CHECK(watch.look(begin).recovering == 0);
  watch.pauses(request_id{1}, begin, true);
  watch.pauses(request_id{2}, begin + 1s, true);
  watch.pauses(request_id{1}, begin + 1s, true); // the first time counts
  auto x = watch.look(begin + 2s);
  CHECK(x.recovering == 2);
  CHECK(x.longest == 2s);
  CHECK_FALSE(x.too_long);
  CHECK_FALSE(x.down);
  CHECK(watch.look(begin + 2001ms).too_long);
  watch.goes_on(request_id{1});
  x = watch.look(begin + 2500ms);
  CHECK(x.recovering == 1);
  CHECK(x.longest == 1500ms);
  CHECK_FALSE(x.too_long);
  watch.goes_on(request_id{2});
  watch.goes_on(request_id{3}); // never paused
  CHECK(watch.look(begin + 1h).longest == 0ms);
}

TEST_CASE("A prompt that begins anew is paused, and raises no alarm") {
  const recovery_watch::time_point begin{1h};
  recovery_watch watch{2s};
  watch.pauses(request_id{1}, begin, false);
  const auto x = watch.look(begin + 1h);
  CHECK(x.recovering == 1);
  CHECK(x.longest == 0ms);
  CHECK_FALSE(x.too_long);
}

TEST_CASE("Without a pipeline all pause, whether they have begun or not") {
  const recovery_watch::time_point begin{1h};
  recovery_watch watch{2s};
  watch.pipeline_lost(begin);
  watch.pipeline_lost(begin + 2s);
  const auto x = watch.look(begin + 3s);
  CHECK(x.down);
  CHECK(x.too_long);
  CHECK(x.recovering == 0);
  watch.pipeline_back();
  CHECK_FALSE(watch.look(begin + 3s).down);
  CHECK_FALSE(watch.look(begin + 3s).too_long);
}

TEST_CASE("Who waits, waits for the role that is lacking, else for what was lost last") {
  recovery_watch watch{2s};
  CHECK(watch.role() == "model"); // whatever runs, runs on replicas
  watch.lost("prefill");
  CHECK(watch.role() == "prefill");
  watch.lacks("attention");
  CHECK(watch.role() == "attention");
  watch.lost("model"); // another one meanwhile
  CHECK(watch.role() == "attention");
  watch.lacks("");
  CHECK(watch.role() == "model");
}

} // namespace lamella::actors::test
