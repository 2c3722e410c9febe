#include "net/http/tls_trust.hpp"

#include <openssl/err.h>
#include <openssl/ssl.h>

#include <stdexcept>

namespace lamella::net {

tls_trust::tls_trust() : context_(SSL_CTX_new(TLS_client_method()), SSL_CTX_free) {
  SSL_CTX* const context = context_.get();
  if (context == nullptr || SSL_CTX_set_default_verify_paths(context) != 1)
    throw std::runtime_error{"TLS cannot be set up on this machine"};
  ERR_clear_error(); // files that are not there are no mistake: nobody is believed then
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_IGNORE_UNEXPECTED_EOF);
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
}

} // namespace lamella::net
