/// `lamella config show`, `schema` and `diff`: the table of options for people.
#include "base/json_writer.hpp"
#include "cli/app.hpp"
#include "cli/commands.hpp"
#include "cli/configuration.hpp"
#include "config/reload.hpp"
#include "config/schema.hpp"

#include <cstdio>

namespace lamella::cli {
namespace {

struct show_flags {
  bool effective = false;
  bool origin = false;
  bool json = false;
};

struct diff_flags {
  std::vector<std::string> files;
  bool json = false;
};

void print_differences(const std::vector<config::difference>& found, bool json) {
  if (json) {
    json_writer out;
    out.begin_object().member("version", 1).key("differences").begin_array();
    for (const auto& x : found)
      out.begin_object()
          .member("key", x.key)
          .member("before", x.before)
          .member("after", x.after)
          .member("reload", x.needs_restart ? "restart" : "live")
          .end_object();
    std::printf("%s\n", out.end_array().end_object().text().c_str());
    return;
  }
  for (const auto& x : found)
    std::printf("%s: %s -> %s (%s)\n", x.key.c_str(),
                x.before.empty() ? "(none)" : x.before.c_str(),
                x.after.empty() ? "(none)" : x.after.c_str(), x.needs_restart ? "restart" : "live");
}

} // namespace

run_function setup_config_show(CLI::App& app) {
  auto flags = add_configuration_flags(app);
  auto how = std::make_shared<show_flags>();
  app.add_flag("--effective", how->effective, "Show every key, including defaults");
  app.add_flag("--origin", how->origin, "Show the source of each value");
  app.add_flag("--json", how->json, "Write JSON");
  return [flags, how] {
    const auto made = load_configuration(*flags);
    const config::show_options options{.effective = how->effective, .with_origin = how->origin};
    const auto text =
        how->json ? config::show_json(made, options) : config::show_yaml(made, options);
    std::fputs(text.c_str(), stdout);
    return int{exit_success};
  };
}

run_function setup_config_schema(CLI::App& app) {
  auto reference = std::make_shared<bool>(false);
  app.add_flag("--reference", *reference, "Write the reference page as Markdown instead");
  return [reference] {
    std::fputs((*reference ? config::reference_text() : config::schema_json()).c_str(), stdout);
    return int{exit_success};
  };
}

run_function setup_config_diff(CLI::App& app) {
  auto flags = add_configuration_flags(app);
  auto how = std::make_shared<diff_flags>();
  app.add_option("files", how->files,
                 "Two files to compare; without them: defaults and effective values")
      ->expected(0, 2);
  app.add_flag("--json", how->json, "Write JSON");
  return [flags, how] {
    if (how->files.size() == 1)
      throw command_error{exit_usage, "config diff compares two files, and got one",
                          "name both, or use --config FILE to compare with the defaults"};
    if (how->files.empty()) {
      print_differences(config::diff({}, load_configuration(*flags).value), how->json);
      return int{exit_success};
    }
    // Only the files count: the environment would hide what differs between them.
    config::inputs before;
    config::inputs after;
    before.file = how->files[0];
    after.file = how->files[1];
    print_differences(
        config::take_live(load_configuration(before).value, load_configuration(after).value)
            .changes,
        how->json);
    return int{exit_success};
  };
}

} // namespace lamella::cli
