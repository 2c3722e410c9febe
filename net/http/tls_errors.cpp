#include "net/http/tls_errors.hpp"

#include <openssl/err.h>

#include <stdexcept>
#include <string>

#include <dlfcn.h>

struct ssl_st;

namespace {

using get_error_function = int(const ssl_st*, int);

get_error_function* get_error_of_openssl() {
  static auto* const found =
      reinterpret_cast<get_error_function*>(dlsym(RTLD_NEXT, "SSL_get_error"));
  return found;
}

} // namespace

// NOLINTNEXTLINE: the name is OpenSSL's
extern "C" __attribute__((visibility("default"))) int SSL_get_error(const ssl_st* connection,
                                                                    int result) {
  const int answer = get_error_of_openssl()(connection, result);
  ERR_clear_error();
  return answer;
}

namespace lamella::net {

void keep_tls_errors_apart() {
  if (get_error_of_openssl() == nullptr)
    throw std::runtime_error{"libssl has no SSL_get_error: " + std::string{dlerror()}};
}

} // namespace lamella::net
