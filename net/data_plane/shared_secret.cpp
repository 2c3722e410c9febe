#include "net/data_plane/shared_secret.hpp"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <system_error>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace lamella::net {

namespace {

constexpr size_t file_bytes_max = 4096;
constexpr size_t key_min = 32, key_max = 512, keys_max = 2;
constexpr size_t proof_bytes = 32;

/// What nobody else may do with a secret file: read it. A file of root's is the group's as well,
/// for processes of other users: so Kubernetes and other keepers of secrets hand them over.
mode_t forbidden_to_others(const struct stat& about) {
  return about.st_uid == 0 && geteuid() != 0 ? 037 : 077;
}

/// The whole of a small file that only its owner can read.
std::string read_private(const std::filesystem::path& file) {
  const auto refuse = [&](const std::string& what) {
    throw std::runtime_error("secret file " + file.string() + ": " + what);
  };
  const int fd = open(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) refuse(std::generic_category().message(errno));
  struct stat about {};
  std::string text(file_bytes_max + 1, '\0');
  size_t got = 0;
  const bool known = fstat(fd, &about) == 0;
  for (ssize_t n = 1; n > 0 && got < text.size();) {
    n = read(fd, text.data() + got, text.size() - got);
    if (n > 0) got += static_cast<size_t>(n);
  }
  close(fd);
  if (!known || !S_ISREG(about.st_mode)) refuse("is not a file");
  if ((about.st_mode & forbidden_to_others(about)) != 0)
    refuse("other users may read it; chmod 0400 it");
  if (got > file_bytes_max) refuse("is larger than 4096 bytes");
  text.resize(got);
  return text;
}

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

std::string sign(const std::string& key, std::initializer_list<std::string_view> parts) {
  std::string message;
  for (const auto part : parts) {
    for (int shift = 0; shift < 64; shift += 8)
      message += static_cast<char>(static_cast<uint64_t>(part.size()) >> shift & 0xff);
    message += part;
  }
  std::array<unsigned char, EVP_MAX_MD_SIZE> out{};
  unsigned length = 0;
  if (HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
           reinterpret_cast<const unsigned char*>(message.data()), message.size(), out.data(),
           &length)
          == nullptr
      || length != proof_bytes)
    throw std::runtime_error("HMAC-SHA256 is not available");
  return {reinterpret_cast<const char*>(out.data()), length};
}

} // namespace

shared_secret shared_secret::from_file(const std::filesystem::path& file) {
  auto text = read_private(file);
  std::vector<std::string> keys;
  std::string_view rest{text};
  while (!rest.empty()) {
    const auto end = rest.find('\n');
    const auto line = trimmed(rest.substr(0, end));
    rest = end == std::string_view::npos ? std::string_view{} : rest.substr(end + 1);
    if (line.empty() || line.front() == '#') continue;
    if (line.size() < key_min || line.size() > key_max)
      throw std::runtime_error("secret file " + file.string()
                               + ": a secret must have 32 to 512 characters, this one has "
                               + std::to_string(line.size()));
    if (keys.size() == keys_max)
      throw std::runtime_error("secret file " + file.string() + ": more than two secrets");
    keys.emplace_back(line);
  }
  OPENSSL_cleanse(text.data(), text.size());
  if (keys.empty())
    throw std::runtime_error("secret file " + file.string()
                             + ": contains no secret; create one with 'openssl rand -hex 32'");
  return shared_secret{std::move(keys)};
}

shared_secret shared_secret::random() { return shared_secret{{hex_of(random_bytes(32))}}; }

shared_secret::~shared_secret() {
  for (auto& key : keys_) OPENSSL_cleanse(key.data(), key.size());
}

std::string shared_secret::prove(std::initializer_list<std::string_view> parts) const {
  return sign(keys_.front(), parts);
}

bool shared_secret::accepts(std::string_view proof,
                            std::initializer_list<std::string_view> parts) const {
  if (proof.size() != proof_bytes) return false;
  bool good = false;
  for (const auto& key : keys_)
    good |= CRYPTO_memcmp(proof.data(), sign(key, parts).data(), proof_bytes) == 0;
  return good;
}

std::string shared_secret::file_text() const {
  std::string text;
  for (const auto& key : keys_) text += key + "\n";
  return text;
}

std::string random_bytes(size_t count) {
  std::string out(count, '\0');
  if (RAND_bytes(reinterpret_cast<unsigned char*>(out.data()), static_cast<int>(count)) != 1)
    throw std::runtime_error("cannot get random bytes from the system");
  return out;
}

std::string hex_of(std::string_view bytes) {
  constexpr char digits[] = "0123456789abcdef";
  std::string text;
  for (const char c : bytes) {
    text += digits[static_cast<unsigned char>(c) >> 4];
    text += digits[static_cast<unsigned char>(c) & 15];
  }
  return text;
}

} // namespace lamella::net
