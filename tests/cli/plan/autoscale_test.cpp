// The autoscaler's flags of `lamella simulate`: the real binary and its exit codes.
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

constexpr const char* loaded = "lamella simulate --trace uniform:600,2000,300 --load 6 ";

} // namespace

TEST_CASE("L-M19 an autoscaler's steps are told with times and reasons, and what they save") {
  const scratch_folder folder;
  const auto told = [&](const std::string& words) { return run_shell(folder / ".", words); };
  const auto page =
      told(std::string{loaded} + "--memory 1xH20 --autoscale memory=1..8 --looks looks.jsonl");
  INFO(page.out << page.err);
  CHECK(page.code == 0);
  CHECK(has(page.out, "autoscaled  "));
  CHECK(has(page.out, " s  memory 1 to 2: KV in use is "));
  CHECK(has(page.out, " device hours, "));
  const auto json = told(std::string{loaded} + "--memory 1xH20 --autoscale memory=1..8 --json");
  CHECK(has(json.out, "\"steps\":[{\"at_seconds\":"));
  CHECK(has(json.out, "\"pool\":\"memory\",\"from\":1,\"to\":2,\"reason\":\"KV in use is "));
  CHECK(has(json.out, "\"device_hours_saved\":"));
  // What it saw gives the same steps again, and others with other settings.
  const auto again = told("lamella simulate --scaling-trace looks.jsonl");
  CHECK(again.code == 0);
  CHECK(has(again.out, " s  attention 1 to 2: KV in use is "));
  CHECK(has(again.out, "looks       "));
  const auto other =
      told("lamella simulate --scaling-trace looks.jsonl --policy kv_high_ratio=1 --json");
  CHECK(other.code == 0);
  CHECK(has(other.out, "\"decisions\":[{\"at_seconds\":"));
  CHECK(!has(other.out, "\"step\":{\"pool\":\"attention\",\"from\":1,\"to\":2"));
}

TEST_CASE("an autoscaler follows targets for replicas and servers for prompts") {
  const scratch_folder folder;
  const auto got = run_shell(
      folder / ".", std::string{loaded}
                        + "--prefill 2xH100-SXM --autoscale prefill=1..4 --autoscale compute=1..2 "
                          "--slo ttft:p99:1500 --slo tbt:p99:90 --policy hold_up_seconds=2");
  INFO(got.out << got.err);
  CHECK(got.code == 0);
  CHECK(has(got.out, " s  prefill 1 to 2: "));
}

TEST_CASE("flags of an autoscaler are refused where there is none, or nothing to decide") {
  const scratch_folder folder;
  struct row {
    const char *words, *part;
    int code = cli::exit_usage;
  };
  for (const auto& x :
       {row{"--load 2 --autoscale memory", "is not a pool with its bounds"},
        {"--load 2 --autoscale memory=4..2", "is not a pool with its bounds"},
        {"--load 2 --autoscale memory=0..2", "is not a pool with its bounds"},
        {"--load 2 --autoscale memory=2..8x", "is not a pool with its bounds"},
        {"--load 2 --autoscale disk=1..2", "is not a pool with its bounds"},
        {"--autoscale memory=2..8", "--load saturated"},
        {"--load 2 --slo tbt:p99:80", "--slo: there is no autoscaler"},
        {"--load 2 --looks x", "--looks: there is no autoscaler"},
        {"--load 2 --policy margin_ratio=0.2", "--policy: there is no autoscaler"},
        {"--load 2 --autoscale memory=2..8 --slo tbt:p50:80", "no target of the autoscaler"},
        {"--load 2 --autoscale memory=2..8 --policy kv_hihg_ratio=0.7",
         "did you mean kv_high_ratio"},
        {"--load 2 --autoscale memory=2..8 --policy kv_high_ratio=7", "not a number within"},
        {"--load 2 --autoscale prefill=1..2", "no servers for prompts"},
        {"--load 2 --design homogeneous --autoscale memory=2..8", "no memory devices"},
        {"--load 2 --design neo --autoscale compute=1..2", "--autoscale: does not apply"},
        {"--load 2 --autoscale memory=5..7", "8 KV heads", cli::exit_configuration},
        {"--scaling-trace x --trace y", "--trace: does not apply to --scaling-trace"},
        {"--scaling-trace x --reproduce neo", "--scaling-trace: does not apply to --reproduce"},
        {"--scaling-trace nowhere", "nowhere", cli::exit_missing_input}}) {
    CAPTURE(x.words);
    const auto got = run_shell(folder / ".", std::string{"lamella simulate "} + x.words);
    CHECK(got.code == x.code);
    CHECK(got.out.empty());
    INFO(got.err);
    CHECK(has(got.err, x.part));
  }
  const auto damaged =
      run_shell(folder / ".", "echo \"{}\" > bad && lamella simulate --scaling-trace bad");
  CHECK(damaged.code == cli::exit_damaged_input);
  CHECK(has(damaged.err, "line 1: at_seconds is required"));
}
