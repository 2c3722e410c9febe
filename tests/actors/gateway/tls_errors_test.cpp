#include "net/http/tls_errors.hpp"

#include <doctest/doctest.h>

#include <openssl/err.h>
#include <openssl/ssl.h>

#include <dlfcn.h>

using namespace lamella;

TEST_CASE("L-M26 an error of one TLS connection is not taken for another's") {
  net::keep_tls_errors_apart();
  // What libraries that the program is linked with call, CAF's among them.
  auto* const get_error =
      reinterpret_cast<int (*)(const SSL*, int)>(dlsym(RTLD_DEFAULT, "SSL_get_error"));
  REQUIRE((get_error != nullptr));
  SSL_CTX* const context = SSL_CTX_new(TLS_client_method());
  SSL* const broken = SSL_new(context);
  SSL* const whole = SSL_new(context);
  // An end of file in the middle of a handshake: an error that stays in the thread's queue.
  for (SSL* const x : {broken, whole}) {
    SSL_set_bio(x, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
    SSL_set_connect_state(x);
  }
  BIO_set_mem_eof_return(SSL_get_rbio(broken), 0);
  const int ended = SSL_do_handshake(broken);
  REQUIRE(ended <= 0);
  REQUIRE(ERR_peek_error() != 0); // OpenSSL 3 calls an unexpected end an error
  const int answer = get_error(broken, ended);
  CHECK(answer == SSL_ERROR_SSL);
  CHECK(ERR_peek_error() == 0); // or the next one is asked about gets it
  // The other connection waits for bytes, and nothing else.
  char byte = 0;
  (void)SSL_do_handshake(whole);
  const int waiting = SSL_read(whole, &byte, 1);
  CHECK(waiting <= 0);
  CHECK(get_error(whole, waiting) == SSL_ERROR_WANT_READ);
  SSL_free(broken);
  SSL_free(whole);
  SSL_CTX_free(context);
}
