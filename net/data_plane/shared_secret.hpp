/// What the processes of one service know and nobody else does, and proofs of knowing it.
#pragma once

#include <cstddef>
#include <filesystem>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace lamella::net {

/// One or two secrets (two while one replaces the other). Proofs are HMAC-SHA256.
class shared_secret {
public:
  /// One secret per line, 32 to 512 characters each; # starts a comment. The first one makes
  /// proofs, all are accepted. The file must be unreadable for other users. Throws
  /// std::runtime_error with what is wrong and with which file; never with a secret.
  static shared_secret from_file(const std::filesystem::path& file);

  /// A fresh one, for the children of one process.
  static shared_secret random();

  ~shared_secret();
  shared_secret(const shared_secret&) = default;
  shared_secret& operator=(const shared_secret&) = default;

  /// 32 bytes over the parts and their lengths: no two lists of parts look the same.
  std::string prove(std::initializer_list<std::string_view> parts) const;

  /// Is `proof` one over these parts, by any of the secrets? Takes the same time whatever it holds.
  bool accepts(std::string_view proof, std::initializer_list<std::string_view> parts) const;

  /// As from_file would read it.
  std::string file_text() const;

private:
  explicit shared_secret(std::vector<std::string> keys) : keys_{std::move(keys)} {}
  std::vector<std::string> keys_;
};

/// Bytes nobody can guess. Throws std::runtime_error when the system has none.
std::string random_bytes(size_t count);

/// Two digits per byte.
std::string hex_of(std::string_view bytes);

} // namespace lamella::net
