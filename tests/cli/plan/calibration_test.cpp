// From measuring a service to simulations of it: the pure parts, and the commands on a tiny model.
// How long anything takes is never checked.
#include "cli/bench/bench_agreement.hpp"
#include "cli/bench/bench_decode.hpp"
#include "cli/commands.hpp"
#include "cli/plan/bench_profile.hpp"
#include "tests/cli/program.hpp"
#include "tests/scratch_folder.hpp"
#include "tests/tiny_model.hpp"

#include <algorithm>

using namespace lamella;
using tests::run_shell;
using tests::scratch_folder;

namespace {

bool has(const std::string& text, const std::string& part) {
  INFO(text);
  return text.find(part) != std::string::npos;
}

/// A small service: quick to measure, and free of other programs' ports.
const std::string service =
    " --model tiny.gguf --set batching.max_batch=4 --set batching.prefill_chunk_tokens=32 ";
const std::string small = "--batch 1,3 --context 20,60 --prefill 8,32,100 --iterations 4 ";

void make_model(const scratch_folder& folder) {
  tests::tiny_model_options options;
  options.layers = 2;
  tests::write_tiny_model(folder / "tiny.gguf", options);
}

void write(const std::filesystem::path& path, const std::string& text) {
  std::ofstream{path, std::ios::binary} << text;
}

} // namespace

TEST_CASE("rates are shares of the speed alone, the mean of all samples of a batch") {
  // Ten iterations of 20 ms and a prompt of 0.3 s took half a second together.
  const auto rates = cli::rates_of({{4, 100, 512, 0.02, 0.3, 0.5, 10},
                                    {8, 100, 512, 0.02, 0.3, 0.5, 20},
                                    {4, 100, 512, 0.02, 0.1, 0.5, 5},
                                    {8, 900, 512, 0.02, 0.3, 0.5, 10},
                                    {8, 900, 2048, 0.02, 0.3, 0.5, 5}});
  REQUIRE(rates.size() == 4);
  CHECK(rates[0].rows == 4);
  CHECK(rates[0].decode_rate == doctest::Approx(0.3));
  CHECK(rates[0].prefill_rate == doctest::Approx(0.4));
  CHECK(rates[1].decode_rate == doctest::Approx(0.8));
  CHECK(rates[1].context == 100);
  CHECK(rates[2].decode_rate == doctest::Approx(0.4)); // by context, too
  CHECK(rates[2].context == 900);
  CHECK(rates[3].decode_rate == doctest::Approx(0.2)); // and by prompt
  CHECK(rates[3].prompt == 2048);
  // Quicker in company than alone is noise; a profile knows no such rate.
  CHECK(cli::rates_of({{1, 0, 0, 0.1, 0.6, 0.5, 10}})[0] == scheduler::sharing_point{1, 1, 1});
}

TEST_CASE("a profile covers all batches of the service, and prompts around its chunk") {
  cli::bench_options o;
  o.profile = "p.csv";
  cli::fill_batches(o, 6);
  cli::fill_sizes(o, 512, 8192);
  CHECK(o.batches == std::vector<uint32_t>{1, 2, 4, 6});
  CHECK(o.contexts == std::vector<uint32_t>{32, 256, 1024});
  CHECK(o.prefills == std::vector<uint32_t>{32, 128, 512, 2048, 4096});
  cli::bench_options narrow;
  narrow.profile = "p.csv";
  cli::fill_batches(narrow, 1);
  cli::fill_sizes(narrow, 512, 200);
  CHECK(narrow.batches == std::vector<uint32_t>{1});
  CHECK(narrow.prefills == std::vector<uint32_t>{32, 100}); // no longer than half a context
  CHECK(narrow.contexts == std::vector<uint32_t>{32, 100});
  cli::bench_options given;
  given.batches = {7};
  given.contexts = {50, 40};
  given.prefills = {9, 3};
  cli::fill_batches(given, 64);
  cli::fill_sizes(given, 512, 8192);
  CHECK(given.batches == std::vector<uint32_t>{7});
  CHECK(given.contexts == std::vector<uint32_t>{40, 50});
  CHECK(given.prefills == std::vector<uint32_t>{3, 9});
}

TEST_CASE("a profile of another service is told by what differs") {
  scheduler::served_profile one;
  one.model = "a";
  one.kernels = "avx2";
  one.threads = 2;
  one.limits = {1000, 32, 512, 64, 8192};
  auto other = one;
  CHECK(cli::differences(one, other).empty());
  other.limits.slots = 7; // a service with less memory is still the one that was measured
  other.limits.seats = 8;
  CHECK(cli::differences(one, other).empty());
  other.model = "b";
  other.limits.chunk_tokens = 256;
  const auto all = cli::differences(one, other);
  REQUIRE(all.size() == 2);
  CHECK(has(all[0], "model: a in the profile, b in this service"));
  CHECK(has(all[1], "chunk_tokens: 512 in the profile, 256 in this service"));
}

TEST_CASE("agreement is the difference from the live run, number by number") {
  scheduler::simulation_result live, simulated;
  live.tokens_per_s = 100;
  simulated.tokens_per_s = 110;
  live.tbt.add(0.02);
  simulated.tbt.add(0.01);
  const auto rows = cli::compare(live, simulated);
  const auto row = [&](const std::string& what) {
    return *std::find_if(rows.begin(), rows.end(), [&](auto& x) { return x.what == what; });
  };
  CHECK(row("tokens/s").difference() == doctest::Approx(0.1));
  CHECK(row("TBT mean, ms").difference() == doctest::Approx(-0.5));
  CHECK(row("TBT mean, ms").live == doctest::Approx(20));
  CHECK(row("TTFT mean, ms").difference() == 0); // nothing there to differ from
  // Throughput, batch and time between tokens are what is to agree.
  CHECK(std::count_if(rows.begin(), rows.end(), [](auto& x) { return x.target; }) == 3);
}

TEST_CASE("a short trace is the beginning of a long one, without what fits no context") {
  scheduler::request_trace trace;
  for (uint32_t i = 0; i < 6; ++i) trace.push_back({10.0 + i, i == 0 || i == 2 ? 500 : 50u, 9, {}});
  const auto some = cli::beginning_of(trace, 3, 100);
  REQUIRE(some.size() == 3);
  CHECK(some[0].arrival_s == 0);
  CHECK(some[1].arrival_s == doctest::Approx(2));
  CHECK(some[2].arrival_s == doctest::Approx(3));
  CHECK(cli::beginning_of(trace, 9, 100).size() == 4);
  CHECK(cli::beginning_of(trace, 9, 20).empty());
}

TEST_CASE("a service is measured, simulated, planned with and compared with its simulation") {
  const scratch_folder folder;
  make_model(folder);
  const auto measured =
      run_shell(folder / ".", "lamella bench decode" + service + small + "--profile p.csv");
  INFO(measured.err);
  REQUIRE(measured.code == 0);
  const auto profile = cli::load_served_profile((folder / "p.csv").string());
  CHECK(profile.limits.seats == 4);
  CHECK(profile.limits.chunk_tokens == 32);
  CHECK(profile.limits.context_tokens == 512);
  CHECK(profile.decode.size() == 4);
  CHECK(profile.prefill.size() == 3);
  CHECK(profile.sharing.size() == 8); // two batches that leave a seat, two contexts, two prompts
  write(folder / "t.csv", "arrival_s,prompt_tokens,output_tokens\n3,40,20\n3.1,9,1\n3.2,100,30\n"
                          "3.3,60,12\n3.4,7,25\n3.5,600,10\n");
  // The whole tokens of the five that fit: no design of the tables is meant, and no model.
  const auto simulated = run_shell(folder / ".", "lamella simulate --profile p.csv --trace t.csv "
                                                 "--json --csv i.csv --timeline i.json");
  INFO(simulated.err);
  CHECK(simulated.code == 0);
  CHECK(has(simulated.out, "\"requests\":5,\"tokens\":88,\"never_fit\":1"));
  CHECK(has(simulated.out, "\"prefill_busy\":"));
  CHECK(std::filesystem::file_size(folder / "i.csv") > 100);
  CHECK(std::filesystem::file_size(folder / "i.json") > 100);
  const auto planned = run_shell(folder / ".", "lamella plan --profile p.csv --trace t.csv --model "
                                               "LLaMA3-8B --devices-max 2 --rate 0.01 --top 1 "
                                               "--slo ttft:p99:100000");
  INFO(planned.err);
  CHECK(planned.code == 0);
  CHECK(has(planned.out, "For comparison, prefill included: "));
  CHECK(has(planned.out, "1 copy for 0.01 requests/s"));
  for (const char* load : {"saturated", "trace", "50"}) {
    CAPTURE(load);
    const auto compared = run_shell(
        folder / ".", "lamella bench agreement" + service
                          + "--profile p.csv --trace t.csv --trace t.csv --json --load " + load);
    INFO(compared.err);
    CHECK(compared.code == 0);
    CHECK(has(compared.out, "{\"trace\":\"t.csv\",\"requests\":5,"));
    CHECK(has(compared.out, "{\"what\":\"tokens/s\",\"live\":"));
    CHECK(!has(compared.out, "\"live\":0,"));
    CHECK(!has(compared.out, "\"simulated\":0,"));
  }
  const auto other = run_shell(folder / ".", "lamella bench agreement --model tiny.gguf --profile "
                                             "p.csv --trace t.csv");
  CHECK(other.code == cli::exit_configuration);
  CHECK(has(other.err, "chunk_tokens: 32 in the profile, 512 in this service"));
}

TEST_CASE("a profile that cannot be measured, written or read says why") {
  const scratch_folder folder;
  make_model(folder);
  write(folder / "bad.csv", "what,rows,context,value\nversion,,,9\n");
  write(folder / "t.csv", "arrival_s,prompt_tokens,output_tokens\n0,40,20\n");
  struct row {
    std::string words;
    int code;
    const char* says;
  };
  for (const auto& x :
       {row{"bench decode" + service + "--batch 5 --profile p.csv", cli::exit_usage,
            "batching.max_batch"},
        {"bench decode" + service + "--batch 4 --profile p.csv", cli::exit_usage, "a batch below"},
        {"bench decode" + service + "--profile none/p.csv", cli::exit_failure, "none/p.csv"},
        {"bench decode" + service + "--set batching.batches=2 --profile p.csv",
         cli::exit_configuration, "one batch"},
        {"simulate --profile none.csv", cli::exit_missing_input, "none.csv"},
        {"simulate --profile bad.csv", cli::exit_damaged_input, "line 2: a profile of version 9"},
        {"simulate --design served", cli::exit_usage, "--profile"},
        {"simulate --design lamina --profile bad.csv", cli::exit_usage, "--design served"},
        {"simulate --profile bad.csv --model LLaMA3-8B", cli::exit_usage, "--model"},
        {"plan --profile bad.csv", cli::exit_damaged_input, "version 9"},
        {"bench agreement --profile bad.csv", cli::exit_damaged_input, "version 9"},
        {"bench agreement", cli::exit_usage, "--profile"}}) {
    CAPTURE(x.words);
    const auto got = run_shell(folder / ".", "lamella " + x.words);
    CHECK(got.code == x.code);
    CHECK(has(got.err, x.says));
  }
}

TEST_CASE("a seed is refused where no arrivals are drawn") {
  const scratch_folder folder;
  write(folder / "t.csv", "arrival_s,prompt_tokens,output_tokens\n0,40,20\n1,30,10\n");
  for (const char* load : {"", "--load saturated", "--load trace"}) {
    CAPTURE(load);
    const auto got =
        run_shell(folder / ".", std::string{"lamella simulate --trace t.csv --seed 7 "} + load);
    CHECK(got.code == cli::exit_usage);
    CHECK(has(got.err, "--seed: does not apply to --load"));
  }
  const auto with = run_shell(folder / ".", "lamella simulate --trace t.csv --seed 7 --load 2");
  CHECK(with.code == 0);
}
