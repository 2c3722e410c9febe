// The command line as its users meet it: the real binary, its words, its exit codes.
#include "cli/app.hpp"
#include "cli/commands.hpp"
#include "tests/cli/program.hpp"
#include "tests/scratch_folder.hpp"

using lamella::cli::command_error;
using lamella::tests::run_shell;
using lamella::tests::scratch_folder;

namespace {

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

} // namespace

TEST_CASE("every command has help with an example, and says nothing on standard error") {
  const scratch_folder folder;
  for (const auto& x : lamella::cli::commands()) {
    CAPTURE(x.path);
    const auto got = run_shell(folder / ".", "lamella " + x.path + " --help");
    CHECK(got.code == 0);
    CHECK(got.err.empty());
    CHECK(has(got.out, x.summary));
    CHECK(has(got.out, "Example:\n  lamella " + x.path));
  }
  CHECK(has(run_shell(folder / ".", "lamella chat --help").out, "begins with a slash"));
  const auto top = run_shell(folder / ".", "lamella --help");
  CHECK(top.code == 0);
  for (const auto& x : lamella::cli::commands())
    CHECK(has(top.out, x.path.substr(0, x.path.find(' '))));
}

TEST_CASE("wrong words end with exit code 2 and the nearest right one") {
  const scratch_folder folder;
  struct row {
    const char* line;
    const char* message;
  };
  const row rows[] = {
      {"lamella", "lamella needs a command: "},
      {"lamella sreve", "lamella has no command \'sreve\'\nhint: did you mean serve?"},
      {"lamella config", "lamella config needs a command: check, show, schema, diff"},
      {"lamella config chekc", "did you mean check?"},
      {"lamella config check --cofnig x",
       "lamella config check has no flag --cofnig\nhint: did you mean --config?"},
      {"lamella config check --cofnig=x", "did you mean --config?"},
      {"lamella --versoin", "lamella has no flag --versoin\nhint: did you mean --version?"},
      {"lamella zzzzzz", "hint: \'lamella --help\' lists them"},
      {"lamella serve --listen", "--listen"},
      {"lamella completion tcsh", "tcsh"},
      {"lamella completion", "shell is required"},
      {"lamella config diff one", "config diff compares two files"},
      {"lamella bench decode --batch 0", "--batch"},
      {"lamella bench decode --batch 1,x", "--batch"},
      {"lamella bench gemm --type q7_k", "--type"},
      {"lamella bench decode --batch 1,,2", "--batch 1,,2: an entry of the list is empty"},
      {"lamella bench decode --batch=1,2, --json", "--batch 1,2,: an entry of the list is empty"},
      {"lamella bench serve --rates ,1", "--rates ,1: an entry of the list is empty"},
      {"lamella bench perplexity t.txt --kv f16,,q8", "--kv f16,,q8: an entry"},
      {"lamella bench gemm --kernels mmx", "unknown kernel set"},
      {"lamella version extra", "extra"},
  };
  for (const auto& x : rows) {
    CAPTURE(x.line);
    const auto got = run_shell(folder / ".", x.line);
    CAPTURE(got.err);
    CHECK(got.code == 2);
    CHECK(got.out.empty());
    CHECK(got.err.starts_with("lamella: error: "));
    CHECK(has(got.err, x.message));
    CHECK_FALSE(has(got.err, "\033")); // no colours where there is no terminal
  }
}

TEST_CASE(
    "configuration errors are all printed, with exit code 78, and missing files end with 66") {
  const scratch_folder folder;
  std::ofstream{folder / "bad.yaml"} << "version: 1\nhttp: {lisen: x}\nlimits: {max_n: 0}\n";
  for (const char* command : {"config check", "config show", "serve"}) {
    CAPTURE(command);
    const auto got =
        run_shell(folder / ".", std::string{"lamella "} + command + " --config bad.yaml");
    CHECK(got.code == 78);
    CHECK(got.out.empty());
    CHECK(has(got.err, "lamella: error: bad.yaml:2:8: http.lisen: is not a known key\nhint: did "
                       "you mean http.listen?\n"));
    CHECK(has(got.err, "lamella: error: bad.yaml:3:17: limits.max_n: "));
    CHECK(run_shell(folder / ".", std::string{"lamella "} + command + " --config absent.yaml").code
          == 66);
  }
  const auto open = run_shell(folder / ".", "lamella serve --listen 0.0.0.0:8000");
  CHECK(open.code == 78);
  CHECK(has(open.err, "--listen: http.listen, http.api_keys_file: 0.0.0.0:8000 can be reached"));
}

TEST_CASE("config check names what serve would trip over") {
  const scratch_folder folder;
  auto got = run_shell(folder / ".", "lamella config check");
  CHECK(got.code == 78);
  CHECK(has(got.err, ".cache/lamella/models/"));
  CHECK(has(got.err, "hint: run \'lamella model fetch\'"));
  std::ofstream{folder / "keys"} << "# none yet\n\n";
  std::ofstream{folder / "junk.gguf"} << "GGUFjunk";
  got = run_shell(folder / ".", "lamella config check --set http.api_keys_file=keys --set "
                                "admin.api_keys_file=absent --set model.path=junk.gguf --set "
                                "http.listen=192.0.2.1:80");
  CHECK(got.code == 78);
  CHECK(has(got.err, "http.api_keys_file: keys: contains no API key"));
  CHECK(
      has(got.err,
          "admin.api_keys_file: the API key file absent does not exist or is not a regular file"));
  CHECK(has(got.err, "http.listen: cannot listen on 192.0.2.1:80"));
  CHECK(has(got.err, "model.path: "));
}

TEST_CASE("config show and diff tell values and where they come from") {
  const scratch_folder folder;
  std::ofstream{folder / "lamella.yaml"} << "version: 1\nlimits: {max_n: 3}\n";
  std::ofstream{folder / "other.yaml"} << "version: 1\nlimits: {max_n: 4}\nkv: {dtype: f32}\n";
  auto got = run_shell(folder / ".",
                       "LAMELLA_KV__DTYPE=f32 lamella config show --origin --set api.strict=true");
  CHECK(got.code == 0);
  CHECK(got.out
        == "version: 1\nkv:\n  dtype: f32  # LAMELLA_KV__DTYPE\nlimits:\n  max_n: 3  # "
           "lamella.yaml:2\napi:\n  strict: "
           "true  # --set\n");
  got = run_shell(folder / ".", "lamella config show --effective --origin");
  CHECK(has(got.out, "  listen: \"127.0.0.1:8000\"  # built-in\n"));
  got = run_shell(folder / ".", "lamella config diff lamella.yaml other.yaml");
  CHECK(got.code == 0);
  CHECK(got.out == "kv.dtype: f16 -> f32 (restart)\nlimits.max_n: 3 -> 4 (live)\n");
  // What a reload of this configuration could take, not what the key could in others.
  std::ofstream{folder / "seats.yaml"} << "version: 1\npools: {prefill: {members: 3}}\n";
  got = run_shell(folder / ".", "lamella config diff lamella.yaml seats.yaml");
  CHECK(has(got.out, "pools.prefill.members: 1 -> 3 (restart)\n"));
  got = run_shell(folder / ".", "lamella config diff --json");
  CHECK(got.out
        == "{\"version\":1,\"differences\":[{\"key\":\"limits.max_n\",\"before\":\"128\",\"after\":"
           "\"3\",\"reload\":\"live\"}]}\n");
  got = run_shell(folder / ".", "lamella config schema");
  CHECK(got.code == 0);
  CHECK(has(got.out, "json-schema.org/draft/2020-12/schema"));
  CHECK(has(run_shell(folder / ".", "lamella config schema --reference").out, "## limits.max_n\n"));
}

TEST_CASE("a full disk is not success") {
  const scratch_folder folder;
  for (const std::string words : {"config schema", "--help", "serve --help", "--version", "version",
                                  "version --json", "completion zsh"}) {
    CAPTURE(words);
    const auto got = run_shell(folder / ".", "lamella " + words + " > /dev/full");
    CHECK(got.code == 1);
    CHECK(has(got.err, "cannot write to standard output"));
  }
}

TEST_CASE("bash completes commands, flags and nothing else") {
  const scratch_folder folder;
  const auto complete = [&](const std::string& words, int at) {
    const auto got = run_shell(folder / ".", "source <(lamella completion bash); COMP_WORDS=("
                                                 + words + "); COMP_CWORD=" + std::to_string(at)
                                                 + "; _lamella; echo ${COMPREPLY[@]}");
    CHECK(got.code == 0);
    CHECK(got.err.empty());
    return got.out;
  };
  CHECK(complete("lamella ser", 1) == "serve\n");
  CHECK(complete("lamella config \"\"", 2) == "check show schema diff --help\n");
  CHECK(complete("lamella config show --e", 3) == "--effective\n");
  CHECK(complete("lamella config check --config \"\"", 4)
        == "\n"); // a file name: left to the shell
  CHECK(complete("lamella config check --set config --j", 5) == "--json\n");
}

TEST_CASE("zsh and fish accept their scripts") {
  const scratch_folder folder;
  for (const char* shell : {"zsh", "fish"}) {
    CAPTURE(shell);
    if (run_shell(folder / ".", std::string{"command -v "} + shell).code != 0) {
      MESSAGE(shell << " is not installed: its script is not checked");
      continue;
    }
    const std::string name{shell};
    const auto got = run_shell(folder / ".", "lamella completion " + name + " > script && " + name
                                                 + " -n script");
    CHECK(got.code == 0);
    CHECK(got.err.empty());
  }
}
