/// The flags of `lamella bench gemm`.
#include "cli/app.hpp"
#include "cli/bench/parts/bench_gemm.hpp"
#include "cli/commands.hpp"

#include <algorithm>

namespace lamella::cli {

run_function setup_bench_gemm(CLI::App& app) {
  auto options = std::make_shared<bench_gemm_options>();
  auto types = std::make_shared<std::vector<std::string>>();
  std::vector<std::string> names;
  for (const auto& known : model::tensor_types) names.emplace_back(known.name);
  app.add_option("--type", *types, "Weight types; by default all")
      ->delimiter(',')
      ->type_name("NAME,...")
      ->check(CLI::IsMember(names, CLI::ignore_case));
  app.add_option("--rows", options->rows, "Rows of activations")
      ->delimiter(',')
      ->type_name("N,...")
      ->check(CLI::Range(1u, 4096u));
  const auto number = [&](const char* flag, uint32_t& to, const char* what, uint32_t most) {
    app.add_option(flag, to, what)->type_name("N")->check(CLI::Range(1u, most));
  };
  number("--outputs", options->outputs, "Rows of the weights (8192)", 1u << 20);
  number("--inputs", options->inputs, "Columns of the weights (4096)", 1u << 16);
  number("--repeats", options->repeats, "Repetitions of each type (15)", 10'000);
  number("--threads", options->threads, "Threads; by default all processors", 1024);
  app.add_option("--kernels", options->kernels, "Kernel set: auto, reference, portable, ...")
      ->type_name("NAME");
  app.add_flag("--json", options->json, "Write JSON");
  return [options, types] {
    for (const auto& name : *types)
      for (const auto& known : model::tensor_types)
        if (CLI::detail::to_lower(name) == known.name) options->types.push_back(known.type);
    return bench_gemm(*options);
  };
}

} // namespace lamella::cli
