#include "cli/configuration.hpp"

#include "base/failpoint.hpp"
#include "cli/app.hpp"
#include "cli/commands.hpp"
#include "config/options.hpp"

namespace lamella::cli {

config::inputs configuration_flags::inputs() const {
  config::inputs from;
  if (!config.empty()) from.file = config;
  from.environment = config::process_environment();
  from.set = set;
  for (const auto& [flag, value] : dedicated)
    if (!value.second.empty()) from.flags.push_back({flag, value.first, value.second});
  return from;
}

std::shared_ptr<configuration_flags> add_configuration_flags(CLI::App& app) {
  auto flags = std::make_shared<configuration_flags>();
  app.add_option("--config", flags->config, "Configuration file")->type_name("FILE");
  app.add_option("--set", flags->set,
                 "Set one key, such as http.listen=127.0.0.1:9000; may be repeated")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  return flags;
}

void add_key_flag(CLI::App& app, configuration_flags& flags, const std::string& flag,
                  const std::string& key, const std::string& value_name) {
  auto& value = flags.dedicated[flag];
  value.first = key;
  const auto* option = config::find_option(key);
  app.add_option(flag, value.second, (option ? option->sentence + " " : "") + "(" + key + ")")
      ->type_name(value_name);
}

std::shared_ptr<std::vector<std::string>> add_failpoint_flag(CLI::App& app) {
  auto texts = std::make_shared<std::vector<std::string>>();
  app.add_option("--failpoint", *texts,
                 "For tests: arm a failpoint, such as worker.launch=0.01:crash or "
                 "link.send=1:delay:20; may be repeated")
      ->type_name("NAME=PROBABILITY:ACTION[:ARGUMENT]")
      ->allow_extra_args(false);
  return texts;
}

void arm_failpoints(const std::vector<std::string>& texts) {
  for (const auto& text : texts) try {
      arm_failpoint(text);
    } catch (const std::invalid_argument& e) {
      throw command_error{exit_usage, std::string{"--failpoint: "} + e.what(),
                          "write it as NAME=PROBABILITY:ACTION[:ARGUMENT]; there are "
                              + failpoint_names()};
    }
}

config::loaded load_configuration(const config::inputs& from) {
  auto made = config::load(from);
  for (const auto& warning : made.warnings) print_warning(warning);
  if (made.problems.empty()) return made;
  std::vector<command_error::problem> problems;
  for (const auto& x : made.problems) problems.push_back({x.text(), x.hint});
  throw command_error{made.missing_file ? exit_missing_input : exit_configuration,
                      std::move(problems)};
}

config::loaded load_configuration(const configuration_flags& flags) {
  return load_configuration(flags.inputs());
}

} // namespace lamella::cli
