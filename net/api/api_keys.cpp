#include "net/api/api_keys.hpp"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>

#include <algorithm>
#include <fstream>
#include <stdexcept>

namespace lamella::net {

namespace {

constexpr size_t keys_max = 10'000;
constexpr size_t file_bytes_max = size_t{4} << 20;

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

bool visible(std::string_view key) {
  for (const char c : key)
    if (c <= 0x20 || c >= 0x7F) return false;
  return true;
}

using digest = std::array<uint8_t, 32>;

/// Of this process: what is hashed cannot be looked up in a table of known hashes.
const std::array<uint8_t, 16>& process_salt() {
  static const auto salt = [] {
    std::array<uint8_t, 16> bytes;
    if (RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) != 1)
      throw std::runtime_error("no random bytes for the salt of the API keys");
    return bytes;
  }();
  return salt;
}

digest hash(std::string_view key) {
  const auto& salt = process_salt();
  std::string salted(reinterpret_cast<const char*>(salt.data()), salt.size());
  salted += key;
  digest out{};
  unsigned length = 0;
  const int done =
      EVP_Digest(salted.data(), salted.size(), out.data(), &length, EVP_sha256(), nullptr);
  OPENSSL_cleanse(salted.data(), salted.size());
  if (done != 1 || length != out.size()) throw std::runtime_error("SHA-256 is not available");
  return out;
}

/// Never 0, which is nobody.
uint64_t number_of(const digest& x) {
  uint64_t number = 0;
  for (size_t i = 0; i < sizeof number; ++i) number = number << 8 | x[i];
  return std::max<uint64_t>(number, 1);
}

} // namespace

api_keys api_keys::from_file(const std::filesystem::path& file) {
  std::error_code ignored; // a pipe would be waited for for ever
  if (!std::filesystem::is_regular_file(file, ignored))
    throw std::runtime_error("the API key file " + file.string()
                             + " does not exist or is not a regular file");
  std::ifstream in(file, std::ios::binary);
  if (!in) throw std::runtime_error("cannot read the API key file " + file.string());
  std::string text(file_bytes_max + 1, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (in.bad()) throw std::runtime_error("cannot read the API key file " + file.string());
  text.resize(static_cast<size_t>(in.gcount()));
  if (text.size() > file_bytes_max)
    throw std::runtime_error("the API key file " + file.string() + " is larger than "
                             + std::to_string(file_bytes_max) + " bytes");
  api_keys keys = from_text(text, file.string());
  OPENSSL_cleanse(text.data(), text.size());
  return keys;
}

api_keys api_keys::from_option(const std::filesystem::path& file) {
  return file.empty() ? api_keys{} : from_file(file);
}

api_keys api_keys::from_text(std::string_view text, const std::string& name) {
  api_keys keys;
  size_t number = 0;
  while (!text.empty()) {
    ++number;
    const size_t end = text.find('\n');
    const std::string_view key = trimmed(text.substr(0, end));
    text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
    if (key.empty() || key.front() == '#') continue;
    // Never the key itself: this goes to a log.
    const auto refuse = [&](const std::string& what) {
      throw std::runtime_error(name + ":" + std::to_string(number) + ": " + what);
    };
    if (key.size() < 8 || key.size() > 256)
      refuse("an API key must have 8 to 256 characters, this one has "
             + std::to_string(key.size()));
    if (!visible(key)) refuse("an API key consists of visible ASCII characters only");
    if (keys.hashes_.size() == keys_max)
      refuse("more than " + std::to_string(keys_max) + " API keys");
    keys.hashes_.push_back(hash(key));
  }
  if (keys.hashes_.empty())
    throw std::runtime_error(name + ": contains no API key (one per line, # starts a comment)");
  return keys;
}

bool api_keys::contains(std::string_view key) const {
  if (key.size() > 256) return false;
  const digest wanted = hash(key);
  bool found = false;
  // No early exit: the time must not tell where in the list a key stands.
  for (const digest& candidate : hashes_)
    found |= CRYPTO_memcmp(candidate.data(), wanted.data(), wanted.size()) == 0;
  return found;
}

bool api_keys::admits(const http_headers& headers) const {
  return empty() || known(headers).has_value();
}

uint64_t api_keys::caller(const http_headers& headers) const {
  const auto key = empty() ? std::nullopt : known(headers);
  return key ? number_of(hash(*key)) : 0;
}

std::optional<std::string_view> api_keys::known(const http_headers& headers) const {
  if (const std::string* value = headers.find("authorization")) {
    constexpr std::string_view scheme = "bearer ";
    bool bearer = value->size() > scheme.size();
    for (size_t i = 0; bearer && i < scheme.size(); ++i) {
      const char c = (*value)[i];
      bearer = (c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c) == scheme[i];
    }
    const auto key = trimmed(std::string_view(*value).substr(bearer ? scheme.size() : 0));
    if (bearer && contains(key)) return key;
  }
  for (const char* name : {"api-key", "x-api-key"})
    if (const std::string* value = headers.find(name))
      if (const auto key = trimmed(*value); contains(key)) return key;
  return std::nullopt;
}

uint64_t cache_scope(uint64_t caller, std::string_view cache_salt) {
  return cache_salt.empty()
             ? caller
             : number_of(hash(std::to_string(caller) + " " + std::string{cache_salt}));
}

} // namespace lamella::net
