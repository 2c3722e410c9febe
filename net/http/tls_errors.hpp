/// Keeps the errors of one TLS connection from ending the others.
#pragma once

namespace lamella::net {

/// OpenSSL keeps errors in a queue of the thread, and SSL_get_error() takes any that lies there for
/// one of the connection that it is asked about. CAF 0.17 leaves them there: when one worker dies
/// without a goodbye, or a byte of its link is flipped, every other link of that thread ends at its
/// next read. The program therefore has an SSL_get_error() of its own, which the libraries it is
/// linked with find first: it asks OpenSSL's and leaves the queue empty.
///
/// Call this once before the first TLS connection; it is what links it in. Throws
/// std::runtime_error when OpenSSL's own cannot be found.
void keep_tls_errors_apart();

} // namespace lamella::net
