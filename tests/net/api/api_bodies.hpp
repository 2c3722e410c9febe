/// Request bodies for tests, and how they are refused.
#pragma once

#include "net/api/api_request.hpp"
#include "net/http/api_error.hpp"

#include <string>

namespace lamella::net::test {

/// A chat body with more members.
inline std::string chat(const std::string& more = "") {
  return R"({"model":"m","messages":[{"role":"user","content":"hi"}])"
         + std::string(more.empty() ? "" : ",") + more + "}";
}
inline std::string legacy(const std::string& more = "") {
  return R"({"model":"m","prompt":"hi")" + std::string(more.empty() ? "" : ",") + more + "}";
}

struct failure {
  int status = 0;
  std::string code, param, message;
};

template <class F> failure failure_of(F&& f) {
  try {
    f();
  } catch (const api_error& error) {
    return {error.status, error.code, error.param, error.message};
  }
  return {};
}

inline failure chat_failure(const std::string& body, const api_limits& limits = {}) {
  return failure_of([&] { parse_chat_request(body, limits); });
}
inline failure legacy_failure(const std::string& body, const api_limits& limits = {}) {
  return failure_of([&] { parse_completion_request(body, limits); });
}

inline std::string repeat(std::string_view text, size_t times) {
  std::string out;
  for (size_t i = 0; i < times; ++i) out += text;
  return out;
}

} // namespace lamella::net::test
