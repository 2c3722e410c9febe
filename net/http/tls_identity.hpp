/// What a listener shows to clients that speak HTTPS: a chain of certificates and its private key.
#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <stdexcept>

struct ssl_ctx_st;

namespace lamella::net {

/// A file cannot be used; what() names it and says why.
struct tls_identity_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Immutable: files that changed make another one. TLS 1.2 and 1.3; no renegotiation and no
/// session tickets, so that what was recorded stays secret when a key becomes known later.
class tls_identity {
public:
  /// Reads two PEM files: the certificate with those that signed it, and the key, without a
  /// passphrase. Throws tls_identity_error, also where the key is not the certificate's.
  static std::shared_ptr<const tls_identity> from_files(const std::filesystem::path& certificate,
                                                        const std::filesystem::path& key);

  /// From then on clients will refuse the certificate.
  std::chrono::sys_seconds expires() const { return expires_; }
  bool expired() const;

  /// OpenSSL's form of it, for new connections.
  ssl_ctx_st* context() const { return context_.get(); }

private:
  tls_identity() = default;

  std::shared_ptr<ssl_ctx_st> context_;
  std::chrono::sys_seconds expires_{};
};

} // namespace lamella::net
