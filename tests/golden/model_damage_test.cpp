// The default model's file, damaged. Its header is copied into a file of the same length whose
// other bytes are a hole, so that 94 MiB need not be written for every damage.
#include "model/files/open_checkpoint.hpp"
#include "tests/damage.hpp"
#include "tests/model_files.hpp"
#include "tests/scratch_folder.hpp"

#include <doctest/doctest.h>

using namespace lamella;

namespace {

/// Makes the copy; returns the bytes of the header, or 0 if there is no default model.
uint64_t copy_header(const std::filesystem::path& copy) {
  const auto file = tests::default_model();
  if (!file) {
    MESSAGE("skipped: no default model (set LAMELLA_TEST_MODEL or run deploy/quickstart)");
    return 0;
  }
  const auto opened = model::open_checkpoint(*file);
  uint64_t data_bytes = 0;
  for (const auto& tensor : opened->tensors()) data_bytes += tensor.data.size();
  const uint64_t file_bytes = std::filesystem::file_size(*file);
  const uint64_t header_bytes = file_bytes - data_bytes; // paddings between tensors included
  std::string header(header_bytes, '\0');
  std::ifstream(*file, std::ios::binary)
      .read(header.data(), static_cast<std::streamsize>(header_bytes));
  std::ofstream(copy, std::ios::binary) << header;
  std::filesystem::resize_file(copy, file_bytes);
  return header_bytes;
}

} // namespace

TEST_CASE("the default model cut at every percent is refused") {
  tests::scratch_folder folder;
  const auto copy = folder / "m.gguf";
  if (copy_header(copy) == 0) return;
  const auto report = tests::open_cut(copy, std::filesystem::file_size(copy));
  CHECK(report.refused == 99);
}

// Most of that header are the vocabulary's texts, which may be anything: a tiny model's is damaged
// ten thousand times elsewhere.
TEST_CASE("three thousand damaged bytes in the default model's header never crash") {
  const uint64_t seed = 7;
  CAPTURE(seed);
  tests::scratch_folder folder;
  const auto copy = folder / "m.gguf";
  const uint64_t header_bytes = copy_header(copy);
  if (header_bytes == 0) return;
  const auto report = tests::open_flipped(copy, header_bytes, 3'000, seed, 50);
  MESSAGE("seed " << seed << ": " << report.accepted << " read, " << report.refused << " refused");
  CHECK(report.accepted + report.refused == 3'000);
  CHECK(report.refused > 30);
}
