// Replicas and shards on several hosts: sequences get their KV at shards of their replica's host.
#include "tests/simulation/workload.hpp"

namespace lamella::simulation {

namespace {

struct placements {
  double near = 0, far = 0;
};

placements of(const cluster& c) {
  auto& all = *c.server->metrics;
  return {metric(all, R"(lamella_kv_placements_total{distance="near"})"),
          metric(all, R"(lamella_kv_placements_total{distance="far"})")};
}

/// Replicas and two shards by request, on so many hosts, and eight clients.
placements run(uint32_t hosts, uint32_t replicas, uint32_t slots) {
  cluster_shape shape;
  shape.replicas = replicas;
  shape.by_request = true;
  shape.spares = 0;
  shape.hosts = hosts;
  shape.slots = slots;
  cluster c{shape, 3};
  REQUIRE(c.run_until([&] { return c.server != nullptr; }, 60s));
  const auto before = of(c);
  std::vector<client> clients(8);
  for (uint32_t i = 0; i < clients.size(); ++i) {
    clients[i].prompt = {first_byte + i, first_byte + 7 * i + 1, first_byte + 30};
    clients[i].max_tokens = 20;
    clients[i].seed = i;
    begin(c, clients[i]);
  }
  const auto all_over = [&] {
    return std::ranges::all_of(clients, [](auto& x) { return x.over(); });
  };
  CHECK(c.run_until(all_over, 100s));
  for (auto& x : clients) CHECK(check(x) == "");
  const auto after = of(c);
  return {after.near - before.near, after.far - before.far};
}

} // namespace

TEST_CASE("sequences get their KV on the host of their replica where there are several hosts") {
  const auto two = run(2, 2, 8'000);
  CHECK(two.near >= 8); // and those of the canary
  CHECK(two.far == 0);
}

TEST_CASE("nearness yields where one host has most of the replicas, and is nothing on one host") {
  const auto most = run(2, 3, 400); // two of three replicas are where one of two shards is
  CHECK(most.far > 0);
  CHECK(most.near > most.far);
  const auto one = run(1, 2, 8'000);
  CHECK(one.near + one.far == 0);
}

} // namespace lamella::simulation
