/// The shared secret of the processes of one service, and proofs of it.
#pragma once

#include <cstddef>
#include <filesystem>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace lamella::net {

/// One or two secrets (two during rotation). Proofs are HMAC-SHA256.
class shared_secret {
public:
  /// One secret per line, 32 to 512 characters each; # starts a comment. The first one creates
  /// proofs, all are accepted. The file must not be readable by other users. Throws
  /// std::runtime_error with the error and the file, never with a secret.
  static shared_secret from_file(const std::filesystem::path& file);

  /// A new random secret, for the children of one process.
  static shared_secret random();

  ~shared_secret();
  shared_secret(const shared_secret&) = default;
  shared_secret& operator=(const shared_secret&) = default;

  /// 32 bytes over the parts and their lengths, so that different lists of parts differ as input.
  std::string prove(std::initializer_list<std::string_view> parts) const;

  /// Whether `proof` is valid for these parts and any of the secrets. Constant time.
  bool accepts(std::string_view proof, std::initializer_list<std::string_view> parts) const;

  /// As from_file would read it.
  std::string file_text() const;

private:
  explicit shared_secret(std::vector<std::string> keys) : keys_{std::move(keys)} {}
  std::vector<std::string> keys_;
};

/// Cryptographically random bytes. Throws std::runtime_error when the system provides none.
std::string random_bytes(size_t count);

/// Hexadecimal, two digits per byte.
std::string hex_of(std::string_view bytes);

} // namespace lamella::net
