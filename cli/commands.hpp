/// The commands of `lamella`: one row and one source file each.
#pragma once

#include <functional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace CLI {
class App;
}

namespace lamella::cli {

/// Exit codes, those of sysexits.h where one fits (docs/operations.md).
enum exit_code : int {
  exit_success = 0,
  exit_failure = 1,
  exit_usage = 2,
  exit_damaged_input = 65,
  exit_missing_input = 66,
  exit_unavailable = 69,
  exit_permission = 77,
  exit_configuration = 78,
  exit_interrupted = 130 ///< by Ctrl-C, as shells have it
};

/// A command failed. main() prints every problem as `lamella: error: ...`, with `hint: ...` below
/// where there is one, and ends with the code.
class command_error : public std::runtime_error {
public:
  struct problem {
    std::string message;
    std::string hint;
  };

  command_error(int code, std::string message, std::string hint = {})
      : command_error{code, {problem{std::move(message), std::move(hint)}}} {}
  command_error(int code, std::vector<problem> all)
      : std::runtime_error{all.empty() ? "" : all.front().message}, code_{code}, problems_{
                                                                                     std::move(
                                                                                         all)} {}

  int code() const { return code_; }
  const std::vector<problem>& problems() const { return problems_; }

private:
  int code_;
  std::vector<problem> problems_;
};

/// What a command does once its flags are read; returns the exit code.
using run_function = std::function<int()>;

/// One command. `setup` adds its flags to `app` and returns what to run; the values it binds flags
/// to must live in that function object (a shared_ptr to a struct of options is the pattern).
struct command {
  std::string path; ///< the arguments: "serve", "config check"
  std::string summary;
  std::string example; ///< shown below --help; one or more lines
  run_function (*setup)(CLI::App& app);
};

/// All commands, in the order of --help. To add one: a row in commands.cpp, its setup declared
/// below, and a source file.
std::span<const command> commands();

/// The summaries of words that only group commands: "config", "model", "bench".
std::string group_summary(const std::string& group);

run_function setup_serve(CLI::App& app);
run_function setup_worker(CLI::App& app);
run_function setup_chat(CLI::App& app);
run_function setup_status(CLI::App& app);
run_function setup_pools(CLI::App& app);
run_function setup_events(CLI::App& app);
run_function setup_trace(CLI::App& app);
run_function setup_scale(CLI::App& app);
run_function setup_drain(CLI::App& app);
run_function setup_bench_serve(CLI::App& app);
run_function setup_bench_compare(CLI::App& app);
run_function setup_chaos(CLI::App& app);
run_function setup_bench_decode(CLI::App& app);
run_function setup_bench_agreement(CLI::App& app);
run_function setup_bench_perplexity(CLI::App& app);
run_function setup_doctor(CLI::App& app);
run_function setup_simulate(CLI::App& app);
run_function setup_plan(CLI::App& app);
run_function setup_bench_gemm(CLI::App& app);
run_function setup_bench_attention(CLI::App& app);
run_function setup_bench_channel(CLI::App& app);
run_function setup_model_fetch(CLI::App& app);
run_function setup_model_inspect(CLI::App& app);
run_function setup_model_slices(CLI::App& app);
run_function setup_config_check(CLI::App& app);
run_function setup_config_show(CLI::App& app);
run_function setup_config_schema(CLI::App& app);
run_function setup_config_diff(CLI::App& app);
run_function setup_completion(CLI::App& app);
run_function setup_version(CLI::App& app);

} // namespace lamella::cli
