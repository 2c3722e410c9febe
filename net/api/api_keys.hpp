/// API keys: who may call. Only salted hashes stay in memory.
#pragma once

#include "net/http/http_exchange.hpp"

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lamella::net {

/// A set of keys. Empty means that no key is required; the caller decides whether that is allowed
/// on its address.
class api_keys {
public:
  /// One key per line; blank lines and lines starting with # are skipped, white space around a key
  /// is dropped. Throws std::runtime_error with file and line for a key shorter than 8 or longer
  /// than 256 visible ASCII characters, for more than 10,000 keys, and for a file without any key.
  static api_keys from_file(const std::filesystem::path& file);
  /// The same, or the empty set where there is no file.
  static api_keys from_option(const std::filesystem::path& file);
  static api_keys from_text(std::string_view text, const std::string& name);

  bool empty() const { return hashes_.empty(); }
  size_t size() const { return hashes_.size(); }

  /// Compares with all keys; the time does not depend on which one matches.
  bool contains(std::string_view key) const;

  /// True when no key is required or the request carries one of them: `Authorization: Bearer KEY`,
  /// `api-key: KEY` or `x-api-key: KEY`.
  bool admits(const http_headers& headers) const;

  /// A number for the key of the request, constant during this process; 0 where no key is required,
  /// or the request carries none of them.
  uint64_t caller(const http_headers& headers) const;

private:
  std::optional<std::string_view> known(const http_headers& headers) const;

  std::vector<std::array<uint8_t, 32>> hashes_; ///< SHA-256, salted
};

/// Cache scope of a request: requests of one caller with the same `cache_salt` (may be empty) share
/// KV.
uint64_t cache_scope(uint64_t caller, std::string_view cache_salt);

} // namespace lamella::net
