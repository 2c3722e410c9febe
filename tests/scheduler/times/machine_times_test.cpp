#include "scheduler/times/machine_times.hpp"

#include <doctest/doctest.h>

#include <cmath>

using namespace lamella::scheduler;

namespace {

/// So many samples of a size that take `seconds` each.
void add(size_times& x, int count, double units, double seconds) {
  for (int i = 0; i < count; ++i) x.add(units, seconds);
}

} // namespace

TEST_CASE("N-M06 S-M23 times between measured sizes lie on straight lines") {
  size_times launch;
  CHECK_FALSE(launch.predict(8));
  add(launch, 5, 8, 0.010);
  CHECK(*launch.predict(1) == doctest::Approx(0.010)); // the weights are read all the same
  CHECK(*launch.predict(64) == doctest::Approx(0.010));
  add(launch, 5, 64, 0.024);
  CHECK(*launch.predict(8) == doctest::Approx(0.010));
  CHECK(*launch.predict(36) == doctest::Approx(0.017));
  CHECK(*launch.predict(128) == doctest::Approx(0.040)); // the last line goes on
  size_times attention{true};
  CHECK_FALSE(attention.predict(8));
  add(attention, 5, 1000, 0.004);
  CHECK(*attention.predict(500) == doctest::Approx(0.002));
  CHECK(*attention.predict(3000) == doctest::Approx(0.012));
  CHECK(*attention.predict(0) == 0);
}

TEST_CASE("samples that are far off change no prediction") {
  size_times x;
  for (const double seconds : {0.01, 5.0, 0.01, 0.01, 0.01}) x.add(16, seconds);
  CHECK(*x.predict(16) == doctest::Approx(0.01));
  add(x, 20, 16, 0.01);
  add(x, 7, 16, 90);
  CHECK(*x.predict(16) == doctest::Approx(0.01));
  for (const double odd : {0.0, -1.0, std::nan(""), HUGE_VAL}) {
    x.add(16, odd);
    x.add(odd, 0.01);
  }
  CHECK(*x.predict(16) == doctest::Approx(0.01));
  CHECK(x.samples() == 32);
}

TEST_CASE("a machine that becomes slower corrects all sizes by measured over predicted") {
  size_times x;
  add(x, 5, 8, 0.010);
  add(x, 5, 64, 0.020);
  add(x, 16, 8, 0.015);
  CHECK(x.correction() == doctest::Approx(1.5));
  CHECK(*x.predict(64) == doctest::Approx(0.030));
  add(x, 16, 8, 0.010);
  CHECK(x.correction() == doctest::Approx(1));
}

TEST_CASE("a correction is bounded, and a table of another machine is measured anew") {
  size_times x;
  add(x, 5, 8, 0.010);
  x.add(8, 1);
  CHECK(x.correction() == size_times::correction_most);
  add(x, 14, 8, 1);
  CHECK(*x.predict(8) == doctest::Approx(0.040));
  x.add(8, 1); // the newest ones are all beyond it
  CHECK_FALSE(x.predict(8));
  x.add(8, 1);
  CHECK(*x.predict(8) == doctest::Approx(1));
  CHECK(x.correction() == 1);
}

TEST_CASE("attention of an iteration ends with the last home") {
  machine_times x;
  CHECK_FALSE(x.attention_s(100));
  x.add(timed_work::attention, "far", 1000, 0.004);
  CHECK(*x.attention_s(1000) == doctest::Approx(0.004));
  x.add(timed_work::attention, "near", 1000, 0.001);
  x.add(timed_work::prompt_attention, "far", 1000, 7);
  x.add(timed_work::launch, "", 8, 7);
  CHECK(*x.attention_s(1000) == doctest::Approx(0.002)); // each has half of the positions
  CHECK(*x.predict(timed_work::prompt_attention, "far", 1000) == 7);
  CHECK(*x.predict(timed_work::launch, "", 1) == 7);
  CHECK_FALSE(x.predict(timed_work::launch, "far", 1));
}

TEST_CASE("an iteration waits for no home that is gone") {
  machine_times x;
  for (const char* home : {"0", "1", "2", "3"}) x.add(timed_work::attention, home, 1000, 0.001);
  x.add(timed_work::prompt_attention, "0", 1000, 7);
  x.add(timed_work::launch, "", 8, 7);
  CHECK(*x.attention_s(4000) == doctest::Approx(0.001));
  x.keep_homes({""});
  CHECK_FALSE(x.attention_s(4000));
  CHECK_FALSE(x.predict(timed_work::prompt_attention, "0", 1000));
  CHECK(*x.predict(timed_work::launch, "", 1) == 7);
  x.add(timed_work::attention, "", 1000, 0.001);
  CHECK(*x.attention_s(4000) == doctest::Approx(0.004));
}

TEST_CASE("the load is the median of the newest looks") {
  machine_times x;
  CHECK_FALSE(x.load());
  x.note_load({100, 5});
  for (int i = 0; i < 16; ++i) x.note_load({8.0 + i % 3, 800});
  x.note_load({900, 0});
  CHECK(x.load()->rows == 9);
  CHECK(x.load()->positions == 800);
}
