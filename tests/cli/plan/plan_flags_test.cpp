// The flags of `lamella plan` and what they have in common with `simulate`, by the real binary.
#include "cli/commands.hpp"
#include "tests/cli/program.hpp"
#include "tests/scratch_folder.hpp"

using namespace lamella;
using tests::run_shell;
using tests::scratch_folder;

namespace {

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// Small designs and few requests, so that only words and columns are looked at.
constexpr const char* small = "lamella plan --trace uniform:40,500,40 --model LLaMA3-8B --top 2 "
                              "--devices-max 2 --threads 1 ";

constexpr const char* no_price_table =
    "printf \"name,kind,bf16_dense_tflops,mem_gb,mem_bw_gbs,tdp_w,nic_gbps,usd_per_hr,usd_purchase,"
    "source\\nA,gpu,900,80,3000,700,400,5,,x\\nB,gpu,900,80,3000,,400,,,x\\n\" > d.csv && ";

} // namespace

TEST_CASE("a menu that names a device twice, or one without what is to be saved, is refused") {
  const scratch_folder folder;
  const auto told = [&](const std::string& words) {
    return run_shell(folder / ".", no_price_table + std::string{small} + words);
  };
  const auto twice = told("--menu H20,H20");
  CHECK(twice.code == cli::exit_usage);
  CHECK(has(twice.err, "H20 is given twice"));
  for (const char* words :
       {"--hardware d.csv --menu A,B", "--hardware d.csv --menu A,B --objective power",
        "--hardware d.csv --menu A,B --objective throughput --budget 50",
        "--hardware d.csv --menu A --prefill 1xB"}) {
    CAPTURE(words);
    const auto got = told(words);
    CHECK(got.code == cli::exit_configuration);
    CHECK(has(got.err, "B has no p"));
    CHECK(has(got.err, "--hardware FILE"));
  }
  const auto unknown = told("--hardware d.csv --menu B --objective throughput");
  CHECK(unknown.code == 0);
  CHECK(has(unknown.out, "| -   | -      | - |")); // no price, no power
  CHECK(has(unknown.out, "The time per token"));
  CHECK(told("--menu H20 --budget 0").code == cli::exit_usage);
}

TEST_CASE("at a rate the table and the JSON have TTFT and E2E") {
  const scratch_folder folder;
  const auto table = run_shell(folder / ".", std::string{small} + "--menu H20 --rate 2");
  CHECK(table.code == 0);
  CHECK(has(table.out, "| TTFT ms p50 | p99 | E2E s p50 | p99 |"));
  const auto json = run_shell(folder / ".", std::string{small} + "--menu H20 --rate 2 --json");
  CHECK(has(json.out, "\"ttft_ms\":{\"mean\":"));
  CHECK(has(json.out, "\"e2e_ms\":{\"mean\":"));
  CHECK(!has(run_shell(folder / ".", std::string{small} + "--menu H20 --json").out, "ttft_ms"));
}

TEST_CASE("where no design keeps the limits, nothing is written, and that is said") {
  const scratch_folder folder;
  const auto got = run_shell(folder / ".", std::string{small}
                                               + "--menu H20 --slo tbt:p99:0.1 --emit out; ls out");
  CHECK(has(got.out, "No design keeps all limits. The nearest is "));
  CHECK(has(got.err, "--emit: nothing was written"));
  CHECK(has(got.err, "ls: "));
  CHECK(has(run_shell(folder / ".", std::string{small} + "--menu H20 --slo tbt:p99:0.1 --json").out,
            "\"misses_by\":"));
}

TEST_CASE("S-M25 N-M25 traces and arrivals may be drawn: even lengths, Poisson or bursts") {
  const scratch_folder folder;
  const auto told = [&](const std::string& words) {
    return run_shell(folder / ".", "lamella simulate --model LLaMA3-8B " + words);
  };
  const auto even = told("--trace uniform:200,500,40 --load 20 --json");
  CHECK(even.code == 0);
  CHECK(has(even.out, "\"requests\":200,"));
  const auto bursts = told("--trace uniform:200,500,40 --load 20,0.1 --json");
  CHECK(bursts.code == 0);
  CHECK(bursts.out != even.out);
  CHECK(told("--trace uniform:200,500,40 --load 20,1 --seed 1 --json").out != bursts.out);
  for (const char* bad : {"uniform:", "uniform:1", "uniform:1,2", "uniform:0,1,1",
                          "uniform:1,2,3,4", "uniform:2,-1,3", "uniform:9999999,1,1"}) {
    CAPTURE(bad);
    const auto got = told(std::string{"--trace "} + bad);
    CHECK(got.code == cli::exit_usage);
    CHECK(has(got.err, "uniform:REQUESTS,PROMPT,OUTPUT"));
  }
  for (const char* bad : {"2,", "2,0", "2,1000", "2,x", ",1", "2,1,1"}) {
    CAPTURE(bad);
    const auto got = told(std::string{"--trace uniform:9,9,9 --load "} + bad);
    CHECK(got.code == cli::exit_usage);
    CHECK(has(got.err, "RATE,SHAPE"));
  }
}

TEST_CASE("constants that nothing could be are refused with their range") {
  const scratch_folder folder;
  const auto told = [&](const std::string& words) {
    return run_shell(folder / ".", "lamella simulate --trace uniform:9,9,9 --constant " + words);
  };
  for (const char* bad : {"memory_utilization=1.1", "weight_read_efficiency=0", "baseline_seats=0",
                          "link_efficiency=2", "roofline_sharpness=0", "host_link_gbs=0"}) {
    CAPTURE(bad);
    const auto got = told(bad);
    CHECK(got.code == cli::exit_usage);
    CHECK(has(got.err, "is not a number within "));
  }
  CHECK(told("kernel_gap_us=0").code == 0);
}

TEST_CASE("servers for prompts without devices for them are refused") {
  const scratch_folder folder;
  for (const char* words : {"lamella simulate --trace uniform:9,9,9 --prefill-servers 2",
                            "lamella simulate --trace uniform:9,9,9 --prefill beside "
                            "--prefill-servers 2",
                            "lamella plan --trace uniform:9,9,9 --prefill-servers 2"}) {
    CAPTURE(words);
    const auto got = run_shell(folder / ".", words);
    CHECK(got.code == cli::exit_usage);
    CHECK(has(got.err, "--prefill-servers: there are no devices to divide"));
  }
}

TEST_CASE("results say what was used, and leave out what is not known") {
  const scratch_folder folder;
  const auto told = [&](const std::string& words) {
    return run_shell(folder / ".", "lamella simulate --trace uniform:60,500,40 " + words);
  };
  const auto same = told("--design homogeneous --failure compute@1e7 --scale compute@1e7=+1");
  CHECK(same.code == 0);
  CHECK(!has(same.out, "network"));
  CHECK(has(same.out, "failures    0, 0 tokens recomputed; of 1, the others came after"));
  CHECK(has(same.out, "not scaled  1 times"));
  CHECK(has(same.out, "E2E         "));
  const auto cluster = told("--design splitwise --json");
  CHECK(!has(cluster.out, "\"iterations\""));
  CHECK(!has(cluster.out, "\"model_busy\""));
  CHECK(!has(cluster.out, "\"running\":0,"));
  CHECK(told("--batches auto --replicas 2 --compute 4xH100-SXM").code == 0);
}

TEST_CASE("a run without gaps between tokens has no TBT, a host is a cpu, a seed is not negative") {
  const scratch_folder folder;
  const auto told = [&](const std::string& words) {
    return run_shell(folder / ".", "printf \"arrival_s,prompt_tokens,output_tokens\\n5,100,1\\n\" "
                                   "> t.csv && lamella simulate --trace t.csv "
                                       + words);
  };
  CHECK(has(told("--design splitwise").out, "TBT         none"));
  CHECK(has(told("--design homogeneous --stages 2").out, "2 stages of 2 x H100-SXM"));
  const auto host = told("--design neo --cpu H20");
  CHECK(host.code == cli::exit_usage);
  CHECK(has(host.err, "--cpu: H20 is not a host but a gpu"));
  CHECK(told("--load 3 --seed -1").code == cli::exit_usage);
  CHECK(told("--design homogeneous --stages 3").code == cli::exit_usage);
  CHECK(
      has(told("--batches 4 --stages 2 --compute 8xH100-SXM").err, "3 stages of replicas, not 2"));
  CHECK(told("--design neo --stages 2").code == cli::exit_usage);
}

TEST_CASE("V-M04 plan looks at stages when it is asked to, and writes what it planned") {
  const scratch_folder folder;
  const auto told = [&](const std::string& words) {
    return run_shell(folder / ".",
                     "lamella plan --trace uniform:300,500,40 --model LLaMA3-70B --top 30 "
                     "--devices-max 4 --menu H100-SXM --threads 1 "
                         + words);
  };
  CHECK(!has(told("").out, "stages of"));
  CHECK(has(told("--stages-max 4").out, "2 stages of 2 x H100-SXM"));
}
