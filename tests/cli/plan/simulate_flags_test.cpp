// The flags of `lamella simulate`, as its users give them: the real binary and its exit codes.
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

/// A trace small enough for any design, so that only the words are looked at.
constexpr const char* with_trace =
    "printf \"arrival_s,prompt_tokens,output_tokens\\n0,100,20\\n0.1,200,30\\n0.2,50,10\\n\" "
    "> t.csv && lamella simulate --trace t.csv ";

} // namespace

TEST_CASE("every kind of design runs with its own default model") {
  const scratch_folder folder;
  struct row {
    const char *design, *model;
  };
  for (const auto& x : {row{"lamina", "LLaMA3-70B"},
                        {"homogeneous", "LLaMA3-70B"},
                        {"splitwise", "BLOOM-176B"},
                        {"neo", "LLaMA3-8B"}}) {
    CAPTURE(x.design);
    const auto got =
        run_shell(folder / ".", std::string{with_trace} + "--json --design " + x.design);
    CHECK(got.code == 0);
    CHECK(got.err.empty());
    CHECK(has(got.out, "\"model\":\"" + std::string{x.model} + "\""));
    CHECK(has(got.out, "\"requests\":3,"));
  }
}

TEST_CASE("without a second token, times between tokens are null in JSON and said to be none on "
          "the page") {
  const scratch_folder folder;
  const std::string one_token =
      "printf \"arrival_s,prompt_tokens,output_tokens\\n0,10,1\\n1,10,1\\n\" > t.csv && "
      "lamella simulate --trace t.csv --load trace ";
  for (const char* design :
       {"--prefill beside", "--design homogeneous --devices 4xH100-SXM --prefill beside",
        "--design splitwise", "--design neo"}) {
    CAPTURE(design);
    const auto json = run_shell(folder / ".", one_token + "--json " + design);
    CHECK(json.code == 0);
    CHECK(has(json.out, "\"tbt_ms\":{\"mean\":null,\"p50\":null,\"p90\":null,\"p99\":null}"));
    CHECK_FALSE(has(json.out, "\"ttft_ms\":{\"mean\":null"));
    CHECK(has(run_shell(folder / ".", one_token + design).out, "TBT         none"));
  }
}

TEST_CASE("a model that a design cannot be simulated with names those it can") {
  const scratch_folder folder;
  const auto unmeasured =
      run_shell(folder / ".", std::string{with_trace} + "--design splitwise --model LLaMA3-70B");
  CHECK(unmeasured.code == cli::exit_usage);
  CHECK(has(unmeasured.err, "LLaMA3-70B"));
  CHECK(has(unmeasured.err, "hint: models with measurements: BLOOM-176B, LLaMA2-70B"));
  const auto large =
      run_shell(folder / ".", std::string{with_trace} + "--design neo --model LLaMA3-70B");
  CHECK(large.code == cli::exit_configuration);
  CHECK(has(large.err, "models of the table that fit: LLaMA-7B, LLaMA3-8B, SmolLM2-135M"));
}

TEST_CASE("a flag that does not apply to the design is refused with the designs that have it") {
  const scratch_folder folder;
  struct row {
    const char *words, *flag, *hint;
  };
  for (const auto& x :
       {row{"--compute 2xH100-SXM --design homogeneous", "--compute", "--design lamina"},
        {"--overlap off --design splitwise", "--overlap", "--design lamina"},
        {"--devices 4xH20", "--devices", "--design homogeneous"},
        {"--kv token --design neo", "--kv", "--design homogeneous"},
        {"--token 4xDGX-A100", "--token", "--design splitwise"},
        {"--cpu x86-8ch-generic --design homogeneous", "--cpu", "--design neo"},
        {"--csv out.csv --design neo", "--csv", "--design lamina, homogeneous, served"},
        {"--hardware x.csv --design splitwise", "--hardware", "--design lamina, homogeneous, neo"},
        {"--svg x.svg", "--svg", "--reproduce"},
        {"--stand-backs 4", "--stand-backs", "--design served"},
        {"--tbt-target 1 --design neo", "--tbt-target", "--design lamina, homogeneous, served"},
        {"--reproduce neo --gpu 1xT4", "--gpu", "--design neo"},
        {"--reproduce neo --json", "--json",
         "--design lamina, homogeneous, splitwise, neo, served"}}) {
    CAPTURE(x.words);
    const auto got = run_shell(folder / ".", std::string{"lamella simulate "} + x.words);
    CHECK(got.code == cli::exit_usage);
    CHECK(got.out.empty());
    CHECK(has(got.err, "error: " + std::string{x.flag} + ": does not apply to --"));
    CHECK(has(got.err, "hint: it is for " + std::string{x.hint} + "\n"));
  }
  const auto both =
      run_shell(folder / ".", "lamella simulate --design neo --memory 4xH20 --prompt none");
  CHECK(both.code == cli::exit_usage);
  CHECK(has(both.err, "--memory"));
  CHECK(has(both.err, "--prompt"));
}

TEST_CASE("V-M17 batches are those of the pipeline, and a number that contradicts it is refused") {
  const scratch_folder folder;
  const auto told = [&](const std::string& words) {
    return run_shell(folder / ".", "lamella simulate --trace uniform:30,1000,50 " + words);
  };
  for (const char* off : {"--pipeline off", "--pipeline off --batches auto"}) {
    CAPTURE(off);
    CHECK(has(told(off).out, "DOP (2,4) H100-SXM + H20, n = 1\n")); // one replica
  }
  CHECK(
      has(told("--pipeline off --batches auto --compute 4xH100-SXM --replicas 2").out, "n = 2\n"));
  CHECK(told("--pipeline auto --batches auto").code == 0);
  CHECK(has(told("--pipeline fixed --batches 3 --compute 4xH100-SXM").out, "n = 3\n"));
  for (const char* bad : {"--pipeline auto --batches 7", "--pipeline off --batches 2"}) {
    CAPTURE(bad);
    const auto got = told(bad);
    CHECK(got.code == cli::exit_usage);
    CHECK(has(got.err, "--batches: does not apply to --pipeline "));
    CHECK(has(got.err, "hint: leave it out, or use --pipeline fixed or rotational\n"));
  }
}

TEST_CASE(
    "L-M03 devices may come and go in a run, and the price is that of those that were there") {
  const scratch_folder folder;
  const auto told = [&](const std::string& words) {
    return run_shell(folder / ".", std::string{with_trace} + words);
  };
  const auto more = told("--scale memory@0.1=+4 --scale memory@0.2=-4");
  INFO(more.err);
  CHECK(more.code == 0);
  CHECK(has(more.out, "scaled      2 times"));
  CHECK(told("--design homogeneous --scale compute@0.1=+1").code == 0);
  for (const char* bad : {"memory@1", "memory@1=", "memory@1=0", "memory@1=x", "disk@1=+1",
                          "memory=+1", "memory@1+2=+1", "memory@1=+1x", "memory@1=+999"}) {
    CAPTURE(bad);
    const auto got = told(std::string{"--scale "} + bad);
    CHECK(got.code == cli::exit_usage);
    CHECK(has(got.err, "--scale"));
  }
  CHECK(has(told("--design homogeneous --scale memory@1=+1").err, "no memory devices"));
  // Three members cannot share eight KV heads.
  const auto uneven = told("--scale memory@0=-1");
  CHECK(uneven.code == cli::exit_configuration);
  CHECK(has(uneven.err, "scaling after 0 s"));
}

TEST_CASE("L-M27 V-M16 prompts may be computed by servers of their own, or beside decoding") {
  const scratch_folder folder;
  const auto told = [&](const std::string& words) {
    return run_shell(folder / ".", std::string{with_trace} + words);
  };
  const auto pool = told("--prefill 4xH100-SXM --prefill-servers 2");
  INFO(pool.err);
  CHECK(pool.code == 0);
  CHECK(has(pool.out, "prompts on 2 x (2 x H100-SXM)"));
  CHECK(has(pool.out, "waiting and prefill included"));
  const auto beside = told("--design homogeneous --prefill beside");
  CHECK(beside.code == 0);
  CHECK(has(beside.out, "prefill on the decode devices"));
  CHECK(has(told("").out, "no prefill"));
  CHECK(told("--prefill 3xH100-SXM --prefill-servers 2").code == cli::exit_usage);
  const auto small = told("--prefill 1xH100-SXM");
  CHECK(small.code == cli::exit_configuration);
  CHECK(has(small.err, "for prompts"));
}

TEST_CASE("L-M25 L-M26 devices may die in a run, and what that costs is told") {
  const scratch_folder folder;
  const auto told = [&](const std::string& words) {
    return run_shell(folder / ".", std::string{with_trace} + words);
  };
  const auto lost = told("--failure memory@0.1+2 --failure compute@0.2");
  CHECK(lost.code == 0);
  CHECK(has(lost.out, "failures    2, "));
  CHECK(!has(lost.out, "failures    2, 0 tokens"));
  const auto kept = told("--failure compute@0.1");
  CHECK(kept.code == 0);
  CHECK(has(kept.out, "failures    1, 0 tokens recomputed"));
  for (const char* bad : {"memory", "disk@3", "memory@", "memory@-1", "memory@1+", "memory@1+x",
                          "memory@1e99", "@3"}) {
    CAPTURE(bad);
    const auto got = told(std::string{"--failure "} + bad);
    CHECK(got.code == cli::exit_usage);
    CHECK(has(got.err, "--failure"));
  }
  const auto machine = told("--design splitwise --prompt 1xDGX-H100 --token 1xDGX-H100 --failure "
                            "1@0.5+3 --failure 0@0.01 --checkpoint --repurpose 60 --report 0.5");
  CHECK(machine.code == 0);
  CHECK(has(machine.out, "failures    2, "));
  for (const char* bad : {"2@1", "memory@1", "-1@1", "1", "1x@1"}) {
    CAPTURE(bad);
    const auto got = told(std::string{"--design splitwise --prompt 1xDGX-H100 --token "
                                      "1xDGX-H100 --failure "}
                          + bad);
    CHECK(got.code == cli::exit_usage);
    CHECK(has(got.err, "a machine from 0 to 1"));
  }
  const auto job = told("--design splitwise --prompt none --token 2xDGX-A100 --batching request "
                        "--json");
  CHECK(job.code == 0);
  for (const char* name : {"requests_per_s", "requests_per_usd", "device_wh_per_request"})
    CHECK(has(job.out, name));
  const auto no_memory = told("--design homogeneous --failure memory@1");
  CHECK(no_memory.code == cli::exit_usage);
  CHECK(has(no_memory.err, "no memory devices"));
}
