/// Whom a client believes that it speaks with the host it asked for.
#pragma once

#include <memory>

struct ssl_ctx_st;

namespace lamella::net {

/// The certificate authorities of the system, or those that OpenSSL's variables SSL_CERT_FILE and
/// SSL_CERT_DIR name. TLS 1.2 and 1.3.
class tls_trust {
public:
  /// Reads the authorities: some milliseconds. Throws std::runtime_error.
  tls_trust();

  /// OpenSSL's form of it, for new connections.
  ssl_ctx_st* context() const { return context_.get(); }

private:
  std::shared_ptr<ssl_ctx_st> context_;
};

} // namespace lamella::net
