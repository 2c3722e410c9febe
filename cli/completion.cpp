/// `lamella completion`: scripts made from the same tree that reads command lines, so they cannot
/// lag behind.
#include "cli/app.hpp"
#include "cli/commands.hpp"

#include <cstdio>

namespace lamella::cli {
namespace {

struct flag {
  std::string name;
  std::string description;
  bool takes_value = false;
  bool takes_file = false;
};

/// One level of the tree: the words before it joined with '/', and what may follow.
struct level {
  std::string path;
  std::vector<std::pair<std::string, std::string>> commands;
  std::vector<flag> flags;
};

void collect(const CLI::App& app, const std::string& path, std::vector<level>& levels) {
  level here;
  here.path = path;
  std::vector<const CLI::App*> below;
  for (const auto* each : app.get_subcommands([](const CLI::App*) { return true; })) {
    here.commands.emplace_back(each->get_name(), each->get_description());
    below.push_back(each);
  }
  for (const auto* option : app.get_options()) {
    for (const auto& name : option->get_lnames())
      here.flags.push_back({"--" + name, option->get_description(),
                            option->get_items_expected_max() > 0,
                            option->get_type_name() == "FILE"});
  }
  levels.push_back(here);
  for (const auto* each : below) collect(*each, path + "/" + each->get_name(), levels);
}

/// A word in single quotes for all three shells.
std::string shell_word(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string{"'\\''"} : std::string(1, c);
  return out + "'";
}

std::string case_of_paths(const std::vector<level>& levels) {
  std::string all;
  for (const auto& x : levels)
    if (!x.path.empty()) all += (all.empty() ? "" : "|") + x.path;
  return all;
}

std::string bash_script(const std::vector<level>& levels) {
  std::string out = "# bash completion for lamella\n"
                    "_lamella() {\n"
                    "  local at= words= i\n"
                    "  local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}\n"
                    "  for ((i = 1; i < COMP_CWORD; i++)); do\n"
                    "    case \"$at/${COMP_WORDS[i]}\" in\n"
                    "      "
                    + case_of_paths(levels)
                    + ") at=\"$at/${COMP_WORDS[i]}\" ;;\n"
                      "    esac\n"
                      "  done\n"
                      "  COMPREPLY=()\n"
                      "  case \"$at $before\" in\n";
  // After a flag with a value comes the value: a file name, or nothing we know.
  for (const auto& x : levels)
    for (const auto& f : x.flags)
      if (f.takes_value) out += "    " + shell_word(x.path + " " + f.name) + ") return ;;\n";
  out += "  esac\n  case \"$at\" in\n";
  for (const auto& x : levels) {
    std::string words;
    for (const auto& [name, description] : x.commands) words += name + " ";
    for (const auto& f : x.flags) words += f.name + " ";
    if (!words.empty()) words.pop_back();
    out += "    " + shell_word(x.path) + ") words=" + shell_word(words) + " ;;\n";
  }
  return out
         + "  esac\n"
           "  COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
           "}\n"
           "complete -o default -F _lamella lamella\n";
}

/// In lists of `word:description` a colon ends the word.
std::string zsh_entry(const std::string& word, const std::string& description) {
  return shell_word(word + ":" + description);
}

std::string zsh_script(const std::vector<level>& levels) {
  std::string out = "#compdef lamella\n"
                    "# zsh completion for lamella\n"
                    "_lamella() {\n"
                    "  local at='' i\n"
                    "  local -a commands flags\n"
                    "  for ((i = 2; i < CURRENT; i++)); do\n"
                    "    case \"$at/${words[i]}\" in\n"
                    "      ("
                    + case_of_paths(levels)
                    + ") at=\"$at/${words[i]}\" ;;\n"
                      "    esac\n"
                      "  done\n"
                      "  case \"$at ${words[CURRENT-1]}\" in\n";
  for (const auto& x : levels)
    for (const auto& f : x.flags)
      if (f.takes_value)
        out += "    (" + shell_word(x.path + " " + f.name) + ") " + (f.takes_file ? "_files; " : "")
               + "return ;;\n";
  out += "  esac\n  case \"$at\" in\n";
  for (const auto& x : levels) {
    out += "    (" + shell_word(x.path) + ")\n      commands=(";
    for (const auto& [name, description] : x.commands) out += zsh_entry(name, description) + " ";
    out += ")\n      flags=(";
    for (const auto& f : x.flags) out += zsh_entry(f.name, f.description) + " ";
    out += ") ;;\n";
  }
  return out
         + "  esac\n"
           "  if (( ${#commands} )); then _describe -t commands command commands; fi\n"
           "  _describe -t flags flag flags\n"
           "  if (( ! ${#commands} )); then _files; fi\n"
           "}\n"
           "if [[ ${funcstack[1]} == _lamella ]]; then _lamella \"$@\"; else compdef _lamella "
           "lamella; fi\n";
}

std::string fish_word(const std::string& text) {
  std::string out = "'";
  for (const char c : text)
    out += c == '\'' || c == '\\' ? std::string{"\\"} + c : std::string(1, c);
  return out + "'";
}

std::string fish_script(const std::vector<level>& levels) {
  std::string known;
  for (const auto& x : levels)
    if (!x.path.empty()) known += " " + x.path;
  std::string out = "# fish completion for lamella\n"
                    "function __lamella_at\n"
                    "  set -l at ''\n"
                    "  set -l tokens (commandline -opc)\n"
                    "  for word in $tokens[2..-1]\n"
                    "    if contains -- $at/$word"
                    + known
                    + "\n"
                      "      set at $at/$word\n"
                      "    end\n"
                      "  end\n"
                      "  test \"$at\" = \"$argv[1]\"\n"
                      "end\n";
  for (const auto& x : levels) {
    const auto begin = "complete -c lamella -n \"__lamella_at '" + x.path + "'\" ";
    for (const auto& [name, description] : x.commands)
      out += begin + "-f -a " + name + " -d " + fish_word(description) + "\n";
    for (const auto& f : x.flags)
      out += begin + "-l " + f.name.substr(2) + " -d " + fish_word(f.description)
             + (f.takes_file    ? " -r -F"
                : f.takes_value ? " -x"
                                : "")
             + "\n";
  }
  return out;
}

} // namespace

run_function setup_completion(CLI::App& app) {
  auto shell = std::make_shared<std::string>();
  app.add_option("shell", *shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  return [shell] {
    std::function<int()> unused;
    std::vector<level> levels;
    collect(*make_app(unused), "", levels);
    const auto script = *shell == "bash"  ? bash_script(levels)
                        : *shell == "zsh" ? zsh_script(levels)
                                          : fish_script(levels);
    std::fputs(script.c_str(), stdout);
    return int{exit_success};
  };
}

} // namespace lamella::cli
