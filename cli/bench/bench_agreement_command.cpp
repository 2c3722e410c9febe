/// The flags of `lamella bench agreement`.
#include "cli/app.hpp"
#include "cli/bench/bench_agreement.hpp"
#include "cli/commands.hpp"
#include "cli/configuration.hpp"
#include "cli/plan/simulate.hpp"

namespace lamella::cli {

run_function setup_bench_agreement(CLI::App& app) {
  auto flags = add_configuration_flags(app);
  add_key_flag(app, *flags, "--model", "model.path", "PATH");
  auto o = std::make_shared<agreement_options>();
  app.add_option("--profile", o->profile, "Profile written by lamella bench decode --profile")
      ->type_name("FILE")
      ->required();
  app.add_option("--trace", o->traces, "Traces by name or file; may be repeated")
      ->type_name("TRACE")
      ->capture_default_str();
  app.add_option("--requests", o->requests, "Requests of each trace")
      ->type_name("N")
      ->check(CLI::Range(1u, 65'536u))
      ->capture_default_str();
  app.add_option("--load", o->load, "saturated, trace, or Poisson arrivals per second")
      ->type_name("LOAD")
      ->capture_default_str();
  app.add_option("--seed", o->seed, "Seed of the arrivals")->type_name("N")->capture_default_str();
  app.add_flag("--json", o->json, "Write JSON");
  return [flags, o, &app] {
    if (app.count("--seed") > 0) refuse_unused_seed(o->load);
    return bench_agreement(load_configuration(*flags).value, *o);
  };
}

} // namespace lamella::cli
