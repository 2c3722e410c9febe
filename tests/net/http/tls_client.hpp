/// A client that speaks TLS, and the certificates it is shown.
#pragma once

#include "net/http/tls_identity.hpp"
#include "tests/net/http/raw_client.hpp"

#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>

namespace lamella::test {

/// A folder with name.pem, signed by itself, and name.key; gone with this object.
class certificate_folder {
public:
  certificate_folder() {
    std::string name = (std::filesystem::temp_directory_path() / "lamella_tls_XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp");
    path_ = name;
  }
  ~certificate_folder() { std::filesystem::remove_all(path_); }
  certificate_folder(const certificate_folder&) = delete;
  certificate_folder& operator=(const certificate_folder&) = delete;

  std::filesystem::path certificate(const std::string& name) const {
    return path_ / (name + ".pem");
  }
  std::filesystem::path key(const std::string& name) const { return path_ / (name + ".key"); }
  const std::filesystem::path& path() const { return path_; }

  /// Its subject is CN=name, its host localhost; a key with a passphrase where that is not null.
  void make(const std::string& name, long seconds_valid = 3600,
            const char* passphrase = nullptr) const {
    const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> pair{EVP_EC_gen("P-256"),
                                                                   EVP_PKEY_free};
    const std::unique_ptr<X509, decltype(&X509_free)> made{X509_new(), X509_free};
    X509_set_version(made.get(), 2);
    ASN1_INTEGER_set(X509_get_serialNumber(made.get()), 1);
    X509_gmtime_adj(X509_getm_notBefore(made.get()), std::min(0L, seconds_valid) - 60);
    X509_gmtime_adj(X509_getm_notAfter(made.get()), seconds_valid);
    X509_set_pubkey(made.get(), pair.get());
    X509_NAME* subject = X509_get_subject_name(made.get());
    X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC,
                               reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
    X509_set_issuer_name(made.get(), subject);
    const std::unique_ptr<X509_EXTENSION, decltype(&X509_EXTENSION_free)> hosts{
        X509V3_EXT_conf_nid(nullptr, nullptr, NID_subject_alt_name, "DNS:localhost"),
        X509_EXTENSION_free};
    X509_add_ext(made.get(), hosts.get(), -1);
    if (X509_sign(made.get(), pair.get(), EVP_sha256()) == 0) throw std::runtime_error("X509_sign");
    write(certificate(name), [&](FILE* to) { return PEM_write_X509(to, made.get()); });
    write(key(name), [&](FILE* to) {
      return PEM_write_PrivateKey(to, pair.get(), passphrase ? EVP_aes_128_cbc() : nullptr, nullptr,
                                  0, nullptr, const_cast<char*>(passphrase));
    });
  }

  std::shared_ptr<const net::tls_identity> identity(const std::string& name) const {
    return net::tls_identity::from_files(certificate(name), key(name));
  }

private:
  template <class F> static void write(const std::filesystem::path& file, F&& body) {
    FILE* to = std::fopen(file.c_str(), "w");
    if (to == nullptr || body(to) != 1) throw std::runtime_error("cannot write " + file.string());
    std::fclose(to);
  }

  std::filesystem::path path_;
};

/// Takes any certificate. The handshake is done when it exists, or the constructor throws.
class tls_client : public raw_client {
public:
  explicit tls_client(uint16_t port, int receive_buffer = 0, int version = 0)
      : raw_client(port, receive_buffer), context_(SSL_CTX_new(TLS_client_method()), SSL_CTX_free) {
    SSL_CTX_set_security_level(context_.get(), 0); // that old versions reach the server
    if (version != 0) {
      SSL_CTX_set_min_proto_version(context_.get(), version);
      SSL_CTX_set_max_proto_version(context_.get(), version);
    }
    ERR_clear_error();
    tls_.reset(SSL_new(context_.get()));
    SSL_set_fd(tls_.get(), fd());
    if (SSL_connect(tls_.get()) != 1) throw std::runtime_error("tls_client: no handshake");
  }

  bool send(std::string_view bytes) override {
    ERR_clear_error();
    size_t count = 0;
    return SSL_write_ex(tls_.get(), bytes.data(), bytes.size(), &count) == 1;
  }

  std::string read_some() override {
    ERR_clear_error();
    std::string bytes(16384, '\0');
    size_t count = 0;
    const int result = SSL_read_ex(tls_.get(), bytes.data(), bytes.size(), &count);
    if (result != 1) proper_end_ = SSL_get_error(tls_.get(), result) == SSL_ERROR_ZERO_RETURN;
    bytes.resize(count);
    return bytes;
  }

  /// Tells a new key for what it sends from now on; with `both` the server is to do so, too.
  bool change_keys(bool both) {
    ERR_clear_error();
    return SSL_key_update(tls_.get(),
                          both ? SSL_KEY_UPDATE_REQUESTED : SSL_KEY_UPDATE_NOT_REQUESTED)
               == 1
           && SSL_do_handshake(tls_.get()) == 1;
  }

  /// Says that it will send no more, as TLS says it.
  void say_end() { SSL_shutdown(tls_.get()); }

  /// The connection ended, and the server had said so before.
  bool ended_properly() const { return proper_end_; }

  std::string subject() const {
    char text[256] = {};
    X509_NAME_oneline(X509_get_subject_name(SSL_get0_peer_certificate(tls_.get())), text,
                      sizeof text);
    return text;
  }

private:
  std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context_;
  std::unique_ptr<SSL, decltype(&SSL_free)> tls_{nullptr, SSL_free};
  bool proper_end_ = false;
};

} // namespace lamella::test
