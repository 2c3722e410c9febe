#include "gpu/cuda_module.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include <unistd.h>

using namespace lamella;

TEST_CASE("a broken GPU part beside the program is the reason told, not a later name") {
  const auto folder =
      std::filesystem::temp_directory_path() / ("lamella-module-" + std::to_string(::getpid()));
  std::filesystem::create_directory(folder);
  const auto broken = (folder / "liblamella_cuda.so").string();
  std::ofstream{broken} << "no library at all, but longer than the header of one: " << folder;
  const auto found =
      gpu::load_cuda_module({broken, "liblamella_of_nobody.so", "liblamella_nor_this.so"});
  CHECK(found.module == nullptr);
  CAPTURE(found.reason);
  CHECK(found.reason.find(broken) != std::string::npos);
  CHECK(found.reason.find("of_nobody") == std::string::npos);
  std::filesystem::remove_all(folder);
}

TEST_CASE("where no GPU part is found the name looked for is told") {
  const auto found = gpu::load_cuda_module({"liblamella_of_nobody.so"});
  CHECK(found.module == nullptr);
  CHECK(found.reason.find("liblamella_of_nobody.so") != std::string::npos);
}
