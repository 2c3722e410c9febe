/// Runs the real binary and keeps what it says.
#pragma once

#include "tests/folders.hpp"

#include <doctest/doctest.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include <sys/wait.h>

namespace lamella::tests {

struct program_result {
  int code = -1;
  std::string out;
  std::string err;
};

/// `command` is a shell line in which `lamella` is the binary of this build; runs in `folder`,
/// which also becomes HOME, with no configuration of this machine.
inline program_result run_shell(const std::filesystem::path& folder, const std::string& command) {
  const auto err = folder / "stderr.txt";
  const auto line = "cd '" + folder.string()
                    + "' && env -u XDG_CONFIG_HOME -u XDG_CACHE_HOME -u LAMELLA_CONFIG HOME='"
                    + folder.string() + "' PATH='" + build_folder + ":'\"$PATH\" bash -c '"
                    + command + "' 2>'" + err.string() + "' </dev/null";
  program_result result;
  FILE* pipe = popen(line.c_str(), "r");
  REQUIRE(pipe != nullptr);
  std::array<char, 4096> piece{};
  for (size_t n; (n = fread(piece.data(), 1, piece.size(), pipe)) > 0;)
    result.out.append(piece.data(), n);
  const int status = pclose(pipe);
  result.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  std::ifstream in{err, std::ios::binary};
  result.err = std::string{std::istreambuf_iterator<char>{in}, {}};
  return result;
}

} // namespace lamella::tests
