#include "net/http/tls_identity.hpp"

#include <openssl/err.h>
#include <openssl/ssl.h>

#include <ctime>
#include <string>

namespace lamella::net {
namespace {

constexpr uintmax_t file_bytes_max = uintmax_t{1} << 20;

[[noreturn]] void refuse(const std::filesystem::path& file, const std::string& why) {
  throw tls_identity_error{file.string() + ": " + why};
}

/// The oldest of OpenSSL's errors, which is the cause of the others.
std::string error_of_openssl() {
  const char* text = ERR_reason_error_string(ERR_peek_error());
  ERR_clear_error();
  return text != nullptr ? text : "unknown error";
}

/// A pipe would be waited for, and OpenSSL's words for a file that is not there are poor.
void check_file(const std::filesystem::path& file) {
  std::error_code error;
  const auto status = std::filesystem::status(file, error);
  if (error) refuse(file, error.message());
  if (!std::filesystem::is_regular_file(status)) refuse(file, "is not a file");
  if (std::filesystem::file_size(file, error) > file_bytes_max) refuse(file, "is over 1 MiB");
}

int no_passphrase(char*, int, int, void*) { return 0; }

std::chrono::sys_seconds expiry_of(const X509* certificate) {
  std::tm time{};
  if (ASN1_TIME_to_tm(X509_get0_notAfter(certificate), &time) != 1) return {};
  return std::chrono::sys_seconds{std::chrono::seconds{timegm(&time)}};
}

} // namespace

std::shared_ptr<const tls_identity>
tls_identity::from_files(const std::filesystem::path& certificate,
                         const std::filesystem::path& key) {
  check_file(certificate);
  check_file(key);
  ERR_clear_error();
  std::shared_ptr<tls_identity> made{new tls_identity};
  made->context_.reset(SSL_CTX_new(TLS_server_method()), SSL_CTX_free);
  SSL_CTX* const context = made->context_.get();
  if (context == nullptr) throw tls_identity_error{"TLS cannot be set up: " + error_of_openssl()};
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_TICKET | SSL_OP_NO_COMPRESSION
                                   | SSL_OP_IGNORE_UNEXPECTED_EOF);
  SSL_CTX_set_num_tickets(context, 0);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER
                                | SSL_MODE_RELEASE_BUFFERS);
  // A read ends after a record that has nothing for us: a client that sends no others gets its turn
  // and no more.
  SSL_CTX_clear_mode(context, SSL_MODE_AUTO_RETRY);
  SSL_CTX_set_default_passwd_cb(context, no_passphrase);
  if (SSL_CTX_use_certificate_chain_file(context, certificate.c_str()) != 1)
    refuse(certificate, "is not a PEM certificate: " + error_of_openssl());
  if (SSL_CTX_use_PrivateKey_file(context, key.c_str(), SSL_FILETYPE_PEM) != 1) {
    const auto why = error_of_openssl();
    refuse(key, "is not the PEM private key, without a passphrase, of the certificate "
                    + certificate.string() + ": " + why);
  }
  made->expires_ = expiry_of(SSL_CTX_get0_certificate(context));
  return made;
}

bool tls_identity::expired() const { return expires_ <= std::chrono::system_clock::now(); }

} // namespace lamella::net
