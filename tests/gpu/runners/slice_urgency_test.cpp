// Which steps of a replica the engine puts before those of other streams.
#include "gpu/host/host_engine.hpp"
#include "gpu/runners/slice_runner.hpp"
#include "tests/gpu/kernels/kernel_support.hpp"
#include "tests/pipeline_runs.hpp"

#include <doctest/doctest.h>

using namespace lamella;
using namespace lamella::gpu;
using progress = work::progress;

TEST_CASE_FIXTURE(lamella::test::models,
                  "L-M18 steps of a slice are urgent behind its first where sequences decode") {
  const auto model = load({});
  const std::shared_ptr<const model::model_program> program = model::rank_program(model, 1);
  host_engine engine{1, reference_operators()};
  const auto where = engine.make_device("replica");
  const auto weights = std::make_shared<packed_weights>(
      *program,
      [&](const model::weight_use& w) -> const model::tensor_view& { return model.tensor(w); },
      *where, [](uint64_t, uint64_t) {});
  gpu::test::machine here{1};
  arena workspace;
  // Nobody attends: the runner waits for no shard.
  const auto urgent_steps_of = [&](std::vector<uint32_t> seats) {
    slice_launch x;
    x.tokens = {1, 2};
    x.seats = std::move(seats);
    x.positions = {0, 1};
    slice_runner runs{program, weights, where->ops(), x,
                      std::make_shared<slice_stream_state>(*where)};
    uint32_t steps = 0;
    while (runs.advance({here.workers, here.scratch, &workspace}) == progress::advanced) {
      const bool waits = std::string_view{runs.next_step().name} == "recv_attention";
      CHECK_FALSE((waits && runs.is_urgent()));
      steps += runs.is_urgent();
    }
    return steps;
  };
  CHECK(urgent_steps_of({0, 1}) > 0);
  CHECK(urgent_steps_of({0, 0}) == 0); // a prompt
}
