/// The flags of `lamella serve`.
#include "cli/app.hpp"
#include "cli/commands.hpp"
#include "cli/configuration.hpp"
#include "cli/serve/serve.hpp"

namespace lamella::cli {

run_function setup_serve(CLI::App& app) {
  auto flags = add_configuration_flags(app);
  add_key_flag(app, *flags, "--model", "model.path", "PATH");
  add_key_flag(app, *flags, "--listen", "http.listen", "HOST:PORT");
  auto failpoints = add_failpoint_flag(app);
  return [flags, failpoints] {
    arm_failpoints(*failpoints);
    return serve(*flags);
  };
}

} // namespace lamella::cli
