// Damaged files are refused or read, and never more than that: no crash, no run-away memory.
#include "base/mapped_file.hpp"
#include "model/files/open_checkpoint.hpp"
#include "tests/damage.hpp"
#include "tests/scratch_folder.hpp"
#include "tests/tiny_model.hpp"

#include <doctest/doctest.h>

using namespace lamella;

TEST_CASE("a model cut anywhere is refused") {
  tests::scratch_folder folder;
  const auto path = folder / "m.gguf";
  tests::write_tiny_model(path);
  const auto report = tests::open_cut(path, std::filesystem::file_size(path));
  CHECK(report.refused == 99);
}

TEST_CASE("a model cut within its header is refused at every byte") {
  tests::scratch_folder folder;
  const auto path = folder / "m.gguf";
  const std::string header = tests::make_tiny_model({.layers = 1}).header();
  tests::write_tiny_model(path, {.layers = 1});
  tests::damage_report report;
  for (size_t bytes = header.size(); bytes-- > 1;) {
    REQUIRE(truncate(path.c_str(), static_cast<off_t>(bytes)) == 0);
    tests::open_damaged(path, true, report);
  }
  CHECK(report.accepted == 0);
  CHECK(report.refused == header.size() - 1);
}

TEST_CASE("ten thousand damaged bytes in a header never do more than make it wrong") {
  const uint64_t seed = 20'250'701;
  CAPTURE(seed);
  tests::scratch_folder folder;
  const auto path = folder / "m.gguf";
  tests::write_tiny_model(path, {.layers = 2});
  const uint64_t header_bytes = tests::make_tiny_model({.layers = 2}).header().size();
  const auto report = tests::open_flipped(path, header_bytes, 10'000, seed, 1);
  MESSAGE("seed " << seed << ": " << report.accepted << " read, " << report.refused << " refused");
  CHECK(report.accepted + report.refused == 10'000);
  CHECK(report.refused > 1'000); // most flips fall into texts and numbers that may have any value
  CHECK(report.accepted > 1'000);
}

TEST_CASE("what is no model file is refused with the formats that are read") {
  tests::scratch_folder folder;
  const auto refuses = [](const std::filesystem::path& path, const std::string& words) {
    CAPTURE(path);
    CHECK_THROWS_WITH_AS(model::open_checkpoint(path), doctest::Contains(words.c_str()),
                         file_error);
  };
  refuses(folder / "missing.gguf", "no such file");
  refuses(folder / "", "Hugging Face directories");
  refuses("/dev/null", "not a regular file");
  tests::gguf_writer::write_file(folder / "text", "once upon a time");
  refuses(folder / "text", "GGUF v2 and v3 files");
  tests::gguf_writer::write_file(folder / "empty", "");
  refuses(folder / "empty", "an unknown format");
  tests::gguf_writer::write_file(folder / "short", "GGUF");
  refuses(folder / "short", "version");
  REQUIRE(mkfifo((folder / "pipe").c_str(), 0600) == 0);
  refuses(folder / "pipe", "not a regular file");
  CHECK_THROWS_AS(mapped_file(folder / "pipe"), file_error);
  CHECK_THROWS_AS(mapped_file(folder / "empty"), file_error);
  std::filesystem::create_symlink(folder / "loop", folder / "loop");
  refuses(folder / "loop", "no such file");
}

TEST_CASE("a symbolic link to a model is followed") {
  tests::scratch_folder folder;
  tests::write_tiny_model(folder / "m.gguf");
  std::filesystem::create_symlink("m.gguf", folder / "link.gguf");
  CHECK(model::open_checkpoint(folder / "link.gguf")->path().filename() == "m.gguf");
}

TEST_CASE("a file that is truncated while it is mapped becomes an error, not a crash") {
  tests::scratch_folder folder;
  tests::gguf_writer::write_file(folder / "f", std::string(64 * 1024, 'x'));
  tests::gguf_writer::write_file(folder / "other", std::string(64 * 1024, 'y'));
  const mapped_file file(folder / "f"), other(folder / "other");
  file.check_intact();
  REQUIRE(truncate((folder / "f").c_str(), 4096) == 0);
  size_t zeros = 0;
  for (const std::byte byte : file.bytes()) zeros += byte == std::byte{0};
  CHECK(zeros == 60 * 1024);
  CHECK_THROWS_WITH_AS(file.check_intact(), doctest::Contains("lost bytes"), file_error);
  CHECK(other.bytes()[60'000] == std::byte{'y'});
  other.check_intact();
}

TEST_CASE("a file that is changed while it is mapped is noticed") {
  tests::scratch_folder folder;
  tests::write_tiny_model(folder / "m.gguf");
  const auto opened = model::open_checkpoint(folder / "m.gguf");
  opened->check_intact();
  REQUIRE(truncate((folder / "m.gguf").c_str(), 100'000) == 0);
  CHECK_THROWS_WITH_AS(opened->check_intact(), doctest::Contains("changed its length"), file_error);
}

TEST_CASE("many models can be opened one after the other, and sixty at a time") {
  tests::scratch_folder folder;
  tests::gguf_writer::write_file(folder / "f", "content");
  for (int round = 0; round < 3; ++round) {
    std::vector<std::unique_ptr<mapped_file>> open;
    for (int i = 0; i < 60; ++i) open.push_back(std::make_unique<mapped_file>(folder / "f"));
    CHECK(open.size() == 60);
  }
}
