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
    const auto text = cli::plan_yaml(row, o);
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
    std::ofstream{folder / "shared.yaml"} << cli::plan_yaml(row, o);
    CHECK(has(cli::plan_yaml(row, o), by_request ? "# planned: 1 NIC of 400 Gb/s for 3 x H20"
                                                 : "# planned: 1 NIC of 400 Gb/s for 4 x H20"));
    CHECK(run_shell(folder / ".", check + "shared.yaml").code == 0);
    row.design.prefill = row.design.compute;
    row.design.prefill_servers = 3;
    std::ofstream{folder / "prompts.yaml"} << cli::plan_yaml(row, o);
    CHECK(YAML::Load(cli::plan_yaml(row, o))["pools"]["prefill"]["members"].as<int>() == 3);
    const auto prompts = run_shell(folder / ".", check + "prompts.yaml");
    INFO(prompts.err);
    CHECK(prompts.code == 0);
    row.design.compute.count = 1;
    const auto apart = cli::plan_yaml(row, o);
    CHECK(YAML::Load(apart)["pools"]["prefill"]["attention"].as<std::string>() == "own");
    CHECK(has(apart, "# planned: tensor_parallel 2; they are as many devices as a replica"));
    row.batch = 20'000; // memory of devices that are yet to come
    if (!by_request) CHECK(has(cli::plan_yaml(row, o), "max_batch: 4096 # the most that"));
    o.model_path.clear();
    for (const char* named :
         {"path: \"\" # fill in", "# placement: remote # fill in", "# device: cuda:0 # fill in"})
      CHECK(has(cli::plan_yaml(row, o), named));
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
  const auto text = cli::plan_yaml(row, o);
  const auto yaml = YAML::Load(text);
  CHECK(yaml["batching"]["launches"].as<std::string>() == "mixed");
  CHECK(yaml["batching"]["prefill_chunk_tokens"].as<uint32_t>() == row.design.chunk_tokens);
  CHECK_FALSE(has(cli::plan_yaml(split_row(), o), "launches"));
}

TEST_CASE("L-M17 V-M17 the pipeline that was planned is emitted") {
  auto row = split_row();
  row.design.replicas = 2;
  const auto batching = [&] { return YAML::Load(cli::plan_yaml(row, {}))["batching"]; };
  row.design.batches = 3;
  CHECK(batching()["pipeline"].as<std::string>() == "rotational");
  CHECK(batching()["batches"].as<int>() == 3);
  row.design.pipeline = scheduler::pipeline_kind::fixed;
  CHECK(batching()["pipeline"].as<std::string>() == "fixed");
  row.design.batches = 2; // none overlap
  CHECK(batching()["pipeline"].as<std::string>() == "off");
  CHECK(batching()["batches"].as<std::string>() == "auto");
}

TEST_CASE("the manifest of a planned design has its configuration, probes and ports") {
  const auto row = split_row();
  const cli::plan_options o;
  const auto parts = YAML::LoadAll(cli::plan_manifest(row, o));
  REQUIRE(parts.size() == 3);
  CHECK(parts[0]["data"]["lamella.yaml"].as<std::string>() == cli::plan_yaml(row, o));
  const auto deployment = parts[1]["spec"];
  CHECK(deployment["replicas"].as<int>() == 3);
  const auto pod = deployment["template"]["spec"]["containers"][0];
  CHECK(pod["livenessProbe"]["httpGet"]["path"].as<std::string>() == "/live");
  CHECK(pod["startupProbe"]["httpGet"]["path"].as<std::string>() == "/live");
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
