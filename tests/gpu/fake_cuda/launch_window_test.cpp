// A driver's streams do not take more launches than they have room for.
#include "tests/gpu/fake_cuda/driver_bench.hpp"

using namespace lamella;
using namespace lamella::test;

// A stream takes so many launches before the call waits, and the caller launches for all streams.
TEST_CASE_FIXTURE(bench, "a work of many kernels that waits for another stream does not keep it "
                         "from being launched") {
  fake::reset();
  std::array<uint64_t, 2> seen{};
  std::vector<uint32_t> words(5000);
  std::promise<void> put;
  auto steps = raises(words);
  steps.insert(steps.begin(), {receive(7, seen.data()), [&](kernel_context) {
                                 put.set_value();
                                 return on();
                               }});
  auto waits = run(b, steps);
  put.get_future().wait();
  auto sends = run(a, {send(7)});
  CHECK(end_of(sends) == work_status::done);
  CHECK(end_of(waits) == work_status::done);
  CHECK(seen[0] == 7);
  CHECK(std::count(words.begin(), words.end(), 1u) == 5000);
  CHECK(fake::calls_that_waited() == 0);
}

TEST_CASE_FIXTURE(bench, "L-M09 a work whose kernels have no room yet ends with its deadline") {
  std::array<uint64_t, 2> seen{};
  std::vector<uint32_t> words(5000);
  auto steps = raises(words);
  steps.insert(steps.begin(), receive(7, seen.data()));
  auto late = run(b, steps, 500ms);
  CHECK(end_of(late) == work_status::deadline);
  auto later = run(b, {[](kernel_context) { return on(); }});
  CHECK(end_of(later) == work_status::done);
}
