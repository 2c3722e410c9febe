// What `lamella plan --emit` writes: a configuration that this program takes, and a manifest whose
// probes are there.
#include "cli/plan/plan.hpp"
#include "tests/cli/program.hpp"
#include "tests/scratch_folder.hpp"
#include "tests/tiny_model.hpp"

#include <yaml-cpp/yaml.h>

#include <fstream>

using namespace lamella;
using tests::run_shell;
using tests::scratch_folder;

namespace {

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// Free ports: others of this machine may have the default ones.
const std::string check = "lamella config check --set http.listen=127.0.0.1:0 --set "
                          "admin.listen=127.0.0.1:0 --config ";

scheduler::plan_row split_row() {
  scheduler::plan_row row;
  row.design.compute = {*scheduler::find_device(scheduler::built_in_devices(), "H100-SXM"), 2};
  row.design.memory = {*scheduler::find_device(scheduler::built_in_devices(), "H20"), 4};
  row.design.batches = 2;
  row.copies = 3;
  row.batch = 800;
  row.tokens_per_s = 6000;
  row.seats = 65'536;
  row.tbt.add(0.1);
  return row;
}

scheduler::model_shape llama() {
  return *scheduler::find_model(scheduler::built_in_models(), "LLaMA3-70B");
}

std::string yaml_of(const scheduler::plan_row& row, const cli::plan_options& o,
                    const scheduler::model_shape& model = llama()) {
  return cli::plan_yaml(row, model, o);
}

/// A model with the eight KV heads of LLaMA-3.
void write_model(const std::filesystem::path& path) {
  tests::tiny_model_options shape;
  shape.embedding = 128;
  shape.heads = shape.kv_heads = 8;
  tests::write_tiny_model(path, shape);
}

} // namespace

TEST_CASE("the configuration of a planned design passes config check") {
  const scratch_folder folder;
  write_model(folder / "tiny.gguf");
  for (const bool by_request : {false, true}) {
    auto row = split_row();
    if (by_request) {
      row.design.memory.count = 3;
      row.design.partition = scheduler::partition_kind::requests;
      row.seats = 40;
    }
    cli::plan_options o;
    o.model_path = (folder / "tiny.gguf").string();
    const auto text = yaml_of(row, o);
    CHECK(YAML::Load(text)["batching"]["max_batch"].as<int>() == (by_request ? 40 : 800));
    CHECK(YAML::Load(text)["pools"]["model"]["tensor_parallel"].as<int>() == 2);
    std::ofstream{folder / "plan.yaml"} << text;
    const auto got = run_shell(folder / ".", check + "plan.yaml");
    INFO(got.err);
    CHECK(got.code == 0);
    CHECK(has(got.out, "tiny.gguf"));
    CHECK(has(got.out, by_request ? "3 members by requests" : "4 members by heads"));
    CHECK(has(text, "# planned: 2 NICs of 400 Gb/s for 2 x H100-SXM"));
    row.design.memory = scheduler::with_nics(row.design.memory, 1, {});
    std::ofstream{folder / "shared.yaml"} << yaml_of(row, o);
    CHECK(has(yaml_of(row, o), by_request ? "# planned: 1 NIC of 400 Gb/s for 3 x H20"
                                          : "# planned: 1 NIC of 400 Gb/s for 4 x H20"));
    CHECK(run_shell(folder / ".", check + "shared.yaml").code == 0);
    row.design.prefill = row.design.compute;
    row.design.prefill_servers = 3;
    std::ofstream{folder / "prompts.yaml"} << yaml_of(row, o);
    CHECK(YAML::Load(yaml_of(row, o))["pools"]["prefill"]["members"].as<int>() == 3);
    const auto prompts = run_shell(folder / ".", check + "prompts.yaml");
    INFO(prompts.err);
    CHECK(prompts.code == 0);
    row.design.compute.count = 1;
    const auto apart = yaml_of(row, o);
    CHECK(YAML::Load(apart)["pools"]["prefill"]["attention"].as<std::string>() == "own");
    CHECK(has(apart, "# planned: tensor_parallel 2; they are as many devices as a replica"));
    row.batch = 20'000; // memory of devices that are yet to come
    if (!by_request) CHECK(has(yaml_of(row, o), "max_batch: 4096 # the most that"));
    o.model_path.clear();
    for (const char* named :
         {"path: \"\" # fill in", "# placement: remote # fill in", "# device: cuda:0 # fill in"})
      CHECK(has(yaml_of(row, o), named));
  }
}

TEST_CASE("S-M02 prompts that were planned in decode iterations are emitted as mixed launches") {
  const scratch_folder folder;
  write_model(folder / "tiny.gguf");
  auto row = split_row();
  row.design.prefill_beside = true;
  cli::plan_options o;
  o.model_path = (folder / "tiny.gguf").string();
  o.model = "LLaMA3-8B";
  const auto text = yaml_of(row, o);
  const auto yaml = YAML::Load(text);
  CHECK(yaml["batching"]["launches"].as<std::string>() == "mixed");
  CHECK(yaml["batching"]["prefill_chunk_tokens"].as<uint32_t>() == row.design.chunk_tokens);
  CHECK(yaml["batching"]["tbt_target_seconds"].as<double>() == 0); // whole chunks, as planned
  row.design.tbt_target_s = 0.06;
  CHECK(YAML::Load(yaml_of(row, o))["batching"]["tbt_target_seconds"].as<double>() == 0.06);
  CHECK_FALSE(has(yaml_of(split_row(), o), "launches"));
}

TEST_CASE("L-M17 V-M17 the pipeline that was planned is emitted") {
  auto row = split_row();
  row.design.replicas = 2;
  const auto batching = [&] { return YAML::Load(yaml_of(row, {}))["batching"]; };
  row.design.batches = 3;
  CHECK(batching()["pipeline"].as<std::string>() == "rotational");
  CHECK(batching()["batches"].as<int>() == 3);
  row.design.pipeline = scheduler::pipeline_kind::fixed;
  CHECK(batching()["pipeline"].as<std::string>() == "fixed");
  row.design.batches = 2; // none overlap
  CHECK(batching()["pipeline"].as<std::string>() == "off");
  CHECK(batching()["batches"].as<std::string>() == "auto");
}

TEST_CASE("the bits of the KV cache that was planned are emitted") {
  const scratch_folder folder;
  tests::tiny_model_options shape;
  shape.head_dim = 64;
  shape.heads = shape.kv_heads = 8;
  tests::write_tiny_model(folder / "tiny.gguf", shape);
  cli::plan_options o;
  o.model_path = (folder / "tiny.gguf").string();
  auto model = llama();
  CHECK_FALSE(has(yaml_of(split_row(), o, model), "kv:"));
  struct row {
    double bits;
    const char* type;
  };
  for (const auto& x : {row{4, "q4"}, {8, "q8"}, {32, "f32"}}) {
    CAPTURE(x.bits);
    model.kv_element_bytes = x.bits / 8;
    const auto text = yaml_of(split_row(), o, model);
    CHECK(YAML::Load(text)["kv"]["dtype"].as<std::string>() == x.type);
    std::ofstream{folder / "plan.yaml"} << text;
    const auto got = run_shell(folder / ".", check + "plan.yaml");
    INFO(got.err);
    CHECK(got.code == 0);
  }
  model.kv_element_bytes = 6.0 / 8;
  const auto text = yaml_of(split_row(), o, model);
  CHECK_FALSE(YAML::Load(text)["kv"]);
  CHECK(has(text, "# planned: KV of 6 bits, which this version does not support\n"
                  "# kv: {dtype: q8} # fill in: "));
}

TEST_CASE("members that this version does not support are planned ones in the configuration") {
  const scratch_folder folder;
  auto row = split_row();
  row.design.compute.count = 1;
  row.design.memory.count = 248;
  row.design.partition = scheduler::partition_kind::requests;
  row.design.prefill = row.design.compute;
  row.design.prefill_servers = 100;
  const auto text = yaml_of(row, {});
  std::ofstream{folder / "plan.yaml"} << text;
  const auto got = run_shell(folder / ".", "lamella config show --config plan.yaml");
  INFO(got.err);
  CHECK(got.code == 0);
  const auto pools = YAML::Load(text)["pools"];
  CHECK(pools["attention"]["members"].as<int>() == 64);
  CHECK(pools["prefill"]["members"].as<int>() == 64);
  CHECK(has(text, "    members: 64\n    # planned: 248, which this version does not support\n"));
  CHECK(has(text, "    members: 64\n    # planned: 100, which this version does not support\n"));
  // Shards that share heads are as many as these allow.
  auto model = llama();
  model.kv_heads = row.design.memory.count = 96;
  row.design.partition = scheduler::partition_kind::heads;
  CHECK(YAML::Load(yaml_of(row, {}, model))["pools"]["attention"]["members"].as<int>() == 48);
}

TEST_CASE("tensor parallelism that the KV heads do not allow is a planned one") {
  auto row = split_row();
  row.design.compute.count = 4;
  row.design.memory.count = 2;
  auto model = llama();
  model.heads = 64;
  model.kv_heads = 2;
  const auto text = yaml_of(row, {}, model);
  CHECK_FALSE(YAML::Load(text)["pools"]["model"]["tensor_parallel"]);
  CHECK(has(text, "    # planned: tensor_parallel 4, which this version does not support for 2 KV "
                  "heads\n"));
  model.kv_heads = 4;
  CHECK(YAML::Load(yaml_of(row, {}, model))["pools"]["model"]["tensor_parallel"].as<int>() == 4);
}

TEST_CASE("the manifest of a planned design has its configuration, probes and ports") {
  const auto row = split_row();
  const cli::plan_options o;
  const auto parts = YAML::LoadAll(cli::plan_manifest(row, llama(), o));
  REQUIRE(parts.size() == 3);
  CHECK(parts[0]["data"]["lamella.yaml"].as<std::string>() == yaml_of(row, o));
  const auto deployment = parts[1]["spec"];
  CHECK(deployment["replicas"].as<int>() == 3);
  const auto pod = deployment["template"]["spec"]["containers"][0];
  CHECK(pod["livenessProbe"]["httpGet"]["path"].as<std::string>() == "/live");
  CHECK(pod["startupProbe"]["httpGet"]["path"].as<std::string>() == "/live");
  CHECK(pod["securityContext"]["readOnlyRootFilesystem"].as<bool>());
  CHECK(pod["readinessProbe"]["httpGet"]["path"].as<std::string>() == "/ready");
  CHECK(pod["resources"]["limits"]["nvidia.com/gpu"].as<int>() == 6);
  // A probe asks a port by name; it must be one of the container's.
  const auto asked = pod["readinessProbe"]["httpGet"]["port"].as<std::string>();
  bool there = false;
  for (const auto& port : pod["ports"]) there = there || port["name"].as<std::string>() == asked;
  CHECK(there);
}

TEST_CASE("a model file without a configuration to write it into is refused") {
  const scratch_folder folder;
  const auto got = run_shell(folder / ".", "lamella plan --model-path tiny.gguf");
  CHECK(got.code == 2);
  CHECK(has(got.err, "--model-path: requires --emit"));
}

TEST_CASE("plan --emit writes both files, and they pass config check as they are") {
  const scratch_folder folder;
  write_model(folder / "tiny.gguf");
  const auto made = run_shell(
      folder / ".", "printf \"arrival_s,prompt_tokens,output_tokens\\n0,100,20\\n0.1,200,30\\n\" "
                    "> t.csv && lamella plan --trace t.csv --menu H20 --top 2 --threads 1 "
                    "--model-path tiny.gguf --emit design");
  INFO(made.err);
  REQUIRE(made.code == 0);
  CHECK(made.err.empty()); // no progress where there is no terminal
  CHECK(has(made.out, " none "));
  const auto got = run_shell(folder / ".", check + "design/lamella.yaml");
  INFO(got.err);
  CHECK(got.code == 0);
  CHECK(std::filesystem::exists(folder / "design/kubernetes.yaml"));
}
