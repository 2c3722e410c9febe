// Perplexity: its windows and figures, and the command on a tiny model.
#include "cli/bench/bench_perplexity.hpp"
#include "cli/commands.hpp"
#include "tests/cli/program.hpp"
#include "tests/scratch_folder.hpp"
#include "tests/tiny_model.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <fstream>

using namespace lamella;
using tests::run_shell;
using tests::scratch_folder;

namespace {

actors::sampled_token predicted(float logprob, uint32_t best) {
  actors::sampled_token x;
  x.logprob = logprob;
  x.top = {{best, 0}};
  return x;
}

bool has(const std::string& text, const std::string& part) {
  INFO(text);
  return text.find(part) != std::string::npos;
}

} // namespace

TEST_CASE("windows count every token but the first once, with half a window before it") {
  for (const uint32_t window : {2u, 3u, 8u, 9u, 100u})
    for (size_t tokens = 2; tokens < 40; ++tokens) {
      CAPTURE(window);
      CAPTURE(tokens);
      size_t counted = 1;
      for (const auto& x : cli::windows_of(tokens, window)) {
        CHECK(x.tokens <= window);
        CHECK(x.scored < x.tokens);
        CHECK(x.scored > 0);
        const auto from = x.first + x.tokens - x.scored;
        CHECK(from == counted);
        if (x.first > 0) CHECK(from - x.first >= window / 2);
        counted += x.scored;
      }
      CHECK(counted == tokens);
    }
}

TEST_CASE("perplexity is e to the mean surprise; differences are of log probabilities") {
  const std::vector<actors::sampled_token> a{predicted(-1, 5), predicted(-3, 6)},
      b{predicted(-1.5f, 5), predicted(-2, 7)};
  CHECK(cli::perplexity_of(a) == doctest::Approx(std::exp(2.0)));
  const auto d = cli::difference_of(a, b);
  CHECK(d.mean == doctest::Approx(0.75));
  CHECK(d.largest == doctest::Approx(1));
  CHECK(d.same_best == doctest::Approx(0.5));
  CHECK(cli::difference_of(a, a).mean == 0);
}

TEST_CASE("bench perplexity compares types of K and V and files, and says what it cannot read") {
  const scratch_folder folder;
  tests::tiny_model_options options;
  options.layers = 2;
  tests::write_tiny_model(folder / "tiny.gguf", options);
  options.weights = model::tensor_type::q8_0;
  tests::write_tiny_model(folder / "small.gguf", options);
  std::ofstream{folder / "text.txt"} << std::string(300, 'a') << " and so on and so on";
  std::ofstream{folder / "short.txt"} << "a";
  const std::string command = "lamella bench perplexity --model tiny.gguf ";
  const auto compared = run_shell(
      folder / ".", command + "text.txt --against small.gguf --kv f32,q8 --window 64 --json");
  INFO(compared.err);
  CHECK(compared.code == 0);
  CHECK(has(compared.out, R"({"model":"tiny.gguf","kv":"f32","perplexity":)"));
  CHECK(has(compared.out, R"({"model":"tiny.gguf","kv":"q8","perplexity":)"));
  CHECK(has(compared.out, R"({"model":"small.gguf","kv":"q8","perplexity":)"));
  CHECK(has(compared.out, R"("mean_difference":0.0,"largest_difference":0.0,"same_best":1.0})"));
  const auto whole = run_shell(folder / ".", command + "text.txt");
  CHECK(whole.code == 0);
  CHECK(has(whole.out, "perplexity"));
  CHECK(run_shell(folder / ".", command + "none.txt").code == cli::exit_missing_input);
  const auto little = run_shell(folder / ".", command + "short.txt");
  CHECK(little.code == cli::exit_usage);
  CHECK(has(little.err, "at least 2 are needed"));
  const auto unknown = run_shell(folder / ".", command + "text.txt --kv f16,q3");
  CHECK(unknown.code == cli::exit_usage);
  CHECK(has(unknown.err, "--kv: 'q3' is not one of bf16, f16, f32, q4 or q8"));
}
