/// The flags of `lamella chat`.
#include "cli/app.hpp"
#include "cli/client/chat.hpp"

namespace lamella::cli {

run_function setup_chat(CLI::App& app) {
  auto server = add_server_flags(app);
  auto options = std::make_shared<chat_options>();
  app.add_option("--model", options->model, "The model (default: the first the server lists)")
      ->type_name("NAME");
  app.add_option("--system", options->system, "The system prompt")->type_name("TEXT");
  constexpr double hottest = 2;
  app.add_option("--temperature", options->temperature,
                 "Sampling temperature; 0: greedy (default: the server's)")
      ->type_name("X")
      ->check(CLI::Range(0.0, hottest));
  constexpr uint32_t longest = 10'000'000;
  app.add_option("--max-tokens", options->max_tokens, "Maximum number of output tokens")
      ->type_name("N")
      ->check(CLI::Range(1u, longest));
  auto* once =
      app.add_option("--once", options->once, "Ask one question, print the answer and exit");
  once->type_name("TEXT");
  app.footer(
      "In a terminal, /help lists commands such as /reset. From a file or a pipe each line is a\n"
      "question, also one that begins with a slash.\n\n"
      + app.get_footer());
  return [server, options, once] {
    options->has_once = once->count() > 0;
    if (options->has_once && options->once.empty())
      throw command_error{exit_usage, "--once: the question is empty",
                          "lamella chat --once \"Name three colours.\""};
    return chat(*server, *options);
  };
}

} // namespace lamella::cli
