/// The flags of `lamella bench decode`.
#include "cli/app.hpp"
#include "cli/bench/bench_decode.hpp"
#include "cli/commands.hpp"
#include "cli/configuration.hpp"

namespace lamella::cli {

run_function setup_bench_decode(CLI::App& app) {
  auto flags = add_configuration_flags(app);
  add_key_flag(app, *flags, "--model", "model.path", "FILE");
  auto options = std::make_shared<bench_options>();
  const auto list = [&](const char* flag, std::vector<uint32_t>& to, const char* what,
                        uint32_t most) {
    app.add_option(flag, to, what)->delimiter(',')->type_name("N,...")->check(CLI::Range(1u, most));
  };
  list("--batch", options->batches, "Sequences in the batch", 4096);
  list("--context", options->contexts, "Context length of each sequence at the start, in tokens",
       1'000'000);
  list("--prefill", options->prefills, "Prompt lengths whose prefill is measured", 1'000'000);
  app.add_option("--iterations", options->iterations,
                 "Iterations of each row (24, for a profile 48)")
      ->type_name("N")
      ->check(CLI::Range(1u, 100'000u));
  app.add_option("--repeats", options->repeats, "Runs of each prefill")
      ->type_name("N")
      ->check(CLI::Range(1u, 1000u));
  app.add_option("--profile", options->profile,
                 "Write a profile for simulate and plan here; takes more measurements")
      ->type_name("FILE");
  app.add_flag("--json", options->json, "Write JSON");
  return [flags, options] { return bench_decode(load_configuration(*flags).value, *options); };
}

} // namespace lamella::cli
