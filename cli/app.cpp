#include "cli/app.hpp"

#include "actors/node/node.hpp"
#include "base/float_mode.hpp"
#include "cli/commands.hpp"
#include "cli/terminal.hpp"
#include "config/nearest.hpp"

#include <cstdio>
#include <cstdlib>
#include <iostream>

#include <unistd.h>

namespace lamella::cli {
namespace {

/// The app of a group such as `config`, made at its first command.
CLI::App& group_of(CLI::App& root, const std::string& name) {
  for (auto* known : root.get_subcommands([](const CLI::App*) { return true; }))
    if (known->get_name() == name) return *known;
  auto* made = root.add_subcommand(name, group_summary(name));
  made->require_subcommand(1);
  return *made;
}

/// Two problems of the tree itself come as exceptions that are no errors: help and version.
int finish_parse(const CLI::App& app, const CLI::ParseError& e,
                 const std::vector<std::string>& words) {
  if (e.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success)) return app.exit(e);
  if (const auto unknown = find_unknown_word(app, words); !unknown.message.empty()) {
    print_error(unknown.message, unknown.hint);
    return exit_usage;
  }
  std::string path = "lamella";
  const auto* at = &app;
  for (const auto& word : words) {
    const auto subcommands =
        at->get_subcommands([&](const CLI::App* x) { return x->get_name() == word; });
    if (subcommands.empty()) break;
    at = subcommands.front();
    path += " " + word;
  }
  // A group without its command: say which there are.
  std::string below;
  for (const auto* each : at->get_subcommands([](const CLI::App*) { return true; }))
    below += (below.empty() ? "" : ", ") + each->get_name();
  if (!below.empty())
    print_error(path + " needs a command: " + below, "'" + path + " --help' lists the commands");
  else
    print_error(e.what(), "'" + path + " --help' shows the usage");
  return exit_usage;
}

bool has_empty_entry(const std::string& list) {
  return list.starts_with(',') || list.ends_with(',') || list.find(",,") != std::string::npos;
}

/// Refuses a list between commas with an empty entry, which the parser leaves out without a word.
void check_lists(const CLI::App& app, const std::vector<std::string>& words) {
  const auto* at = &app;
  const CLI::Option* list = nullptr; // whose values are read
  for (const auto& word : words) {
    auto value = word;
    if (word.size() > 1 && word.front() == '-') {
      const auto equals = word.find('=');
      list = at->get_option_no_throw(word.substr(0, equals));
      if (list != nullptr && list->get_delimiter() != ',') list = nullptr;
      if (equals == word.npos) continue;
      value = word.substr(equals + 1);
    } else if (list == nullptr) {
      const auto named = at->get_subcommands([&](const auto* x) { return x->get_name() == word; });
      if (!named.empty()) at = named.front();
    }
    if (list != nullptr && has_empty_entry(value))
      throw command_error{exit_usage,
                          list->get_name() + " " + value + ": an entry of the list is empty",
                          "write the entries with one comma between two, such as 1,2"};
  }
}

} // namespace

std::unique_ptr<CLI::App> make_app(std::function<int()>& chosen) {
  auto app =
      std::make_unique<CLI::App>("Lamella serves large language models: compute devices hold the "
                                 "weights, memory devices hold the KV cache.",
                                 "lamella");
  app->require_subcommand(1);
  app->set_version_flag("--version", "lamella " LAMELLA_VERSION);
  app->footer("Each command has --help with an example. Start with:\n  lamella model fetch && "
              "lamella serve");
  for (const auto& x : commands()) {
    const auto space = x.path.find(' ');
    auto& parent = space == std::string::npos ? *app : group_of(*app, x.path.substr(0, space));
    auto* made = parent.add_subcommand(
        space == std::string::npos ? x.path : x.path.substr(space + 1), x.summary);
    made->footer("Example:\n" + x.example);
    made->callback([run = x.setup(*made), &chosen] { chosen = run; });
  }
  return app;
}

unknown_word find_unknown_word(const CLI::App& app, const std::vector<std::string>& words) {
  const auto* at = &app;
  std::string path = "lamella";
  const auto closest = [&](const std::string& word, const std::vector<std::string>& known) {
    const auto near = config::nearest(word, known);
    const auto help = "'" + path + " --help' lists them";
    return near ? "did you mean " + *near + "? " + help : help;
  };
  for (const auto& word : words) {
    if (word.size() > 1 && word.front() == '-') {
      const auto name = word.substr(0, word.find('='));
      if (at->get_option_no_throw(name) != nullptr) continue;
      std::vector<std::string> known;
      for (const auto* option : at->get_options())
        for (const auto& each : option->get_lnames()) known.push_back("--" + each);
      return {path + " has no flag " + name, closest(name, known)};
    }
    std::vector<std::string> known;
    const CLI::App* next = nullptr;
    for (const auto* each : at->get_subcommands([](const CLI::App*) { return true; })) {
      known.push_back(each->get_name());
      if (each->get_name() == word) next = each;
    }
    if (known.empty()) continue; // values of flags, and what the command takes
    if (next == nullptr) return {path + " has no command '" + word + "'", closest(word, known)};
    at = next;
    path += " " + word;
  }
  return {};
}

bool use_color(int descriptor) {
  const char* no = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  return (no == nullptr || *no == '\0') && (term == nullptr || std::string{term} != "dumb")
         && is_terminal(descriptor);
}

void print_error(const std::string& message, const std::string& hint) {
  const bool color = use_color(STDERR_FILENO);
  std::fprintf(stderr, "lamella: %serror:%s %s\n", color ? "\033[1;31m" : "",
               color ? "\033[0m" : "", message.c_str());
  if (!hint.empty())
    std::fprintf(stderr, "%shint:%s %s\n", color ? "\033[36m" : "", color ? "\033[0m" : "",
                 hint.c_str());
}

void print_warning(const std::string& message) {
  std::fprintf(stderr, "lamella: warning: %s\n", message.c_str());
}

int run(int argc, const char* const* argv) {
  const plain_floats floats; // of all threads, which inherit it
  std::function<int()> chosen;
  try {
    const auto app = make_app(chosen);
    const std::vector<std::string> words(argv + (argc > 0 ? 1 : 0), argv + argc);
    int code = exit_success;
    try {
      app->parse(argc, argv);
      check_lists(*app, words);
      code = chosen();
    } catch (const CLI::ParseError& e) {
      code = finish_parse(*app, e, words);
    }
    // A full disk or a closed pipe must not look like success, of help neither.
    std::cout.flush();
    if (!std::cout || std::fflush(stdout) != 0 || std::ferror(stdout) != 0)
      throw command_error{exit_failure, "cannot write to standard output"};
    return code;
  } catch (const command_error& e) {
    for (const auto& x : e.problems()) print_error(x.message, x.hint);
    return e.code();
  } catch (const actors::start_error& e) {
    print_error(e.what(), e.hint);
    return e.exit_code;
  } catch (const std::exception& e) {
    print_error(e.what(), {});
    return exit_failure;
  }
}

} // namespace lamella::cli
