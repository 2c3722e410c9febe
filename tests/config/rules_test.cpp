// What options say of each other.
#include "tests/config/loading.hpp"

#include <doctest/doctest.h>

using namespace lamella::config;
using namespace lamella::config::test;

TEST_CASE("cells inherit what they do not say") {
  const scratch_folder folder;
  const auto got = load_text(folder, "version: 1\n"
                                     "pools:\n"
                                     "  attention:\n"
                                     "    cells:\n"
                                     "      east: {members: 3}\n"
                                     "      west:\n"
                                     "    partition: requests\n"
                                     "    kv_bytes: 2GiB\n");
  CHECK(all_of(got).empty());
  const auto pools = got.value.pools.attention.resolved();
  REQUIRE(pools.size() == 2);
  CHECK(pools.at("east").members == 3);
  CHECK(pools.at("west").members == 1);
  for (const auto& [name, pool] : pools) {
    CHECK(pool.partition == partition::requests);
    CHECK(pool.kv_bytes == uint64_t{2} << 30);
  }
  const auto plain = settings{}.pools.attention.resolved();
  REQUIRE(plain.size() == 1);
  CHECK(plain.contains("main"));
}

TEST_CASE("replicas is another word for members of the model pool") {
  const scratch_folder folder;
  const auto got = load_text(folder, "version: 1\npools: {model: {replicas: 3}}\n");
  CHECK(all_of(got).empty());
  CHECK(got.value.pools.model.members == 3);
  CHECK(got.value.batching.batches_for(got.value.pools.model.members) == 3);
}

TEST_CASE("rules between keys name all of them") {
  const scratch_folder folder;
  const auto cell = load_text(folder, "version: 1\npools: {attention: {partition: requests, cells: "
                                      "{a: {parity: true}}}}\n");
  CHECK(says(cell, "pools.attention.cells.a.parity, pools.attention.cells.a.partition"));
  const auto open = load_text(folder, "version: 1\nhttp: {listen: \"0.0.0.0:80\"}\nadmin: {listen: "
                                      "\"[::]:81\"}\n");
  CHECK(says(open,
             "2:8: http.listen, http.api_keys_file: 0.0.0.0:80 can be reached from other hosts"));
  CHECK(says(open, "3:9: admin.listen, admin.api_keys_file"));
  CHECK(load_text(folder, "version: 1\nhttp: {listen: \"0.0.0.0:80\", api_keys_file: k}\n")
            .problems.empty());
  CHECK(says(load_text(folder, "version: 1\nhttp: {listen: \"127.0.0.1:8001\"}\n"),
             "both listeners"));
  CHECK(says(load_text(folder, "version: 1\nhttp: {connections_max: 5}\n"),
             "512 connections per address"));
}

TEST_CASE("what this version cannot run is refused, not ignored") {
  const scratch_folder folder;
  const char* rows[] = {"pools: {prefill: {device: \"cuda:0\"}}",
                        "pools: {model: {tensor_parallel: 2}}", "net: {transport: fhbn}"};
  for (const char* row : rows) {
    CAPTURE(row);
    const auto got = load_text(folder, std::string{"version: 1\n"} + row + "\n");
    REQUIRE(got.problems.size() == 1);
    CHECK(got.problems[0].message.find("available in this version") != std::string::npos);
    CHECK(got.problems[0].hint.starts_with("use "));
    CHECK(got.problems[0].at.line == 2);
  }
  CHECK(load_text(folder, "version: 1\nnet: {transport: in_process}\n").problems.empty());
}

TEST_CASE("parity is for shards of processes that get all K and V as they store it") {
  const scratch_folder folder;
  const auto with = [&](const std::string& more) {
    return load_text(folder,
                     "version: 1\npools: {attention: {placement: local, members: 3, parity: "
                     "true}"
                         + more + "\n");
  };
  const auto fine = with("}");
  CHECK(fine.problems.empty());
  CHECK(fine.value.pools.attention.parity);
  CHECK_FALSE(with(", prefill: {members: 1, placement: local}}").value.pools.prefill_owns_kv());
  CHECK(says(with(", prefill: {attention: own}}"), "pools.prefill.attention"));
  CHECK(says(with("}\nkv: {dtype: f32}"), "numerics.wire, kv.dtype"));
  const auto here = load_text(folder, "version: 1\npools: {attention: {parity: true}}\n");
  CHECK(says(here, "pools.attention.parity, pools.attention.placement"));
}

TEST_CASE("spares are for pools of processes") {
  const scratch_folder folder;
  for (const char* row :
       {"pools: {attention: {cells: {a: {spares: 1}}}}", "pools: {model: {spares: 1}}"}) {
    CAPTURE(row);
    const auto got = load_text(folder, std::string{"version: 1\n"} + row + "\n");
    REQUIRE(got.problems.size() == 1);
    CHECK(says(got, "spares"));
    CHECK(says(got, "placement"));
  }
  CHECK(load_text(folder, "version: 1\npools: {model: {spares: 1, placement: local}}\n")
            .problems.empty());
}

TEST_CASE("worker processes need a safe listener, a secret, and heartbeats that make sense") {
  const scratch_folder folder;
  const auto check = [&](const std::string& text) {
    return load_text(folder, "version: 1\n" + text + "\n");
  };
  CHECK(check("pools: {model: {placement: local}}").problems.empty());
  CHECK(check("pools: {model: {placement: remote}}\ncontrol: {listen: \"127.0.0.1:7000\", "
              "secret_file: s}")
            .problems.empty());
  CHECK(says(check("pools: {attention: {placement: remote}}"), "control.secret_file"));
  CHECK(says(check("pools: {attention: {placement: remote}}"), "here it is any"));
  CHECK(says(check("control: {listen: \"10.0.0.1:7000\"}"), "mutual TLS is not configured"));
  CHECK(says(check("control: {listen: \"[::]:7000\"}"), "mutual TLS is not configured"));
  CHECK(check("control: {listen: \"10.0.0.1:7000\", tls_certificate: c, tls_key: k, tls_ca: a}")
            .problems.empty());
  CHECK(says(check("control: {tls_key: k}"), "only 1 is set"));
  CHECK(says(check("control: {heartbeat_seconds: 0}"), "control.heartbeat_seconds"));
  CHECK(says(check("control: {dead_seconds: 0}"), "control.dead_seconds"));
  CHECK(says(check("control: {dead_seconds: 0.3}"), "fewer than four heartbeats"));
  CHECK(says(check("pools: {model: {placement: local}}\nnet: {transport: in_process}"),
             "cannot connect the processes"));
  for (const char* tier : {"shm", "tcp", "verbs_staged"}) {
    const auto text = std::string{"net: {transport: "} + tier + "}";
    CHECK(says(check(text), "nothing to connect"));
    CHECK(check(text + "\npools: {attention: {placement: local}}").problems.empty());
  }
}

// Any bytes end in settings or in problems, never in a crash or an exception.
