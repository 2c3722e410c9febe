#include "net/data_plane/shared_secret.hpp"

#include "tests/scratch_folder.hpp"

#include <doctest/doctest.h>

#include <fstream>

#include <sys/stat.h>
#include <unistd.h>

using namespace lamella::net;

namespace {

const std::string one(64, 'a'), two(64, 'b');

std::filesystem::path write(const lamella::tests::scratch_folder& folder, const std::string& text,
                            mode_t mode = 0400) {
  const auto path = folder / "secret";
  std::filesystem::remove(path);
  std::ofstream{path} << text;
  chmod(path.c_str(), mode);
  return path;
}

std::string why_not(const std::filesystem::path& file) {
  try {
    shared_secret::from_file(file);
  } catch (const std::runtime_error& e) {
    return e.what();
  }
  return {};
}

} // namespace

TEST_CASE("HMAC-SHA256 over the parts with their lengths") {
  // python3: hmac.new(b'a'*64, struct.pack('<Q',2)+b'xy'+struct.pack('<Q',1)+b'z', 'sha256')
  const lamella::tests::scratch_folder folder;
  const auto secret = shared_secret::from_file(write(folder, one + "\n"));
  CHECK(hex_of(secret.prove({"xy", "z"}))
        == "026ced66a82ee83b0b965251ac68ecf3e3e922b36249640cf9f388237f593e6e");
  CHECK(secret.prove({"xy", "z"}) != secret.prove({"x", "yz"}));
  CHECK(secret.accepts(secret.prove({"xy", "z"}), {"xy", "z"}));
  CHECK_FALSE(secret.accepts(secret.prove({"xy", "z"}), {"xy", "Z"}));
  CHECK_FALSE(secret.accepts("", {"xy", "z"}));
  CHECK_FALSE(secret.accepts(std::string(32, '\0'), {"xy", "z"}));
}

TEST_CASE("While a secret is being replaced both are accepted and the first one speaks") {
  const lamella::tests::scratch_folder folder;
  const auto old = shared_secret::from_file(write(folder, "# old\n" + one + "\n"));
  const auto both = shared_secret::from_file(write(folder, "  " + two + " \r\n\n" + one));
  CHECK(both.accepts(old.prove({"x"}), {"x"}));
  CHECK_FALSE(old.accepts(both.prove({"x"}), {"x"}));
  CHECK(both.accepts(both.prove({"x"}), {"x"}));
  // What is handed to a child reads as the same secrets.
  const auto copy = shared_secret::from_file(write(folder, both.file_text()));
  CHECK(copy.prove({"x"}) == both.prove({"x"}));
  const auto fresh = shared_secret::random();
  CHECK_FALSE(fresh.accepts(shared_secret::random().prove({"x"}), {"x"}));
}

TEST_CASE("A bad secret file is refused with its name and without its content") {
  const lamella::tests::scratch_folder folder;
  const auto refused = [&](const std::filesystem::path& file, const std::string& part) {
    const auto why = why_not(file);
    INFO(why);
    CHECK(why.find(file.string()) != std::string::npos);
    CHECK(why.find(part) != std::string::npos);
    CHECK(why.find("hunter2") == std::string::npos);
  };
  refused(folder / "none", "No such file");
  refused(folder / "", "is not a file");
  refused(write(folder, one, 0440), "chmod 0400");
  refused(write(folder, ""), "no secret");
  refused(write(folder, "# nothing\n"), "no secret");
  refused(write(folder, "hunter2"), "32 to 512");
  refused(write(folder, one + "\n" + two + "\n" + one), "more than two");
  refused(write(folder, std::string(5000, 'x')), "larger");
}

TEST_CASE("A secret of root's may be read by the group that it was given to") {
  if (geteuid() != 0) {
    MESSAGE("skipped: needs root, to be somebody else");
    return;
  }
  const lamella::tests::scratch_folder folder;
  constexpr uid_t somebody = 10001;
  REQUIRE(chmod((folder / "").c_str(), 0755) == 0);
  const auto read_as = [&](uid_t owner, mode_t mode) {
    const auto file = write(folder, one, mode);
    REQUIRE(chown(file.c_str(), owner, somebody) == 0);
    REQUIRE(setegid(somebody) == 0);
    REQUIRE(seteuid(somebody) == 0);
    const auto why = why_not(file);
    REQUIRE(seteuid(0) == 0);
    REQUIRE(setegid(0) == 0);
    return why;
  };
  CHECK(read_as(0, 0440) == ""); // as the volumes of Kubernetes are
  CHECK(read_as(0, 0640) == "");
  CHECK(read_as(0, 0444).find("chmod 0400") != std::string::npos);
  CHECK(read_as(0, 0460).find("chmod 0400") != std::string::npos);
  CHECK(read_as(somebody, 0440).find("chmod 0400") != std::string::npos);
}
