#include "net/data_plane/private_folder.hpp"

#include "tests/scratch_folder.hpp"

#include <doctest/doctest.h>

#include <fstream>
#include <optional>

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace lamella;
namespace fs = std::filesystem;

namespace {

size_t entries(const fs::path& folder) {
  return static_cast<size_t>(
      std::distance(fs::directory_iterator{folder}, fs::directory_iterator{}));
}

} // namespace

TEST_CASE("a private folder is for its user alone, and goes with its content") {
  tests::scratch_folder base;
  {
    const net::private_folder mine{(base / "")};
    struct stat info {};
    REQUIRE(stat(mine.path().c_str(), &info) == 0);
    CHECK((info.st_mode & 0777) == 0700);
    std::ofstream{mine.path() / "socket"} << "x";
  }
  CHECK(entries((base / "")) == 0);
}

TEST_CASE("two services of one user leave each other's folder alone") {
  tests::scratch_folder base;
  std::optional<net::private_folder> first{std::in_place, (base / "")};
  std::ofstream{first->path() / "socket"} << "x";
  {
    const net::private_folder second{(base / "")};
    CHECK(second.path() != first->path());
    CHECK(fs::exists(first->path() / "socket"));
  }
  CHECK(fs::exists(first->path() / "socket"));
}

TEST_CASE("the folder of a process that was killed is removed by the next service") {
  tests::scratch_folder base;
  const pid_t child = fork();
  if (child == 0) {
    const net::private_folder mine{(base / "")};
    std::ofstream{mine.path() / "socket"} << "x";
    _exit(0); // as SIGKILL: nothing is destroyed
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(entries((base / "")) == 1);
  // What only looks like one stays.
  fs::create_directory((base / "") / "lamella-service-of-mine");
  const net::private_folder next{(base / "")};
  CHECK(entries((base / "")) == 2);
  CHECK(fs::exists((base / "") / "lamella-service-of-mine"));
}
