// The staggered pipeline in a service on virtual time, on devices whose kernels take a known time:
// how long an iteration takes and how busy devices are, beside the closed form.
#include "scheduler/planner/cost/staggered.hpp"
#include "tests/simulation/workload.hpp"

namespace lamella::simulation {

namespace {

using scheduler::pipeline_kind;

struct pace_of_run {
  double iteration_s = 0;                  ///< of a batch, mean
  double replica_busy = 0, shard_busy = 0; ///< share of time
};

/// Matrices of an iteration of the integer model.
uint64_t matmuls_of_iteration() {
  uint64_t count = 0;
  for (const auto& slice : the_model().loaded.program->slices)
    for (const auto& x : slice.instructions)
      if (x.code == model::opcode::matmul) count += x.weights.size();
  return count;
}

constexpr duration matmul{5ms};

duration attention_of(double share_of_model) {
  const auto model = static_cast<double>((matmul * matmuls_of_iteration()).count());
  const auto layers = the_model().loaded.program->spec.layers;
  return duration{static_cast<int64_t>(model * share_of_model / layers)};
}

scheduler::iteration_times times_of(double share_of_model) {
  scheduler::iteration_times t;
  t.model = std::chrono::duration<double>{matmul * matmuls_of_iteration()}.count();
  t.attention = t.model * share_of_model;
  return t;
}

/// Two sequences in each of `batches` batches, decoding for 100 iterations of each. Attention takes
/// `share` of the time that the model part takes.
pace_of_run run(uint32_t replicas, uint32_t batches, pipeline_kind kind, double share) {
  cluster_shape shape;
  shape.replicas = replicas;
  shape.shards = 1;
  shape.spares = 0;
  shape.batches = batches;
  shape.max_batch = 2;
  shape.rotates = kind == pipeline_kind::rotational;
  shape.slots = 8'000;
  shape.chunk_tokens = 16;
  shape.slowest_step = 5us;
  shape.slowest_message = 200us;
  shape.pace = device_pace{matmul, attention_of(share)};
  cluster c{shape, 7};
  REQUIRE(c.run_until([&] { return c.server != nullptr; }, 60s));
  std::vector<client> clients(size_t{2} * batches);
  for (uint32_t i = 0; i < clients.size(); ++i) {
    clients[i].prompt = {first_byte + i, first_byte + 7 * i + 1, first_byte + 30};
    clients[i].max_tokens = 400;
    clients[i].seed = i;
    clients[i].stream = clients[i].endless = true;
    begin(c, clients[i]);
  }
  const auto all_decode = [&] {
    return std::ranges::all_of(clients, [](auto& x) { return x.exchange->text().size() > 20; });
  };
  REQUIRE(c.run_until(all_decode, 100s));
  const auto busy = [&](scheduler::worker_role role) {
    duration sum{0};
    for (const auto& x : c.workers)
      if (x->where().role == role) sum += x->busy();
    return sum;
  };
  const auto before = kernels_run().attentions;
  const auto began = c.time.now();
  const auto model_before = busy(scheduler::worker_role::model),
             shard_before = busy(scheduler::worker_role::attention);
  constexpr uint32_t iterations = 100;
  const auto wanted = uint64_t{iterations} * batches * the_model().loaded.program->spec.layers;
  REQUIRE(c.run_until([&] { return kernels_run().attentions - before >= wanted; }, 100s));
  const auto span = c.time.now() - began;
  const auto share_of = [&](duration part) {
    return std::chrono::duration<double>{part} / std::chrono::duration<double>{span};
  };
  return {std::chrono::duration<double>{span}.count() / iterations,
          share_of(busy(scheduler::worker_role::model) - model_before) / replicas,
          share_of(busy(scheduler::worker_role::attention) - shard_before)};
}

} // namespace

TEST_CASE("L-M17 L-M18 L-M22 V-M05 an iteration of a rotation takes what the closed form says") {
  struct row {
    uint32_t replicas, batches;
    double share; ///< of attention
  };
  for (const auto& x : {row{1, 2, 1}, {2, 3, 0.5}, {2, 3, 0.25}, {2, 3, 1.2}, {3, 4, 1.0 / 3}}) {
    CAPTURE(x.replicas);
    CAPTURE(x.batches);
    CAPTURE(x.share);
    const auto got = run(x.replicas, x.batches, pipeline_kind::rotational, x.share);
    const std::vector all(x.batches, times_of(x.share));
    const auto expected = scheduler::iteration_s(all, 0, x.replicas, pipeline_kind::rotational);
    MESSAGE(x.batches << " batches on " << x.replicas << " replicas, attention " << x.share
                      << " of the model part: iteration " << got.iteration_s << " s, closed form "
                      << expected << " s; replicas busy " << got.replica_busy << ", shard "
                      << got.shard_busy);
    CHECK(got.iteration_s == doctest::Approx(expected).epsilon(x.share == 0.25 ? 0.08 : 0.05));
    // Where attention takes a replica's turn or less, replicas have hardly a bubble.
    if (x.share * x.replicas <= 1) CHECK(got.replica_busy > (x.share == 0.25 ? 0.92 : 0.95));
  }
}

TEST_CASE("L-M17 V-M06 with the same devices a rotation is faster where attention takes its time") {
  struct row {
    double share;  ///< of attention, of the model part
    double slower; ///< than fixed batches, at most
  };
  // The integer model has two layers, an even number like the replicas: one replica has the first
  // and last slices of two of the three batches, which shows where attention takes little.
  for (const auto& x : {row{0.1, 1.06}, {0.25, 1.08}, {0.5, 0.9}, {1.0, 1.01}}) {
    CAPTURE(x.share);
    const auto fixed = run(2, 3, pipeline_kind::fixed, x.share);
    const auto two = run(2, 2, pipeline_kind::fixed, x.share);
    const auto rotating = run(2, 3, pipeline_kind::rotational, x.share);
    MESSAGE("attention " << x.share << ": three batches fixed " << fixed.iteration_s << " s, two "
                         << two.iteration_s << " s, rotating " << rotating.iteration_s << " s");
    CHECK(rotating.iteration_s <= fixed.iteration_s * x.slower);
    // Sequences per second: three batches of two, and two of two.
    CHECK(3 / rotating.iteration_s >= 2 / two.iteration_s / x.slower);
  }
}

} // namespace lamella::simulation
