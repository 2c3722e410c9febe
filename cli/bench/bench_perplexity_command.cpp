/// The flags of `lamella bench perplexity`.
#include "cli/app.hpp"
#include "cli/bench/bench_perplexity.hpp"
#include "cli/commands.hpp"
#include "cli/configuration.hpp"
#include "cli/named_values.hpp"

#include <map>

namespace lamella::cli {

run_function setup_bench_perplexity(CLI::App& app) {
  auto flags = add_configuration_flags(app);
  add_key_flag(app, *flags, "--model", "model.path", "PATH");
  using config::number_type;
  const std::map<std::string, number_type> types{{"f16", number_type::f16},
                                                 {"f32", number_type::f32},
                                                 {"bf16", number_type::bf16},
                                                 {"q8", number_type::q8},
                                                 {"q4", number_type::q4}};
  auto o = std::make_shared<perplexity_options>();
  app.add_option("text", o->text, "A text, read as UTF-8")->type_name("FILE")->required();
  app.add_option("--against", o->against,
                 "Another file of the same model, with weights of other types; may be repeated")
      ->type_name("PATH");
  app.add_option("--kv", o->kv, "Number types of K and V to compare: f16, f32, bf16, q8, q4")
      ->delimiter(',')
      ->type_name("TYPE,...")
      ->transform(one_of(types));
  app.add_option("--window", o->window,
                 "Tokens that are computed together, at most the model's context; each window is "
                 "half over the one before")
      ->type_name("N")
      ->check(CLI::Range(2u, 1'000'000u))
      ->capture_default_str();
  app.add_flag("--json", o->json, "Write JSON");
  return [flags, o] { return bench_perplexity(load_configuration(*flags).value, *o); };
}

} // namespace lamella::cli
