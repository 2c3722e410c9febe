// What options say of each other.
#include "tests/config/loading.hpp"

#include <doctest/doctest.h>

using namespace lamella::config;
using namespace lamella::config::test;

TEST_CASE("replicas is another word for members of the model pool") {
  const scratch_folder folder;
  const auto got = load_text(folder, "version: 1\npools: {model: {replicas: 3}}\n");
  CHECK(all_of(got).empty());
  CHECK(got.value.pools.model.members == 3);
  CHECK(got.value.batching.batches_for(got.value.pools.model.members) == 3);
}

TEST_CASE("V-M17 pipelines off and auto say themselves how many batches there are") {
  const scratch_folder folder;
  for (const std::string word : {"off", "auto"}) {
    CAPTURE(word);
    const auto text = "version: 1\nbatching: {pipeline: " + word + "}\n";
    const auto got = load_text(folder, text);
    CHECK(all_of(got).empty());
    CHECK(got.value.batching.batches_for(2) == (word == "off" ? 2 : 3));
    const auto refused =
        load_text(folder, "version: 1\nbatching: {pipeline: " + word + ", batches: 4}\n");
    REQUIRE(refused.problems.size() == 1);
    CHECK(says(refused, "batching.pipeline, batching.batches"));
    CHECK(says(refused, "4 were asked for"));
  }
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
  const auto half = load_text(folder, "version: 1\nhttp: {tls_key: a.key}\n");
  CHECK(says(half, "2:8: http.tls_certificate, http.tls_key: HTTPS needs both; only one is set"));
  CHECK(load_text(folder, "version: 1\nhttp: {listen: \"0.0.0.0:80\", api_keys_file: k}\n")
            .problems.empty());
  CHECK(says(load_text(folder, "version: 1\nhttp: {listen: \"127.0.0.1:8001\"}\n"),
             "both listeners"));
  CHECK(says(load_text(folder, "version: 1\nhttp: {connections_max: 5}\n"),
             "512 connections per address"));
}

TEST_CASE("seats of a host that is known by IPv6 do not listen for IPv4 alone") {
  const scratch_folder folder;
  const auto problems = [&](const std::string& control, const std::string& net) {
    return load_text(folder,
                     "version: 1\ncontrol: {listen: \"" + control
                         + "\", secret_file: s, tls_certificate: a, tls_key: b, tls_ca: c}\n"
                           "pools: {model: {placement: remote}, attention: {placement: "
                           "local}}\nnet: {listen: \""
                         + net + "\"}\n");
  };
  CHECK(says(problems("[fd00::1]:7000", "0.0.0.0:0"), "net.listen 0.0.0.0:0 accepts IPv4 only"));
  CHECK(problems("[fd00::1]:7000", "[::]:0").problems.empty());
  CHECK(problems("[::]:7000", "0.0.0.0:0").problems.empty()); // workers may come by IPv4
  CHECK(problems("10.0.0.1:7000", "0.0.0.0:0").problems.empty());
}

TEST_CASE("seats of this host are not hidden from workers of other hosts") {
  const scratch_folder folder;
  const std::string head = "version: 1\ncontrol: {listen: \"10.0.0.1:7000\", secret_file: s, "
                           "tls_certificate: a, tls_key: b, tls_ca: c}\n";
  const std::string part = "workers of other hosts cannot reach the seats of this one";
  for (const std::string where : {"local", "in_process"}) {
    const auto pools =
        "pools: {model: {placement: remote}, attention: {placement: " + where + "}}\n";
    const auto got = load_text(folder, head + pools);
    CHECK(says(got, part));
    CHECK(says(got, "net.listen, control.listen"));
    CHECK(load_text(folder, head + pools + "net: {listen: \"0.0.0.0:0\"}\n").problems.empty());
    CHECK(load_text(folder, head + pools + "net: {listen: \"10.0.0.1:0\"}\n").problems.empty());
  }
  CHECK(load_text(folder, head
                              + "pools: {model: {placement: remote}, attention: {placement: "
                                "remote}}\n")
            .problems.empty());
}

TEST_CASE("L-M17 each replica has a batch") {
  const scratch_folder folder;
  const auto with = [&](const char* batching, const char* model) {
    return load_text(folder, std::string{"version: 1\nbatching: {"} + batching
                                 + "}\npools: {model: {placement: local, " + model + "}}\n");
  };
  CHECK(with("batches: 3", "members: 3").problems.empty());
  CHECK(says(with("batches: 2", "members: 3"), "2 batches leave some of 3 replicas idle"));
  CHECK(says(with("pipeline: rotational, batches: 2", "members: 1, max: 3"),
             "batching.batches, pools.model.members, pools.model.max"));
}

TEST_CASE("a CUDA device is not given more streams than it has queues for") {
  const scratch_folder folder;
  const auto with = [&](int batches, const char* attention) {
    return load_text(folder, "version: 1\nbatching: {batches: " + std::to_string(batches)
                                 + "}\npools: {model: {device: \"cuda:0\"}, attention: {device: \""
                                 + attention + "\"}}\n");
  };
  // A stream of each role per batch and for prompts, and one that looks after the KV.
  CHECK(with(12, "cuda:0").problems.empty());
  const auto shared = with(13, "cuda:0");
  REQUIRE(shared.problems.size() == 1);
  CHECK(says(shared, "batching.batches, pools.attention.members"));
  CHECK(says(shared, "cuda:0 would get 29 streams and has queues for 28"));
  CHECK(with(26, "cuda:1").problems.empty());
  CHECK(says(with(28, "cuda:1"), "cuda:0 would get 29 streams"));
  CHECK(with(64, "host").problems.size() == 1);
  // Each rank of a replica has a stream for each of rank 0's.
  const auto ranks =
      load_text(folder, "version: 1\nbatching: {batches: 13}\npools: {model: {device: \"cuda:0\", "
                        "tensor_parallel: 3}, attention: {device: \"cuda:2\"}}\n");
  REQUIRE(ranks.problems.size() == 1);
  CHECK(says(ranks, "cuda:2 would get 29 streams"));
}

TEST_CASE("prompts that replicas take beside prefill workers with own KV have streams as well") {
  const scratch_folder folder;
  const auto with = [&](int members, const std::string& more = {}, const std::string& own = {}) {
    return load_text(folder, "version: 1\nkv: {bytes: 1GiB}\npools: {model: {device: \"cuda:0\"}, "
                             "attention: {device: \"cuda:1\", members: "
                                 + std::to_string(members) + "}, prefill: {attention: own" + own
                                 + "}}\n" + more);
  };
  // Of each shard: one of the batch, of the prefill worker, of the replica, and for its KV.
  CHECK(with(7).problems.empty());
  CHECK(says(with(8), "cuda:1 would get 32 streams and has queues for 28"));
  CHECK(says(with(9), "cuda:1 would get 36 streams and has queues for 28"));
  // Prompts in the launches of batches need none, but the prefill worker has a batch then (S-M03).
  const std::string mixed = "batching: {launches: mixed}\n";
  CHECK(with(7, mixed).problems.empty());
  CHECK(says(with(8, mixed), "cuda:1 would get 32 streams"));
  // It has none where prompts do not overflow.
  CHECK(with(9, mixed, ", overflow_tokens: 0").problems.empty());
  CHECK(says(with(10, mixed, ", overflow_tokens: 0"), "cuda:1 would get 30 streams"));
}

TEST_CASE("cells that share the members of their pool need no more streams than these") {
  const scratch_folder folder;
  const auto with = [&](const char* most, const char* members) {
    return load_text(folder, std::string{"version: 1\npools:\n"
                                         "  model: {placement: local, device: \"cuda:0\"}\n"
                                         "  attention:\n    placement: local\n"
                                         "    device: \"cuda:1\"\n    kv_bytes: 1GiB\n"
                                         "    partition: requests\n"}
                                 + most + "    cells: {a: {members: " + members
                                 + "}, b: {members: " + members
                                 + "}}\n  prefill: {placement: local, attention: own, "
                                   "device: \"cuda:4\", kv_bytes: 1GiB}\n");
  };
  CHECK(with("    max: 14\n", "1").problems.empty());
  CHECK(with("", "7").problems.empty());
  CHECK(says(with("    max: 28\n", "1"), "cuda:4 would get 30 streams"));
  CHECK(says(with("", "14"), "cuda:4 would get 30 streams"));
}

TEST_CASE("a worker process on a CUDA device has streams for one executor") {
  const scratch_folder folder;
  const auto with = [&](int batches, const std::string& more = {}) {
    return load_text(folder, "version: 1\nbatching: {batches: " + std::to_string(batches)
                                 + "}\npools: {model: {device: \"cuda:0\", placement: local}, "
                                   "attention: {device: \"cuda:0\", placement: local, members: 4, "
                                   "kv_bytes: 1GiB"
                                 + more + "}}\n");
  };
  CHECK(with(26).problems.empty());
  CHECK(says(with(27), "cuda:0 would get 29 streams and has queues for 28"));
  // One more for each direction in which members of a pool with parity lend each other KV.
  CHECK(with(24, ", parity: true").problems.empty());
  CHECK(says(with(25, ", parity: true"), "cuda:0 would get 29 streams and has queues for 28"));
}

TEST_CASE("CUDA devices of worker processes need what the control process cannot know") {
  const scratch_folder folder;
  const auto with = [&](const std::string& pools) {
    return load_text(folder, "version: 1\ncontrol: {listen: \"127.0.0.1:7000\", secret_file: s}\n"
                             "pools: {"
                                 + pools + "}\n");
  };
  const std::string model = "model: {device: \"cuda:0\", placement: local}, ";
  const std::string attention = "attention: {device: \"cuda:1\", placement: remote";
  CHECK(says(
      with(model + attention + "}"),
      "pools.attention.kv_bytes, pools.attention.device: the memory of cuda:1 is unknown here"));
  CHECK(with(model + attention + ", kv_bytes: 1GiB}").problems.empty());
  CHECK(with(model + attention + ", members: 2, kv_bytes: 1GiB, parity: true}").problems.empty());
  // Who computes prompts computes as the replicas do, and where it attends as the shards do.
  const auto prefill = [](const std::string& more) {
    return ", prefill: {placement: local, device: " + more + "}";
  };
  const auto whole = model + attention + ", kv_bytes: 1GiB}";
  CHECK(with(whole + prefill("\"cuda:2\"")).problems.empty());
  CHECK(says(with(whole + prefill("host")), "pools.prefill.device, pools.model.device"));
  const auto host = model + "attention: {placement: local}";
  CHECK(with(host + prefill("\"cuda:0\"")).problems.empty()); // the shards attend
  CHECK(says(with(host + prefill("\"cuda:0\", attention: own")),
             "pools.prefill.device, pools.attention.device"));
  CHECK(with(whole + prefill("\"cuda:0\", attention: own")).problems.empty());
  CHECK(says(with(whole + ", prefill: {attention: own}"), "a device of other processes"));
}

TEST_CASE("what this version cannot run is refused, not ignored") {
  const scratch_folder folder;
  const char* rows[] = {"pools: {prefill: {device: \"cuda:0\"}}",
                        "pools: {model: {tensor_parallel: 2}, prefill: {attention: own}}"};
  for (const char* row : rows) {
    CAPTURE(row);
    const auto got = load_text(folder, std::string{"version: 1\n"} + row + "\n");
    REQUIRE(got.problems.size() == 1);
    CHECK(got.problems[0].message.find("available in this version") != std::string::npos);
    CHECK(got.problems[0].hint.starts_with("use "));
    CHECK(got.problems[0].at.line == 2);
  }
  CHECK(load_text(folder, "version: 1\nnet: {transport: in_process}\n").problems.empty());
  for (const char* row :
       {"", ", placement: local", ", placement: local}, prefill: {placement: local",
        "}, attention: {placement: local"}) {
    CAPTURE(row);
    const auto got = load_text(folder, std::string{"version: 1\npools: {model: {tensor_parallel: 2"}
                                           + row + "}}\n");
    CHECK(got.problems.empty());
    CHECK(!got.value.pools.prefill_owns_kv());
  }
}

TEST_CASE("parity is for shards of processes, whatever they store") {
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
  const auto pulled = with(", prefill: {members: 1, placement: local, attention: own}}");
  CHECK(pulled.problems.empty());
  CHECK(pulled.value.pools.prefill_owns_kv());
  for (const char* type : {"f32", "q8"})
    CHECK(with("}\nkv: {dtype: " + std::string{type} + "}").problems.empty());
  const auto here = load_text(folder, "version: 1\npools: {attention: {parity: true}}\n");
  CHECK(says(here, "pools.attention.parity, pools.attention.placement"));
}

TEST_CASE("a wire and a cache of 16 bits are of one kind") {
  const scratch_folder folder;
  const auto with = [&](const std::string& wire, const std::string& cache) {
    return load_text(folder,
                     "version: 1\nnumerics: {wire: " + wire + "}\nkv: {dtype: " + cache + "}\n");
  };
  const auto both = with("bf16", "bf16");
  CHECK(both.problems.empty());
  CHECK(both.value.numerics.wire == number_type::bf16);
  CHECK(both.value.kv.dtype == number_type::bf16);
  CHECK(with("f32", "bf16").problems.empty());
  CHECK(with("bf16", "f32").problems.empty());
  CHECK(says(with("bf16", "f16"), "numerics.wire, kv.dtype"));
  CHECK(says(with("f16", "bf16"), "numerics.wire, kv.dtype"));
}

TEST_CASE("q8 and q4 are types of caches, under any wire") {
  const scratch_folder folder;
  for (const auto& [name, type] : {std::pair{"q8", number_type::q8}, {"q4", number_type::q4}})
    for (const char* wire : {"f16", "bf16", "f32"}) {
      const auto x = load_text(folder, "version: 1\nnumerics: {wire: " + std::string{wire}
                                           + "}\nkv: {dtype: " + name + "}\n");
      CHECK(x.problems.empty());
      CHECK(x.value.kv.dtype == type);
    }
  CHECK(says(load_text(folder, "version: 1\nnumerics: {wire: q8}\n"), "f16, f32 or bf16"));
}

TEST_CASE("spares are for pools of processes") {
  const scratch_folder folder;
  for (const char* row :
       {"pools: {attention: {cells: {a: {spares: 1}}}}", "pools: {model: {spares: 1}}"}) {
    CAPTURE(row);
    const auto got = load_text(folder, std::string{"version: 1\n"} + row + "\n");
    CHECK(says(got, "spares, "));
    CHECK(says(got, "a pool of this process cannot have spares"));
  }
  CHECK(load_text(folder, "version: 1\npools: {model: {spares: 1, placement: local}}\n")
            .problems.empty());
}

TEST_CASE("the autoscaler has bounds that it can keep, and measures that differ") {
  const scratch_folder folder;
  const auto check = [&](const std::string& text) {
    return load_text(folder, "version: 1\n" + text + "\n");
  };
  CHECK(check("pools: {model: {members: 2, min: 2, max: 4}}").problems.empty());
  CHECK(says(check("pools: {model: {members: 5, max: 4}}"), "more than max 4"));
  CHECK(says(check("pools: {model: {min: 2, max: 4}}"), "fewer than min 2"));
  CHECK(says(check("pools: {model: {min: 3, max: 2}}"), "min 3 is more than max 2"));
  CHECK(says(check("pools: {model: {members: 2, min: 2}}"), "min has no effect without max"));
  CHECK(says(check("pools: {attention: {max: 4}}"), "more shards have no more slots"));
  CHECK(check("pools: {attention: {max: 4, kv_bytes: 1GiB}}").problems.empty());
  CHECK(check("pools: {attention: {max: 4}}\nkv: {bytes: 1GiB}").problems.empty());
  CHECK(check("pools: {attention: {max: 4, partition: requests}}").problems.empty());
  CHECK(says(check("pools: {prefill: {max: 4}}"), "prefill runs on the model replicas"));
  CHECK(check("pools: {prefill: {max: 4, placement: local}}").problems.empty());
  CHECK(says(check("autoscale: {kv_low_percent: 80}"), "80 is not below 80"));
  CHECK(check("autoscale: {tbt_target_ms: 50, cool_down_up_seconds: 30}").problems.empty());
  // A pool as large as it may become needs streams as well.
  const std::string cuda = "kv: {bytes: 1GiB}\npools: {model: {device: \"cuda:0\", max: ";
  CHECK(check(cuda + "4}}").problems.empty());
  CHECK(says(check(cuda + "40}}"), "streams and has queues for"));
}

TEST_CASE("S-M09 S-M12 what only mixed launches can do is refused without them") {
  const scratch_folder folder;
  const auto check = [&](const std::string& text) {
    return load_text(folder, "version: 1\n" + text + "\n");
  };
  CHECK(says(check("batching: {stand_backs: 4}"), "set batching.launches: mixed"));
  CHECK(check("batching: {stand_backs: 4, launches: mixed}").problems.empty());
  CHECK(says(check("pools: {prefill: {repurpose_seconds: 5}}"), "into mixed launches"));
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
  for (const char* tier : {"shm", "tcp", "verbs_staged", "verbs_gpudirect", "mlx5_proxy", "fhbn"}) {
    const auto text = std::string{"net: {transport: "} + tier + "}";
    CHECK(says(check(text), "nothing to connect"));
    CHECK(check(text + "\npools: {attention: {placement: local}}").problems.empty());
  }
}

// Any bytes end in settings or in problems, never in a crash or an exception.
